//! Where do words go? The answer to standard output or a file, remarks to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;

use busbound_diagnosis::Advice;
use busbound_report::{advice_as_env, advice_as_sh, advice_as_yaml};

use crate::args::Emit;
use crate::failure::Failure;
use crate::request::Output;

/// Styles are stripped where they do not belong: in files, pipes, and under NO_COLOR.
pub(crate) fn write_answer(text: &str, output: &Output) -> Result<(), Failure> {
    match &output.file {
        Some(path) => {
            let plain = anstream::adapter::strip_str(text).to_string();
            write_file(path, &plain)
        }
        None => match anstream::stdout().write_all(text.as_bytes()) {
            // The reader (`head`, a pager) has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.context("standard output").map_err(Failure::Output),
        },
    }
}

/// A page, which a terminal would only be flooded by: there it gets a file of its own.
pub(crate) fn write_page(page: &str, name: &Path, output: &Output) -> Result<(), Failure> {
    match &output.file {
        Some(path) => write_file(path, page),
        None if io::stdout().is_terminal() => {
            write_file(name, page)?;
            complain(&format!("the page is in {}", name.display()));
            Ok(())
        }
        None => write_answer(page, output),
    }
}

/// Writes a file; where it cannot, its name is said.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).with_context(|| path.display().to_string()).map_err(Failure::Output)
}

/// Writes advice in place of the answer.
pub(crate) fn write_advice(advice: &Advice, emit: Emit, output: &Output) -> Result<(), Failure> {
    let text = match emit {
        Emit::Env => advice_as_env(advice),
        Emit::Yaml => advice_as_yaml(advice),
        Emit::Sh => advice_as_sh(advice),
    };
    write_answer(&text, output)
}

/// A line beside the answer: what went wrong with a part of the work, or where a file is.
pub(crate) fn complain(text: &str) {
    // Nothing sensible is left to do if standard error is gone.
    let _ = writeln!(anstream::stderr(), "busbound: {text}");
}

/// Lines for the CI server, which reads standard error as well; the answer stays alone.
pub(crate) fn announce(lines: &str) {
    let _ = io::stderr().write_all(lines.as_bytes());
}
