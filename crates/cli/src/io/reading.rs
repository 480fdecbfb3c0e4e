//! Reading the inputs of a command, and what to say of those that cannot be read.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use busbound::fleet::Unread;
use busbound::trace::is_nsight_report;
use busbound::{Input, Inputs, ManyOptions, ReadOptions, Run, Stage, open_input, open_many, resolve_inputs};

use crate::args::shared::{JobsArgs, ReadingArgs};
use crate::failure::Failure;
use crate::io::interrupt::end_exports_on_signals;
use crate::io::output::warn;
use crate::io::progress::{RanksBar, ReadingBar};
use crate::request::{Output, resolve_reading};

/// Whether every input named outright could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllRead {
    Yes,
    No,
}

/// Reads each input and hands it over at once, so that one trace is held at a time.
pub(crate) fn each_run(
    paths: &[PathBuf],
    args: &ReadingArgs,
    output: &Output,
    mut take: impl FnMut(&Run),
) -> Result<AllRead, Failure> {
    let options = resolve_reading(args);
    let inputs = resolve_inputs(paths)?;
    let mut unread = Vec::new();
    let mut taken = 0;
    for input in &inputs.list {
        match open_one(input, &options, output)? {
            Ok(run) => {
                take(&run);
                taken += 1;
            }
            Err(error) => unread.push(error.to_string()),
        }
    }
    // Several inputs: what could be read is answered, what could not is said.
    let is_complete = unread.is_empty() || inputs.from_directory;
    skip(unread, taken > 0)?;
    Ok(if is_complete { AllRead::Yes } else { AllRead::No })
}

/// What became of the inputs: in order those that could be read, and those that could not.
pub(crate) struct AllRuns<T> {
    pub(crate) read: Vec<T>,
    pub(crate) unread: Vec<Unread>,
}

/// Reads each input and makes something of it, on as many threads as are asked for. `take` gets the number of the input.
pub(crate) fn every_run<T: Send>(
    inputs: &Inputs,
    jobs: &JobsArgs,
    args: &ReadingArgs,
    output: &Output,
    take: impl Fn(usize, &Run) -> T + Sync,
) -> Result<AllRuns<T>, Failure> {
    let reading = resolve_reading(args);
    let outcomes = match inputs.list.as_slice() {
        // One has all threads, all memory and a bar of its own.
        [one] => {
            let unread =
                |error: busbound::Error| Unread::new(one.label().display().to_string(), error.to_string());
            vec![open_one(one, &reading, output)?.map(|run| take(0, &run)).map_err(unread)]
        }
        several => {
            listen_if_exported(several)?;
            let bar = RanksBar::new(several.len(), output.show_progress);
            let watch = |stage: Option<Stage<'_>>| match stage {
                Some(Stage::ExportStarted { report }) => say_exported(report, output),
                Some(_) => {}
                None => bar.one_done(),
            };
            let options = ManyOptions { jobs: jobs.jobs.map(usize::from), reading };
            open_many(several, &options, &watch, take)
        }
    };
    let mut all = AllRuns { read: Vec::new(), unread: Vec::new() };
    for outcome in outcomes {
        match outcome {
            Ok(value) => all.read.push(value),
            Err(unread) => all.unread.push(unread),
        }
    }
    skip(all.unread.iter().map(|one| one.why.clone()).collect(), !all.read.is_empty())?;
    Ok(all)
}

/// Says what is skipped; where nothing is left, the last one is what the program fails with.
fn skip(mut unread: Vec<String>, is_something_left: bool) -> Result<(), Failure> {
    let last = if is_something_left { None } else { unread.pop() };
    for why in &unread {
        warn(&format!("passed over: {why}"));
    }
    last.map_or(Ok(()), |why| Err(Failure::unreadable(why)))
}

fn open_one(
    input: &Input,
    options: &ReadOptions,
    output: &Output,
) -> Result<Result<Run, busbound::Error>, Failure> {
    listen_if_exported(std::slice::from_ref(input))?;
    let mut bar = ReadingBar::new(input.label(), output.show_progress);
    Ok(open_input(input, options, &mut |stage| {
        match stage {
            Stage::ExportStarted { report } => say_exported(report, output),
            Stage::Reading(progress) => bar.update(progress),
            _ => {}
        }
        ControlFlow::Continue(())
    }))
}

/// What nsys exports must not stay behind when a signal ends this program.
fn listen_if_exported(inputs: &[Input]) -> Result<(), Failure> {
    let is_report = |input: &Input| matches!(input, Input::File(path) if is_nsight_report(path));
    if inputs.iter().any(is_report) { end_exports_on_signals() } else { Ok(()) }
}

fn say_exported(report: &Path, output: &Output) {
    if !output.quiet {
        warn(&format!("{}: a report of Nsight Systems; nsys exports it", report.display()));
    }
}
