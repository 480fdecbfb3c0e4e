//! How fast are copies between the GPU and the memory of one NUMA node?

use std::path::Path;

use busbound_machine::bench::{Direction, Memory, NumaCase, NumaTask};

use super::buffers::{Filled, SEED};
use super::rig::{Rig, per_repetition};
use super::task_error::TaskError;
use crate::driver::{DeviceBuffer, Result};
use crate::host;

pub(super) fn measure(rig: &mut Rig<'_>, task: NumaTask) -> std::result::Result<NumaCase, TaskError> {
    rig.buffers.clear();
    let NumaTask { node, direction, bytes } = task;
    let mut host = memory_of(node, bytes)?;
    check_placement(rig, &host, node)?;
    let device = DeviceBuffer::new(bytes)?;
    if direction == Direction::D2h {
        host.will_be_overwritten();
        rig.kernels.fill(&rig.main, &device, bytes, bytes)?;
        rig.main.synchronize()?;
    }
    let once = |copies: u32| {
        rig.held(|| {
            (0..copies).try_for_each(|_| match direction {
                Direction::H2d => rig.main.to_device(&device, 0, &host.buffer, 0, bytes),
                Direction::D2h => rig.main.to_host(&host.buffer, 0, &device, 0, bytes),
            })
        })
    };
    once(1)?;
    let copies = per_repetition(once(1)?, 2);
    let ns = rig.repeat(rig.mode.patience(), || once(copies))?;
    let verified = match direction {
        Direction::H2d => rig.kernels.holds(&rig.main, &device, bytes, SEED)?,
        Direction::D2h => host.holds(0, bytes, bytes, Memory::Pinned),
    };
    Ok(NumaCase { task, copies, ns, verified })
}

/// Pinned memory is placed near the thread that allocates it.
fn memory_of(node: u32, bytes: u64) -> std::result::Result<Filled, TaskError> {
    let nodes = host::nodes(Path::new("/"));
    let cpus = nodes.iter().find(|(known, _)| *known == node).map(|(_, cpus)| cpus);
    let made = cpus.and_then(|cpus| on_cpus(cpus, || Filled::new(bytes, Memory::Pinned)));
    let made = made.ok_or_else(|| {
        TaskError::CannotRun(format!("this process may not run on the CPUs of NUMA node {node}"))
    })?;
    Ok(made?)
}

#[cfg(target_os = "linux")]
fn on_cpus(cpus: &str, make: impl FnOnce() -> Result<Filled>) -> Option<Result<Filled>> {
    crate::affinity::on_cpus(cpus, make)
}

/// Other systems list no nodes.
#[cfg(not(target_os = "linux"))]
fn on_cpus(_: &str, _: impl FnOnce() -> Result<Filled>) -> Option<Result<Filled>> {
    None
}

/// A rate of memory on another node would be wrong.
fn check_placement(rig: &mut Rig<'_>, host: &Filled, node: u32) -> std::result::Result<(), TaskError> {
    match node_of(host) {
        Some(found) if found != node => Err(TaskError::CannotRun(format!(
            "memory for NUMA node {node} was placed on node {found}: the process is bound to that node's memory"
        ))),
        Some(_) => Ok(()),
        None => {
            let why = "the kernel does not say on which node pinned memory is: the placement is not checked";
            rig.notes.push(why.to_owned());
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
fn node_of(host: &Filled) -> Option<u32> {
    let words = host.buffer.words();
    busbound_capture::inject::node_of_memory(words.as_ptr() as usize, size_of_val(words))
}

#[cfg(not(target_os = "linux"))]
fn node_of(_: &Filled) -> Option<u32> {
    None
}
