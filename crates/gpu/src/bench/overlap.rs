//! How much do a copy and a kernel slow each other down when they overlap?

use busbound_machine::bench::{Direction, KernelKind, Memory, OverlapCase, OverlapTask};

use super::rig::{MAX_QUEUED, Rig, Timed, per_repetition};
use crate::driver::{DeviceBuffer, HostBuffer, Result, Stream};

/// Bytes that the memory-bound kernel copies: several times the largest cache.
pub(super) const STREAMED: u64 = 256 << 20;
/// About 1 ms of arithmetic on a large GPU.
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
    let copies = per_repetition(one_copy, 2).min(max_covered(one_copy, one_kernel));
    let launches = per_repetition(one_kernel, 2).min(max_covered(one_kernel, one_copy));
    let copy_alone_ns = rig.repeat(patience, || rig.held(|| copies_on(&rig.main, copies)))?;
    let kernel_alone_ns = rig.repeat(patience, || rig.held(|| kernels_on(&rig.main, launches)))?;
    let (cover_launches, cover_copies) =
        (to_cover(&copy_alone_ns, one_kernel), to_cover(&kernel_alone_ns, one_copy));
    let copy_beside_ns = rig.repeat(patience, || {
        rig.on_both_streams(Timed::Main, || {
            kernels_on(&rig.side, cover_launches).and_then(|()| copies_on(&rig.main, copies))
        })
    })?;
    let kernel_beside_ns = rig.repeat(patience, || {
        rig.on_both_streams(Timed::Main, || {
            copies_on(&rig.side, cover_copies).and_then(|()| kernels_on(&rig.main, launches))
        })
    })?;
    Ok(OverlapCase { task, copies, copy_alone_ns, copy_beside_ns, kernel_alone_ns, kernel_beside_ns })
}

/// How many of one side can be timed so that the other side, limited by the queue, covers them.
pub(super) fn max_covered(timed_ns: u64, covering_ns: u64) -> u32 {
    let most = f64::from(MAX_QUEUED) * covering_ns as f64 / (COVER * timed_ns as f64);
    (most as u32).max(1)
}

/// How many of one side cover the longest of these times of the other.
pub(super) fn to_cover(alone_ns: &[u64], one_ns: u64) -> u32 {
    let longest = alone_ns.iter().copied().max().unwrap_or(0) as f64;
    ((COVER * longest / one_ns as f64).ceil() as u32 + 1).min(MAX_QUEUED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_untimed_side_outlasts_the_timed_one() {
        for (one_copy, one_kernel) in [(20_000, 1_000_000), (1_000_000, 20_000), (300_000, 300_000)] {
            let copies = per_repetition(one_copy, 2).min(max_covered(one_copy, one_kernel));
            let alone = u64::from(copies) * one_copy;
            let launches = to_cover(&[alone, alone / 2], one_kernel);
            assert!(launches <= MAX_QUEUED);
            assert!(u64::from(launches) * one_kernel >= 2 * alone, "{copies} copies, {launches} kernels");
        }
        // Even if one is too long to be covered, one is timed.
        assert_eq!(max_covered(1_000_000_000, 10), 1);
    }
}
