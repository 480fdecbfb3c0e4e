//! How long does the smallest operation of each kind take?

use busbound_machine::bench::{LatencyCase, LatencyKind, LatencyTask, Memory, Patience};

use super::rig::{Rig, host_ns};
use crate::driver::{DeviceBuffer, Event, HostBuffer, Result};

/// Single calls vary a lot: many are needed.
const MANY_CALLS: Patience = Patience { least: 200, most: 1000, ns: 100_000_000, within: 0.005 };
/// The smallest copy of data.
const SMALLEST_COPY: u64 = 4;
/// Kernels per repetition if one is too short to time.
const KERNELS_IN_A_ROW: u32 = 64;

pub(super) fn measure(rig: &mut Rig<'_>, task: LatencyTask) -> Result<LatencyCase> {
    let ns = match task.what {
        LatencyKind::LaunchCall => rig.repeat(MANY_CALLS, || {
            let ns = host_ns(|| rig.kernels.empty(&rig.main))?;
            rig.main.synchronize()?;
            Ok(ns)
        })?,
        LatencyKind::LaunchAndWait => rig.repeat(MANY_CALLS, || {
            host_ns(|| rig.kernels.empty(&rig.main).and_then(|()| rig.main.synchronize()))
        })?,
        LatencyKind::KernelToKernel => rig.repeat(MANY_CALLS, || {
            let all = rig.held(|| (0..KERNELS_IN_A_ROW).try_for_each(|_| rig.kernels.empty(&rig.main)))?;
            Ok((all / u64::from(KERNELS_IN_A_ROW)).max(1))
        })?,
        LatencyKind::SmallestCopyH2d | LatencyKind::SmallestCopyD2h => {
            let host = HostBuffer::new(4096, Memory::Pinned)?;
            let device = DeviceBuffer::new(4096)?;
            let copy = || match task.what {
                LatencyKind::SmallestCopyH2d => rig.main.to_device(&device, 0, &host, 0, SMALLEST_COPY),
                _ => rig.main.to_host(&host, 0, &device, 0, SMALLEST_COPY),
            };
            rig.repeat(MANY_CALLS, || host_ns(|| copy().and_then(|()| rig.main.synchronize())))?
        }
        LatencyKind::EventRecord => {
            let event = Event::new()?;
            rig.repeat(MANY_CALLS, || {
                let ns = host_ns(|| rig.main.record(&event))?;
                rig.main.synchronize()?;
                Ok(ns)
            })?
        }
        LatencyKind::EventWait => event_wait(rig)?,
        LatencyKind::StreamSynchronize => {
            rig.main.synchronize()?;
            rig.repeat(MANY_CALLS, || host_ns(|| rig.main.synchronize()))?
        }
    };
    Ok(LatencyCase { task, ns })
}

/// Kernels that alternate between two streams, each waiting for the previous one, minus the same on one stream.
fn event_wait(rig: &Rig<'_>) -> Result<Vec<u64>> {
    let events: Vec<Event> = (0..KERNELS_IN_A_ROW).map(|_| Event::new()).collect::<Result<_>>()?;
    rig.repeat(MANY_CALLS, || {
        let row = rig.held(|| (0..KERNELS_IN_A_ROW).try_for_each(|_| rig.kernels.empty(&rig.main)))?;
        let alternating = rig.held(|| {
            for pair in events.chunks_exact(2) {
                rig.main.record(&pair[0])?;
                rig.side.wait(&pair[0])?;
                rig.kernels.empty(&rig.side)?;
                rig.side.record(&pair[1])?;
                rig.main.wait(&pair[1])?;
                rig.kernels.empty(&rig.main)?;
            }
            Ok(())
        })?;
        Ok((alternating.saturating_sub(row) / u64::from(KERNELS_IN_A_ROW)).max(1))
    })
}
