//! Reading the inputs of a command, and saying which could not be read.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use busbound::fleet::Unread;
use busbound::trace::is_nsight_report;
use busbound::{Input, Inputs, ManyOptions, ReadOptions, Run, Stage, open_input, open_many, resolve_inputs};

use crate::args::shared::{JobsArgs, ReadingArgs};
use crate::failure::Failure;
use crate::io::interrupt::end_exports_on_signals;
use crate::io::kind::{FileKind, instead_of};
use crate::io::output::warn;
use crate::io::progress::{RanksBar, ReadingBar};
use crate::request::{Output, resolve_reading};

/// Whether every input that was named explicitly could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllRead {
    Yes,
    No,
}

/// Reads one input after the other, so that one trace is in memory at a time.
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
            Err(error) => unread.push(explain(input.label(), error.to_string())),
        }
    }
    let is_complete = unread.is_empty() || inputs.from_directory;
    if taken == 0 {
        fail_with_last(&mut unread)?;
    }
    warn_skipped(&unread);
    Ok(if is_complete { AllRead::Yes } else { AllRead::No })
}

/// The inputs in order: those that could be read, and those that could not.
pub(crate) struct AllRuns<T> {
    pub(crate) read: Vec<T>,
    pub(crate) unread: Vec<Unread>,
}

/// Reads each input and makes something of it, on several threads. `take` gets the number of the input. The answer has to
/// say what could not be read; if nothing could, this fails.
pub(crate) fn every_run<T: Send>(
    inputs: &Inputs,
    jobs: &JobsArgs,
    args: &ReadingArgs,
    output: &Output,
    take: impl Fn(usize, &Run) -> T + Sync,
) -> Result<AllRuns<T>, Failure> {
    let reading = resolve_reading(args);
    let outcomes = match inputs.list.as_slice() {
        // A single trace gets all threads, all memory and its own progress bar.
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
            Err(Unread { path, why, .. }) => {
                let why = explain(Path::new(&path), why);
                all.unread.push(Unread::new(path, why));
            }
        }
    }
    if all.read.is_empty() {
        fail_with_last(&mut all.unread.iter().map(|one| one.why.clone()).collect())?;
    }
    Ok(all)
}

/// Says what is skipped, for commands whose answer does not.
pub(crate) fn warn_skipped<W: AsRef<str>>(unread: &[W]) {
    for why in unread {
        warn(&format!("skipped: {}", why.as_ref()));
    }
}

/// If nothing could be read, the last error is the one that the command fails with.
fn fail_with_last(unread: &mut Vec<String>) -> Result<(), Failure> {
    unread.dedup();
    let last = unread.pop();
    warn_skipped(unread);
    last.map_or(Ok(()), |why| Err(Failure::unreadable(why)))
}

/// A file that is known to be something else is said to be that, instead of what the reader stumbled over.
fn explain(path: &Path, why: String) -> String {
    instead_of(FileKind::Trace, path).unwrap_or(why)
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

/// The files that nsys exports must not stay behind if a signal ends this program.
fn listen_if_exported(inputs: &[Input]) -> Result<(), Failure> {
    let is_report = |input: &Input| matches!(input, Input::File(path) if is_nsight_report(path));
    if inputs.iter().any(is_report) { end_exports_on_signals() } else { Ok(()) }
}

fn say_exported(report: &Path, output: &Output) {
    if !output.quiet {
        warn(&format!("{}: exporting this Nsight Systems report with nsys", report.display()));
    }
}
