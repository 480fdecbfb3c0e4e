//! What do a copy and a kernel cost each other when they run at once?

use busbound_machine::bench::{Direction, KernelKind, Memory, OverlapCase, OverlapTask};

use super::rig::{MOST_QUEUED, Rig, Timed};
use crate::driver::{DeviceBuffer, HostBuffer, Result, Stream};

/// What the memory-bound kernel copies: several times the largest cache.
const STREAMED: u64 = 256 << 20;
/// Arithmetic of about a millisecond on a large GPU.
const TURNS: u32 = 40_000;
/// The untimed side lasts this much longer than the timed one would alone.
const COVER: f64 = 2.5;

pub(super) fn measure(rig: &mut Rig<'_>, task: OverlapTask) -> Result<OverlapCase> {
    rig.buffers.clear();
    let bytes = task.bytes;
    let host = HostBuffer::new(bytes, Memory::Pinned)?;
    let device = DeviceBuffer::new(bytes)?;
    let streamed = STREAMED.min(rig.largest);
    let (from, to) = (DeviceBuffer::new(streamed)?, DeviceBuffer::new(streamed)?);
    let copies_on = |stream: &Stream, times: u32| {
        (0..times).try_for_each(|_| match task.direction {
            Direction::H2d => stream.to_device(&device, 0, &host, 0, bytes),
            Direction::D2h => stream.to_host(&host, 0, &device, 0, bytes),
        })
    };
    let kernels_on = |stream: &Stream, times: u32| {
        (0..times).try_for_each(|_| match task.kernel {
            KernelKind::ComputeBound => rig.kernels.layer(stream, from.at(0), 0, TURNS, to.at(0)),
            KernelKind::MemoryBound => rig.kernels.copy(stream, to.at(0), from.at(0), streamed),
        })
    };
    let patience = rig.mode.patience();
    rig.held(|| copies_on(&rig.main, 1))?;
    rig.held(|| kernels_on(&rig.main, 1))?;
    let one_copy = rig.held(|| copies_on(&rig.main, 1))?;
    let one_kernel = rig.held(|| kernels_on(&rig.main, 1))?;
    // No more than what the other side can cover with what may be queued at once.
    let covered = |timed: u64, covering: u64| {
        let most = f64::from(MOST_QUEUED) * covering as f64 / (COVER * timed as f64);
        (most as u32).max(1)
    };
    let copies = rig.repetitions_of(one_copy, 2).min(covered(one_copy, one_kernel));
    let launches = rig.repetitions_of(one_kernel, 2).min(covered(one_kernel, one_copy));
    let copy_alone_ns = rig.repeat(patience, || rig.held(|| copies_on(&rig.main, copies)))?;
    let kernel_alone_ns = rig.repeat(patience, || rig.held(|| kernels_on(&rig.main, launches)))?;
    let cover = |alone: &[u64], one: u64| {
        let longest = alone.iter().copied().max().unwrap_or(0) as f64;
        ((COVER * longest / one as f64).ceil() as u32 + 1).min(MOST_QUEUED)
    };
    let (cover_launches, cover_copies) =
        (cover(&copy_alone_ns, one_kernel), cover(&kernel_alone_ns, one_copy));
    let copy_beside_ns = rig.repeat(patience, || {
        rig.together(Timed::Main, || {
            kernels_on(&rig.side, cover_launches).and_then(|()| copies_on(&rig.main, copies))
        })
    })?;
    let kernel_beside_ns = rig.repeat(patience, || {
        rig.together(Timed::Main, || {
            copies_on(&rig.side, cover_copies).and_then(|()| kernels_on(&rig.main, launches))
        })
    })?;
    Ok(OverlapCase { task, copies, copy_alone_ns, copy_beside_ns, kernel_alone_ns, kernel_beside_ns })
}
