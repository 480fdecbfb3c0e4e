//! Reading the inputs of a command, and what to say of those that cannot be read.

use std::io::stdin;
use std::ops::ControlFlow;
use std::path::PathBuf;

use busbound_diagnosis::Source;
use busbound_trace::{ReadOptions, Trace, is_nsight_report, open_with_progress, read_with_progress};

use crate::args::ReadingArgs;
use crate::failure::Failure;
use crate::nsys::Exported;
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
        match read_input(input, &options, output) {
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
        return Err(Failure::Unreadable(last));
    }
    for error in &unread {
        complain(&format!("passed over: {error}"));
    }
    Ok(if unread.is_empty() || inputs.from_directory { AllRead::Yes } else { AllRead::No })
}

pub(crate) fn read_input(input: &Input, options: &ReadOptions, output: &Output) -> anyhow::Result<Trace> {
    read_from(input, options, output.quiet, &mut ReadingBar::new(input.label(), output.show_progress))
}

pub(crate) fn read_from(
    input: &Input,
    options: &ReadOptions,
    is_quiet: bool,
    bar: &mut ReadingBar,
) -> anyhow::Result<Trace> {
    let exported = match input {
        Input::File(path) if is_nsight_report(path) => Exported::from_report(path, is_quiet)?,
        Input::File(_) | Input::Stdin => None,
    };
    let mut progress = |p| {
        bar.update(p);
        ControlFlow::Continue(())
    };
    let trace = match (&exported, input) {
        (Some(exported), _) => open_with_progress(&exported.database(), options, &mut progress),
        (None, Input::File(path)) => open_with_progress(path, options, &mut progress),
        (None, Input::Stdin) => read_with_progress(stdin(), input.label(), options, &mut progress),
    };
    Ok(trace?)
}
