//! Renders answers as text.

use busbound_report::{Format, Report, Style};

/// The output for a person, in 80 columns and without styles.
pub(crate) fn shown(report: &(impl Report + ?Sized), format: Format) -> String {
    report.render(format, &Style::default()).unwrap()
}
