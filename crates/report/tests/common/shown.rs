//! Answers as text.

use busbound_report::{Format, Report, Style};

/// What a person sees, in 80 columns and without styles.
pub(crate) fn shown(report: &(impl Report + ?Sized), format: Format) -> String {
    report.render(format, &Style::default()).unwrap()
}
