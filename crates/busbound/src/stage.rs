//! What is being done while a trace is opened, for those who show progress.

use std::path::Path;

use busbound_trace::Progress;

/// How far opening has come.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Stage<'a> {
    /// nsys was started to export a report; said once.
    ExportStarted {
        report: &'a Path,
    },
    /// nsys is still at work; said many times a second.
    Exporting,
    Reading(Progress),
}
