//! How fast is this machine really? Runs the tasks that `busbound_machine::bench` plans and returns the raw times.
//! Changes no GPU settings: no clock, no mode. All memory is freed, also when stopped.

mod all_ranks;
mod all_reduce;
mod buffers;
mod companion;
mod contention;
mod copy;
mod double_buffer;
mod duplex;
mod hbm;
mod latency;
mod layers;
mod numa;
mod offload;
mod overlap;
mod peer_to_peer;
mod power;
mod profiler;
mod rig;
mod scatter;
mod seat;
mod task_error;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use busbound_machine::bench::{
    Case, Identity, Limits, Mode, NodeSet, SAMPLES_SCHEMA, Samples, Skipped, Suite, Task, limits, tasks,
};

use crate::driver::{CudaError, held_at_most};
use crate::host;
pub use all_ranks::run_rank;
pub use companion::{CompanionError, CompanionTask, serve_companion};
use rig::Rig;
use task_error::TaskError;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Request {
    /// CUDA device ordinal.
    pub gpu: u32,
    pub mode: Mode,
    pub suites: Vec<Suite>,
    /// The date, from the caller: this crate has no calendar.
    pub date: String,
    pub version: String,
    /// This program, which a suite starts a second time: see [`serve_companion`].
    pub program: Option<PathBuf>,
}

/// How far the run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub done: usize,
    pub of: usize,
    /// The current measurement.
    pub what: String,
}

/// Runs the measurements. When `stop` is set, ends after the current repetition with the results so far.
///
/// # Errors
/// Without a driver or a GPU, or if the driver fails; being stopped is not an error.
pub fn run(
    request: &Request,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Samples, CudaError> {
    let began = Instant::now();
    check_environment()?;
    let gpus = crate::driver::gpus()?;
    let mut rig = Rig::open(request.gpu, gpus, request.mode, stop)?;
    rig.program.clone_from(&request.program);
    let (free, _) = rig.gpu.memory()?;
    let nodes = NodeSet::of(host::nodes(Path::new("/")).into_iter().map(|(node, _)| node));
    let limits = limits((gpus, nodes), free, host::free_memory(), rig.gpu.migrates()?, request.mode);
    rig.largest = limits.largest;
    let mut identity = rig.identity()?;
    identity.link = rig.link_under_load()?;
    let skipped = left_out(request, &limits);
    let mut samples = Samples { skipped, ..nothing_yet(request, identity) };
    measure_all(&mut rig, &tasks(request.mode, &request.suites, &limits), &mut samples, progress)?;
    finish(&mut samples, began);
    Ok(samples)
}

/// With some settings, every time would be wrong.
fn check_environment() -> Result<(), CudaError> {
    let is_blocking = std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value != "0");
    if is_blocking { Err(CudaError::LaunchBlocking) } else { Ok(()) }
}

/// Samples before the first measurement.
fn nothing_yet(request: &Request, identity: Identity) -> Samples {
    Samples {
        schema: SAMPLES_SCHEMA.to_owned(),
        busbound: request.version.clone(),
        date: request.date.clone(),
        mode: request.mode,
        wall_s: 0.0,
        interrupted: false,
        identity,
        device_bytes: 0,
        host_bytes: 0,
        cases: Vec::new(),
        skipped: Vec::new(),
    }
}

/// What is known only after the last one.
fn finish(samples: &mut Samples, began: Instant) {
    (samples.device_bytes, samples.host_bytes) = held_at_most();
    samples.wall_s = began.elapsed().as_secs_f64();
}

fn measure_all(
    rig: &mut Rig<'_>,
    tasks: &[Task],
    samples: &mut Samples,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), CudaError> {
    for (done, task) in tasks.iter().enumerate() {
        progress(Progress { done, of: tasks.len(), what: task.to_string() });
        let measured = measure(rig, *task);
        rig.notes.drain(..).for_each(|why| skip(samples, task, why));
        let why = match measured {
            Ok(case) => {
                samples.cases.push(case);
                continue;
            }
            Err(TaskError::Driver(CudaError::Stopped)) => {
                samples.interrupted = true;
                break;
            }
            Err(TaskError::CannotRun(why)) => why,
            // A failing task does not affect the others, unless the GPU no longer responds.
            Err(TaskError::Driver(error)) => {
                if rig.gpu.make_current().and_then(|()| rig.main.synchronize()).is_err() {
                    return Err(error);
                }
                rig.buffers.clear();
                error.to_string()
            }
        };
        skip(samples, task, why);
    }
    Ok(())
}

/// Says once per suite why something has no times.
fn skip(samples: &mut Samples, task: &Task, why: String) {
    let skip = Skipped { suite: task.suite(), why };
    if !samples.skipped.contains(&skip) {
        samples.skipped.push(skip);
    }
}

/// The registry of measurements: one line per suite.
fn measure(rig: &mut Rig<'_>, task: Task) -> Result<Case, TaskError> {
    Ok(match task {
        Task::Copy(task) => copy::measure(rig, task)?.into(),
        Task::Duplex(task) => duplex::measure(rig, task)?.into(),
        Task::PeerToPeer(task) => peer_to_peer::measure(rig, task)?.into(),
        Task::Latency(task) => latency::measure(rig, task)?.into(),
        Task::Overlap(task) => overlap::measure(rig, task)?.into(),
        Task::DoubleBuffer(task) => double_buffer::measure(rig, task)?.into(),
        Task::Offload(task) => offload::measure(rig, task)?.into(),
        Task::Scatter(task) => scatter::measure(rig, task)?.into(),
        Task::AllReduce(task) => all_reduce::measure(rig, task)?.into(),
        Task::Power(task) => power::measure(rig, task)?.into(),
        Task::Numa(task) => numa::measure(rig, task)?.into(),
        Task::Contention(task) => contention::measure(rig, task)?.into(),
        Task::Hbm(task) => hbm::measure(rig, task)?.into(),
        Task::Profiler(task) => profiler::measure(rig, task)?.into(),
    })
}

/// What is known in advance not to run on this machine.
fn left_out(request: &Request, limits: &Limits) -> Vec<Skipped> {
    let skipped = |suite: &Suite| {
        let why = suite.left_out(request.mode, limits)?.to_owned();
        Some(Skipped { suite: *suite, why })
    };
    Suite::ALL.iter().filter(|suite| request.suites.contains(suite)).filter_map(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requested_suites_are_reported_as_skipped_each_once() {
        let limits = Limits { gpus: 1, largest: 1 << 20, managed: false, nodes: NodeSet::of([0]) };
        let left_out = |mode, suites: &[Suite]| {
            let (suites, date, version) = (suites.to_vec(), String::new(), String::new());
            let request = Request { gpu: 0, mode, suites, date, version, program: None };
            let skipped = left_out(&request, &limits);
            skipped.into_iter().map(|skip| skip.suite).collect::<Vec<_>>()
        };
        let (peers, copy) = (Suite::PeerToPeer, Suite::Copy);
        let (numa, contention) = (Suite::Numa, Suite::Contention);
        assert_eq!(left_out(Mode::Full, Suite::ALL), [copy, numa, peers, contention]);
        assert_eq!(left_out(Mode::Quick, Suite::ALL), [numa, peers, contention]);
        assert_eq!(left_out(Mode::Full, &[copy, copy, Suite::Hbm]), [copy]);
        assert!(left_out(Mode::Full, &[Suite::Hbm]).is_empty());
    }
}
