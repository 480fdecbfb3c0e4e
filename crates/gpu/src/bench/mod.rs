//! What does this machine really reach? Runs the tasks that `busbound_machine::bench` plans and hands back the
//! raw times. Nothing is set on the GPU: no clock, no mode, and all memory is given back, also when stopped.

mod all_reduce;
mod buffers;
mod copy;
mod double_buffer;
mod duplex;
mod hbm;
mod latency;
mod layers;
mod offload;
mod overlap;
mod peer_to_peer;
mod power;
mod rig;
mod trouble;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use busbound_machine::bench::{
    Case, Limits, Mode, SAMPLES_SCHEMA, Samples, Skipped, Suite, Task, limits, tasks,
};

use crate::driver::{CudaError, held_at_most};
use crate::host;
use rig::Rig;
use trouble::Trouble;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Request {
    /// By CUDA's numbering.
    pub gpu: u32,
    pub mode: Mode,
    pub suites: Vec<Suite>,
    /// For the record: this crate has no calendar.
    pub date: String,
    pub version: String,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub done: usize,
    pub of: usize,
    /// What is measured now.
    pub what: String,
}

/// Measures. When `stop` is set it ends after the repetition under way, with what it has by then.
///
/// # Errors
/// Without a driver or a GPU, or if the driver fails; being stopped is no error.
pub fn run(
    request: &Request,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Samples, CudaError> {
    let began = Instant::now();
    if std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value != "0") {
        return Err(CudaError::LaunchBlocking);
    }
    let gpus = crate::driver::gpus()?;
    let mut rig = Rig::open(request.gpu, gpus, request.mode, stop)?;
    let (free, _) = rig.gpu.memory()?;
    let limits = limits(gpus, free, host::free_memory(), rig.gpu.migrates()?, request.mode);
    rig.largest = limits.largest;
    let mut identity = rig.identity()?;
    identity.link = rig.link_under_load()?;
    let mut samples = Samples {
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
        skipped: left_out(request, &limits),
    };
    measure_all(&mut rig, &tasks(request.mode, &request.suites, &limits), &mut samples, progress)?;
    (samples.device_bytes, samples.host_bytes) = held_at_most();
    samples.wall_s = began.elapsed().as_secs_f64();
    Ok(samples)
}

fn measure_all(
    rig: &mut Rig<'_>,
    tasks: &[Task],
    samples: &mut Samples,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), CudaError> {
    for (done, task) in tasks.iter().enumerate() {
        progress(Progress { done, of: tasks.len(), what: task.to_string() });
        let why = match measure(rig, *task) {
            Ok(case) => {
                samples.cases.push(case);
                continue;
            }
            Err(Trouble::Driver(CudaError::Stopped)) => {
                samples.interrupted = true;
                break;
            }
            Err(Trouble::CannotRun(why)) => why,
            // One task that fails does not lose the others; a GPU that no longer answers does.
            Err(Trouble::Driver(error)) => {
                if rig.gpu.make_current().and_then(|()| rig.main.synchronize()).is_err() {
                    return Err(error);
                }
                rig.buffers.clear();
                error.to_string()
            }
        };
        let skip = Skipped { suite: task.suite(), why };
        if !samples.skipped.contains(&skip) {
            samples.skipped.push(skip);
        }
    }
    Ok(())
}

/// The registry of what is measured: one line a suite.
fn measure(rig: &mut Rig<'_>, task: Task) -> Result<Case, Trouble> {
    Ok(match task {
        Task::Copy(task) => copy::measure(rig, task)?.into(),
        Task::Duplex(task) => duplex::measure(rig, task)?.into(),
        Task::PeerToPeer(task) => peer_to_peer::measure(rig, task)?.into(),
        Task::Latency(task) => latency::measure(rig, task)?.into(),
        Task::Overlap(task) => overlap::measure(rig, task)?.into(),
        Task::DoubleBuffer(task) => double_buffer::measure(rig, task)?.into(),
        Task::Offload(task) => offload::measure(rig, task)?.into(),
        Task::AllReduce(task) => all_reduce::measure(rig, task)?.into(),
        Task::Power(task) => power::measure(rig, task)?.into(),
        Task::Hbm(task) => hbm::measure(rig, task)?.into(),
    })
}

/// What is known beforehand not to run on this machine.
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
    fn only_suites_that_were_asked_for_are_said_to_be_left_out_each_once() {
        let limits = Limits { gpus: 1, largest: 1 << 20, managed: false };
        let left_out = |mode, suites: &[Suite]| {
            let (suites, date, version) = (suites.to_vec(), String::new(), String::new());
            let skipped = left_out(&Request { gpu: 0, mode, suites, date, version }, &limits);
            skipped.into_iter().map(|skip| skip.suite).collect::<Vec<_>>()
        };
        let (peers, copy) = (Suite::PeerToPeer, Suite::Copy);
        assert_eq!(left_out(Mode::Full, Suite::ALL), [copy, peers]);
        assert_eq!(left_out(Mode::Quick, Suite::ALL), [peers]);
        assert_eq!(left_out(Mode::Full, &[copy, copy, Suite::Hbm]), [copy]);
        assert!(left_out(Mode::Full, &[Suite::Hbm]).is_empty());
    }
}
