//! Every trace in the fixtures.

use std::path::{Path, PathBuf};

use busbound_trace::{ReadOptions, Trace, open};

/// Every file below the fixtures that is a trace, but for the later sets of fixtures/frameworks (`…_2-…` and so on): they are too many
/// for slow checks, and consistency.rs has them.
pub(crate) fn every_trace() -> Vec<(PathBuf, Trace)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let is_trace = |path: &PathBuf| {
        let name = path.to_string_lossy();
        let is_later = (2..=15).any(|set| name.contains(&format!("_{set}-")));
        !is_later
            && [".json", ".json.gz", ".sqlite", ".bbt", ".pb"].iter().any(|suffix| name.ends_with(suffix))
    };
    let read = |path: PathBuf| Some((path.clone(), open(&path, &ReadOptions::default()).ok()?));
    files.into_iter().filter(is_trace).filter_map(read).filter(|(_, trace)| !trace.is_empty()).collect()
}
