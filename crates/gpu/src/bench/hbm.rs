//! How fast is the device's own memory?

use busbound_machine::bench::{Engine, HbmCase, HbmTask};

use super::rig::{Rig, per_repetition};
use crate::driver::{DeviceBuffer, Result};

pub(super) fn measure(rig: &mut Rig<'_>, task: HbmTask) -> Result<HbmCase> {
    let HbmTask { bytes, engine } = task;
    rig.buffers.clear();
    let (from, to) = (DeviceBuffer::new(bytes)?, DeviceBuffer::new(bytes)?);
    rig.kernels.fill(&rig.main, &from, bytes, bytes)?;
    to.zero()?;
    rig.main.synchronize()?;
    let once = |copies: u32| {
        rig.held(|| {
            (0..copies).try_for_each(|_| match engine {
                Engine::CopyEngine => rig.main.on_device(&to, &from, bytes),
                Engine::Kernel => rig.kernels.copy(&rig.main, to.at(0), from.at(0), bytes),
            })
        })
    };
    once(1)?;
    let copies = per_repetition(once(1)?, 2);
    let ns = rig.repeat(rig.mode.patience(), || once(copies))?;
    let verified = rig.kernels.holds(&rig.main, &to, bytes, bytes)?;
    Ok(HbmCase { task, copies, ns, verified })
}
