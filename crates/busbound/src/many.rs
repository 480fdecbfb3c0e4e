//! Many traces, several in parallel, within one memory limit. Results are in the order of the inputs, whichever finishes
//! first.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread;

use busbound_fleet::Unread;
use busbound_trace::ReadOptions;

use crate::admission::Admission;
use crate::inputs::Input;
use crate::run::{Run, open_input};
use crate::stage::Stage;

/// How to read many traces.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManyOptions {
    /// Traces read in parallel, as far as the memory limit allows; by default one per core.
    pub jobs: Option<usize>,
    /// Threads and memory, shared by all traces.
    pub reading: ReadOptions,
}

/// Reads each input and calls `take` with its index and run, on several threads. Each thread holds at most one run.
///
/// `watch` receives each stage of each input, and `None` when an input is done.
///
/// ```
/// use busbound::{Machine, ManyOptions, Options, open_many, resolve_inputs};
///
/// let inputs = resolve_inputs(&["demo".into()])?;
/// let (machine, options) = (Machine::default(), Options::default());
/// let each = open_many(&inputs.list, &ManyOptions::default(), &|_| {}, |_, run| {
///     run.diagnose(&machine, &options)
/// });
/// let (read, unread): (Vec<_>, Vec<_>) = each.into_iter().partition(Result::is_ok);
/// assert_eq!((read.len(), unread.len()), (1, 0));
/// # Ok::<(), busbound::Error>(())
/// ```
pub fn open_many<T: Send>(
    inputs: &[Input],
    options: &ManyOptions,
    watch: &(dyn Fn(Option<Stage<'_>>) + Sync),
    take: impl Fn(usize, &Run) -> T + Sync,
) -> Vec<Result<T, Unread>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = options.jobs.unwrap_or(cores).min(inputs.len());
    let threads = (options.reading.threads / workers.max(1)).max(1);
    let gate = Admission::new(options.reading.memory_bound);
    let done: Mutex<Vec<Option<Result<T, Unread>>>> = Mutex::new(inputs.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(admitted) = gate.next(inputs) {
                    let input = &inputs[admitted.input];
                    let reading = options.reading.threads(threads).memory_bound(admitted.columns);
                    let run = open_input(input, &reading, &mut |stage| {
                        watch(Some(stage));
                        ControlFlow::Continue(())
                    });
                    let outcome = run
                        .map(|run| take(admitted.input, &run))
                        .map_err(|error| Unread::new(input.label().display().to_string(), error.to_string()));
                    done.lock().unwrap_or_else(PoisonError::into_inner)[admitted.input] = Some(outcome);
                    watch(None);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
