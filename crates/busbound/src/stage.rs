//! What happens while a trace is opened? For progress displays.

use std::path::Path;

use busbound_trace::Progress;

/// The progress of opening a trace.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Stage<'a> {
    /// nsys has started to export a report; reported once.
    ExportStarted {
        report: &'a Path,
    },
    /// nsys is still running; reported many times per second.
    Exporting,
    Reading(Progress),
}
