//! Where does text go? The answer to standard output or a file, everything else to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use busbound::{Format, Report};

use crate::failure::Failure;
use crate::request::Output;

/// Shows an answer. A page that is opened, or that would flood a terminal, goes to a file: -o, else `page`.
pub(crate) fn show(report: &dyn Report, output: &Output, page: impl AsRef<Path>) -> Result<(), Failure> {
    let needs_file = output.format == Format::Html && (output.open || io::stdout().is_terminal());
    match &output.file {
        Some(path) => save(report, output.format, output, path)?,
        None if needs_file => save(report, output.format, output, page.as_ref())?,
        None => {
            let text = report.render(output.format, &output.style(true)).map_err(Failure::output)?;
            return write_answer(&text);
        }
    }
    if needs_file {
        let path = output.file.as_deref().unwrap_or(page.as_ref());
        warn(&format!("the page is in {}", path.display()));
        if output.open {
            open_page(path);
        }
    } else if let Some(path) = output.file.as_deref().filter(|_| !output.quiet && io::stderr().is_terminal())
    {
        warn(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Without a browser the page has still been written, so this is a warning.
fn open_page(path: &Path) {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if open::that_detached(absolute).is_err() {
        warn("no browser found here: open the file yourself, or copy it to a machine with a browser");
    }
}

/// Writes an answer to a file, without colors.
pub(crate) fn save(report: &dyn Report, format: Format, output: &Output, path: &Path) -> Result<(), Failure> {
    busbound::save(report, format, &output.style(false), path).map_err(Failure::output)
}

/// Colors are stripped in pipes, and if NO_COLOR is set.
pub(crate) fn write_answer(text: &str) -> Result<(), Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        // The reader (`head`, a pager) has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::output_at("standard output")),
    }
}

/// Writes a file; an error names it.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(Failure::unwritable_at(path))
}

/// A line on standard error: what went wrong with a part of the work, or where a file is.
pub(crate) fn warn(text: &str) {
    // If standard error is closed, there is nothing left to do.
    let _ = writeln!(anstream::stderr(), "busbound: {text}");
}

/// Lines for the CI server, which reads standard error as well; standard output has only the answer.
pub(crate) fn announce(lines: &str) {
    let _ = io::stderr().write_all(lines.as_bytes());
}
