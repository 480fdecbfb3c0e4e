//! Is it a report of Nsight Systems? Only nsys reads these; what it exports is read here.

use std::fs::File;
use std::path::Path;

use super::Peekable;
use super::sniff::{Content, sniff};

/// Whether the file is a report that must be exported before it can be read.
pub fn is_nsight_report(path: &Path) -> bool {
    // What is not named like one is not opened: of a pipe, the bytes looked at would be gone.
    is_named_like_report(path)
        && File::open(path)
            .is_ok_and(|file| Peekable::new(file).peek().is_ok_and(|head| is_report(path, head)))
}

/// Its format is not public and has no mark that can be relied on: the name says it, unless the first bytes say
/// something else.
pub(super) fn is_report(path: &Path, head: &[u8]) -> bool {
    let is_text = head.first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    is_named_like_report(path)
        && !head.is_empty()
        && !is_text
        && !matches!(sniff(head), Content::Sqlite | Content::Capture)
}

pub(super) fn is_named_like_report(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    matches!(extension.as_str(), "nsys-rep" | "qdrep")
}
