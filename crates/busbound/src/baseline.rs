//! Is a file what an earlier gate saved?

use std::fs;
use std::path::Path;

use busbound_diagnosis::{Baseline, GATE_SCHEMA};

use crate::error::Error;

/// Larger files are traces, in bytes.
const SAVED_GATE: u64 = 1 << 20;

/// The baseline in a file that an earlier gate wrote as JSON; `None` where it is something else, such as a trace.
///
/// # Errors
/// If it is a gate's, and damaged.
pub fn saved_baseline(path: &Path) -> Result<Option<Baseline>, Error> {
    // A saved gate is small text; a trace may be neither.
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
