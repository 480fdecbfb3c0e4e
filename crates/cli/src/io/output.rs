//! Where do words go? The answer to standard output or a file, remarks to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use busbound::{Format, Report, Style};

use crate::failure::Failure;
use crate::request::Output;

/// Shows an answer. A page, which a terminal would only be flooded by, gets a file of its own there: `page`.
pub(crate) fn show(report: &dyn Report, output: &Output, page: impl AsRef<Path>) -> Result<(), Failure> {
    let Output { format, width, .. } = *output;
    if let Some(path) = &output.file {
        return save(report, format, width, path);
    }
    if format == Format::Html && io::stdout().is_terminal() {
        let page = page.as_ref();
        save(report, format, width, page)?;
        warn(&format!("the page is in {}", page.display()));
        return Ok(());
    }
    let text =
        report.render(format, &Style { width, color: true, verbose: false }).map_err(Failure::output)?;
    write_answer(&text)
}

/// Writes an answer to a file, without styles.
pub(crate) fn save(report: &dyn Report, format: Format, width: u16, path: &Path) -> Result<(), Failure> {
    busbound::save(report, format, &Style { width, color: false, verbose: false }, path)
        .map_err(Failure::output)
}

/// Styles are stripped where they do not belong: in pipes, and under NO_COLOR.
pub(crate) fn write_answer(text: &str) -> Result<(), Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        // The reader (`head`, a pager) has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::output_at("standard output")),
    }
}

/// Writes a file; where it cannot, its name is said.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(Failure::output_at(path.display()))
}

/// A line apart from the answer: what went wrong with a part of the work, or where a file is.
pub(crate) fn warn(text: &str) {
    // Nothing sensible is left to do if standard error is gone.
    let _ = writeln!(anstream::stderr(), "busbound: {text}");
}

/// Lines for the CI server, which reads standard error as well; the answer stays alone.
pub(crate) fn announce(lines: &str) {
    let _ = io::stderr().write_all(lines.as_bytes());
}
