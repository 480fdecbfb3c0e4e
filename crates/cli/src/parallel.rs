//! Many traces, several at once. What comes out is in the order of the inputs, whoever is done first.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use busbound_diagnosis::Source;
use busbound_fleet::Unread;
use busbound_trace::{ReadOptions, Trace};

use crate::admission::Admission;
use crate::args::ReadingArgs;
use crate::args_fleet::JobsArgs;
use crate::failure::Failure;
use crate::output::complain;
use crate::progress::{RanksBar, ReadingBar};
use crate::reading::{read_from, read_input};
use crate::request::{Input, Inputs, Output, resolve_reading};

/// What became of the inputs: in order those that could be read, and those that could not.
pub(crate) struct AllTraces<T> {
    pub(crate) read: Vec<T>,
    pub(crate) unread: Vec<Unread>,
}

/// Reads each input and makes something of it, on as many threads as are asked for. `take` gets the number of the input.
pub(crate) fn every_trace<T: Send>(
    inputs: &Inputs,
    jobs: &JobsArgs,
    args: &ReadingArgs,
    output: &Output,
    take: impl Fn(usize, &Trace, &Source) -> T + Sync,
) -> Result<AllTraces<T>, Failure> {
    let options = resolve_reading(args);
    let outcomes = match inputs.list.as_slice() {
        // One has all threads, all memory and a bar of its own.
        [one] => vec![
            read_input(one, &options, output)
                .map(|trace| take(0, &trace, &one.source()))
                .map_err(|error| unread(one, &error)),
        ],
        _ => at_once(inputs, jobs, &options, output, take),
    };
    let mut all = AllTraces { read: Vec::new(), unread: Vec::new() };
    for outcome in outcomes {
        match outcome {
            Ok(value) => all.read.push(value),
            Err(unread) => all.unread.push(unread),
        }
    }
    let nothing = all.read.is_empty();
    for (i, unread) in all.unread.iter().enumerate() {
        // The last one is what the program fails with.
        if nothing && i + 1 == all.unread.len() {
            return Err(Failure::Unreadable(anyhow::anyhow!("{}", unread.why)));
        }
        complain(&format!("passed over: {}", unread.why));
    }
    Ok(all)
}

fn unread(input: &Input, error: &anyhow::Error) -> Unread {
    Unread::new(input.label().display().to_string(), format!("{error:#}"))
}

fn at_once<T: Send>(
    inputs: &Inputs,
    jobs: &JobsArgs,
    options: &ReadOptions,
    output: &Output,
    take: impl Fn(usize, &Trace, &Source) -> T + Sync,
) -> Vec<Result<T, Unread>> {
    let list = &inputs.list;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = jobs.jobs.map_or(cores, usize::from).min(list.len());
    let threads = (options.threads / workers.max(1)).max(1);
    let gate = Admission::new(options.memory_bound);
    let done: Mutex<Vec<Option<Result<T, Unread>>>> = Mutex::new(list.iter().map(|_| None).collect());
    let bar = RanksBar::new(list.len(), output.show_progress);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(admitted) = gate.next(list) {
                    let input = &list[admitted.input];
                    let options = options.threads(threads).memory_bound(admitted.columns);
                    let outcome = read_from(input, &options, output.quiet, &mut ReadingBar::silent())
                        .map(|trace| take(admitted.input, &trace, &input.source()))
                        .map_err(|error| unread(input, &error));
                    done.lock().unwrap_or_else(PoisonError::into_inner)[admitted.input] = Some(outcome);
                    bar.one_done();
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
