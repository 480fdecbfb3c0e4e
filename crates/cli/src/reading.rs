//! Reading the inputs of a command, and what to say of those that cannot be read.

use std::io::stdin;
use std::path::PathBuf;

use busbound_diagnosis::Source;
use busbound_trace::{OpenError, ReadOptions, Trace, open_with_progress, read_with_progress};

use crate::args::ReadingArgs;
use crate::failure::Failure;
use crate::output::complain;
use crate::progress::ReadingBar;
use crate::request::{Input, Output, resolve_inputs, resolve_reading};

/// Whether every input named outright could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllRead {
    Yes,
    No,
}

/// Reads each input and hands it over at once, so that one trace is held at a time.
pub(crate) fn each_trace(
    paths: &[PathBuf],
    args: &ReadingArgs,
    output: &Output,
    mut take: impl FnMut(&Trace, &Source),
) -> Result<AllRead, Failure> {
    let options = resolve_reading(args);
    let inputs = resolve_inputs(paths).map_err(Failure::Unreadable)?;
    let mut unread = Vec::new();
    let mut taken = 0;
    for input in &inputs.list {
        match read_input(input, &options, output.show_progress) {
            Ok(trace) => {
                take(&trace, &input.source());
                taken += 1;
            }
            Err(error) => unread.push(error),
        }
    }
    // Several inputs: what could be read is answered, what could not is said.
    if taken == 0
        && let Some(last) = unread.pop()
    {
        for error in &unread {
            complain(&format!("passed over: {error}"));
        }
        return Err(Failure::Unreadable(last.into()));
    }
    for error in &unread {
        complain(&format!("passed over: {error}"));
    }
    Ok(if unread.is_empty() || inputs.from_directory { AllRead::Yes } else { AllRead::No })
}

pub(crate) fn read_input(
    input: &Input,
    options: &ReadOptions,
    show_progress: bool,
) -> Result<Trace, OpenError> {
    read_from(input, options, &mut ReadingBar::new(input.label(), show_progress))
}

pub(crate) fn read_from(
    input: &Input,
    options: &ReadOptions,
    bar: &mut ReadingBar,
) -> Result<Trace, OpenError> {
    let mut progress = |p| bar.update(p);
    match input {
        Input::File(path) => open_with_progress(path, options, &mut progress),
        Input::Stdin => read_with_progress(stdin(), input.label(), options, &mut progress),
    }
}
