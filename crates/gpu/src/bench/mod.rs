//! What does this machine really reach? Runs the tasks that `busbound_machine::bench` plans and hands back the
//! raw times. Nothing is set on the GPU: no clock, no mode, and all memory is given back, also when stopped.

mod allreduce;
mod buffers;
mod copy;
mod duplex;
mod hbm;
mod latency;
mod layers;
mod overlap;
mod peer;
mod power;
mod rig;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use busbound_machine::bench::{Case, Mode, SAMPLES_SCHEMA, Samples, Skipped, Suite, Task, limits, tasks};

use crate::driver::{CudaError, held_at_most};
use crate::host;
use rig::Rig;

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
        skipped: skipped(request, gpus, limits.managed),
    };
    let all = tasks(request.mode, &request.suites, &limits);
    for (done, task) in all.iter().enumerate() {
        progress(Progress { done, of: all.len(), what: task.to_string() });
        match measure(&mut rig, task) {
            Ok(case) => samples.cases.push(case),
            Err(Trouble::Skip(skip)) => {
                if !samples.skipped.contains(&skip) {
                    samples.skipped.push(skip);
                }
            }
            Err(Trouble::Driver(CudaError::Stopped)) => {
                samples.interrupted = true;
                break;
            }
            // One task that fails does not lose the others; a GPU that no longer answers does.
            Err(Trouble::Driver(error)) => {
                if rig.gpu.make_current().and_then(|()| rig.main.synchronize()).is_err() {
                    return Err(error);
                }
                rig.buffers.clear();
                let skip = Skipped { suite: task.suite(), why: error.to_string() };
                if !samples.skipped.contains(&skip) {
                    samples.skipped.push(skip);
                }
            }
        }
    }
    (samples.device_bytes, samples.host_bytes) = held_at_most();
    samples.wall_s = began.elapsed().as_secs_f64();
    Ok(samples)
}

/// Why a task has no times.
#[derive(Debug)]
enum Trouble {
    /// It cannot be done here, and the rest can.
    Skip(Skipped),
    Driver(CudaError),
}

impl From<CudaError> for Trouble {
    fn from(error: CudaError) -> Self {
        Self::Driver(error)
    }
}

fn measure(rig: &mut Rig<'_>, task: &Task) -> Result<Case, Trouble> {
    Ok(match task {
        Task::Copy(task) => copy::measure(rig, *task)?,
        Task::Duplex { bytes } => duplex::measure(rig, *bytes)?,
        Task::PeerToPeer { from, to, bytes } => peer::measure(rig, *from, *to, *bytes)?,
        Task::Latency { what } => latency::measure(rig, *what)?,
        Task::Overlap(task) => overlap::measure(rig, *task)?,
        Task::DoubleBuffer(task) => layers::double_buffer(rig, *task)?,
        Task::Offload(task) => layers::offload(rig, *task)?,
        Task::AllReduce(task) => allreduce::measure(rig, *task)?,
        Task::Power { duty_percent, seconds } => power::measure(rig, *duty_percent, *seconds)?,
        Task::Hbm { bytes, engine } => hbm::measure(rig, *bytes, *engine)?,
    })
}

fn skipped(request: &Request, gpus: u32, managed: bool) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    let mut skip = |suite, why: &str| {
        if request.suites.contains(&suite) {
            skipped.push(Skipped { suite, why: why.to_owned() });
        }
    };
    if gpus == 1 {
        skip(Suite::PeerToPeer, "CUDA shows one GPU here: there is no other to copy to");
    }
    if !managed && request.mode == Mode::Full {
        skip(Suite::Copy, "managed memory does not migrate on this machine and was left out");
    }
    skipped
}
