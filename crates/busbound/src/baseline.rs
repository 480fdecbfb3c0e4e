//! Is this file the saved output of an earlier gate?

use std::fs;
use std::path::Path;

use busbound_diagnosis::{Baseline, GATE_SCHEMA};

use crate::error::Error;

/// Larger files, in bytes, are traces.
const SAVED_GATE: u64 = 1 << 20;

/// The baseline in a file that an earlier gate wrote as JSON; `None` if the file is something else, such as a trace.
///
/// # Errors
/// If a gate wrote the file and it is damaged.
pub fn saved_baseline(path: &Path) -> Result<Option<Baseline>, Error> {
    // A saved gate is small and is text; do not load a large trace to find out.
    let is_small = fs::metadata(path).is_ok_and(|file| file.len() < SAVED_GATE);
    if is_small
        && let Ok(text) = fs::read_to_string(path)
        && text.trim_start().starts_with('{')
        && text.contains(GATE_SCHEMA)
    {
        let saved = Baseline::saved(&path.display().to_string(), &text);
        return saved.map(Some).map_err(|error| Error::content(path, error));
    }
    Ok(None)
}
