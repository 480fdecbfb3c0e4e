//! How long is a step whose weights come from host memory?

use busbound_machine::bench::{OffloadCase, OffloadTask};

use super::layers::Layers;
use super::rig::Rig;
use crate::driver::Result;

pub(super) fn measure(rig: &mut Rig<'_>, task: OffloadTask) -> Result<OffloadCase> {
    let mut buffers = std::mem::take(&mut rig.buffers);
    let (host, _) = buffers.prepare(task.memory, rig.largest)?;
    let patience = rig.mode.step_patience();
    let measured = (|| {
        let mut layers = Layers::new(rig, host, task.layers, task.bytes, task.memory, task.depth + 1)?;
        let copy_ns = layers.copies_alone()?;
        layers.set_compute(task.compute_to_copy, &copy_ns)?;
        let compute_ns = rig.repeat(patience, || layers.compute_only())?;
        let step_ns = rig.repeat(patience, || layers.step(task.order))?;
        let verified = layers.saw_their_weights()?;
        Ok(OffloadCase { task, copy_ns, compute_ns, step_ns, verified })
    })();
    rig.buffers = buffers;
    measured
}
