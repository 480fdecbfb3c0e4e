//! How fast are both directions at the same time, and how much does each lose under the load of the other?

use busbound_machine::bench::{DuplexCase, DuplexTask, Memory};

use super::buffers::{Filled, SEED};
use super::rig::{Rig, Timed, per_repetition};
use crate::driver::{DeviceBuffer, Result};

pub(super) fn measure(rig: &mut Rig<'_>, task: DuplexTask) -> Result<DuplexCase> {
    let bytes = task.bytes;
    rig.buffers.clear();
    let up = Filled::new(bytes, Memory::Pinned)?;
    let mut down = Filled::new(bytes, Memory::Pinned)?;
    down.will_be_overwritten();
    let (to, from) = (DeviceBuffer::new(bytes)?, DeviceBuffer::new(bytes)?);
    rig.kernels.fill(&rig.main, &from, bytes, bytes)?;
    rig.main.synchronize()?;
    let h2d = |times: u32| (0..times).try_for_each(|_| rig.main.to_device(&to, 0, &up.buffer, 0, bytes));
    let d2h = |times: u32| (0..times).try_for_each(|_| rig.side.to_host(&down.buffer, 0, &from, 0, bytes));
    let copies = per_repetition(rig.held(|| h2d(1))?, 4);
    let measure = |timed: Timed, ups: u32, downs: u32| {
        rig.repeat(rig.mode.patience(), || rig.on_both_streams(timed, || h2d(ups).and_then(|()| d2h(downs))))
    };
    let together_ns = measure(Timed::Both, copies, copies)?;
    // Twice as many bytes in the other direction: that copy still runs when the timed copies end.
    let h2d_loaded_ns = measure(Timed::Main, copies, 2 * copies)?;
    let d2h_loaded_ns = measure(Timed::Side, 2 * copies, copies)?;
    let verified =
        rig.kernels.holds(&rig.main, &to, bytes, SEED)? && down.holds(0, bytes, bytes, Memory::Pinned);
    Ok(DuplexCase { task, copies, together_ns, h2d_loaded_ns, d2h_loaded_ns, verified })
}
