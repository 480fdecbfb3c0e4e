//! How fast is one copy of a given size, or many in a row?

use std::cell::Cell;

use busbound_machine::bench::{CopyCase, CopyTask, Direction, Engine, Memory, Pace};

use super::rig::{Rig, per_repetition};
use crate::driver::{DeviceBuffer, HostBuffer, Result};

/// The pattern on the device before a copy to it, so that stale data does not pass for new data.
const STALE: u64 = 1 << 40;

pub(super) fn measure(rig: &mut Rig<'_>, task: CopyTask) -> Result<CopyCase> {
    if task.memory == Memory::Managed {
        return migrate(rig, task);
    }
    let mut buffers = std::mem::take(&mut rig.buffers);
    let measured = with(rig, task, buffers.prepare(task.memory, rig.largest)?);
    rig.buffers = buffers;
    measured
}

fn with(
    rig: &Rig<'_>,
    task: CopyTask,
    (host, device): (&mut super::buffers::Filled, &DeviceBuffer),
) -> Result<CopyCase> {
    let CopyTask { direction, memory, bytes, .. } = task;
    let seed = match direction {
        Direction::H2d => {
            host.restore();
            rig.kernels.fill(&rig.main, device, bytes, STALE)?;
            super::buffers::SEED
        }
        Direction::D2h => {
            host.will_be_overwritten();
            rig.kernels.fill(&rig.main, device, bytes, bytes)?;
            bytes
        }
    };
    rig.main.synchronize()?;
    // The host address of staged copies moves on: data that was just copied is in the CPU cache, from which staging
    // is 1.5x as fast.
    let places = if memory == Memory::Pageable { (host.buffer.bytes() / bytes).max(1) } else { 1 };
    let next = Cell::new(0);
    let place = || {
        let now = next.get();
        next.set((now + 1) % places);
        now * bytes
    };
    let once = |copies: u32| {
        let queue = || (0..copies).try_for_each(|_| one(rig, task, (&host.buffer, place()), device));
        if memory == Memory::Pageable { rig.unheld(queue) } else { rig.held(queue) }
    };
    once(1)?;
    let copies = match task.pace {
        Pace::Single => 1,
        Pace::BackToBack => per_repetition(once(1)?, 2),
    };
    let ns = rig.repeat(rig.mode.patience(), || once(copies))?;
    // The last address copied from or to.
    let last = (next.get() + places - 1) % places * bytes;
    let verified = match direction {
        Direction::H2d => rig.kernels.holds(&rig.main, device, bytes, seed + last / 8)?,
        Direction::D2h => host.holds(last, bytes, seed, memory),
    };
    Ok(CopyCase { task, copies, ns, verified })
}

fn one(rig: &Rig<'_>, task: CopyTask, (host, at): (&HostBuffer, u64), device: &DeviceBuffer) -> Result<()> {
    match (task.engine, task.direction) {
        (Engine::CopyEngine, Direction::H2d) => rig.main.to_device(device, 0, host, at, task.bytes),
        (Engine::CopyEngine, Direction::D2h) => rig.main.to_host(host, at, device, 0, task.bytes),
        (Engine::Kernel, Direction::H2d) => {
            rig.kernels.copy(&rig.main, device.at(0), host.device_pointer()? + at, task.bytes)
        }
        (Engine::Kernel, Direction::D2h) => {
            rig.kernels.copy(&rig.main, host.device_pointer()? + at, device.at(0), task.bytes)
        }
    }
}

/// Managed memory is migrated instead of copied; each time it must be migrated back first.
fn migrate(rig: &mut Rig<'_>, task: CopyTask) -> Result<CopyCase> {
    let mut buffers = std::mem::take(&mut rig.buffers);
    let managed = buffers.managed(rig.largest)?;
    rig.kernels.fill(&rig.main, managed.as_device(), task.bytes, task.bytes)?;
    let (there, back) = match task.direction {
        Direction::H2d => (Some(&rig.gpu), None),
        Direction::D2h => (None, Some(&rig.gpu)),
    };
    let ns = rig.repeat(rig.mode.patience(), || {
        rig.main.migrate(managed, task.bytes, back)?;
        rig.main.synchronize()?;
        rig.unheld(|| rig.main.migrate(managed, task.bytes, there))
    })?;
    let verified = rig.kernels.holds(&rig.main, managed.as_device(), task.bytes, task.bytes)?;
    rig.buffers = buffers;
    Ok(CopyCase { task, copies: 1, ns, verified })
}
