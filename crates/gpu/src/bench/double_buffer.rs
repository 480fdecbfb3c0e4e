//! How much time does double buffering save compared to serialized copies and compute?

use busbound_machine::bench::{DoubleBufferCase, DoubleBufferTask, Memory, Order};

use super::layers::Layers;
use super::rig::Rig;
use crate::driver::Result;

pub(super) fn measure(rig: &mut Rig<'_>, task: DoubleBufferTask) -> Result<DoubleBufferCase> {
    let mut buffers = std::mem::take(&mut rig.buffers);
    let (host, _) = buffers.prepare(Memory::Pinned, rig.largest)?;
    let patience = rig.mode.step_patience();
    let measured = (|| {
        let mut layers = Layers::new(rig, host, task.chunks, task.bytes, Memory::Pinned, 2)?;
        layers.set_compute(task.compute_to_copy, &layers.copies_alone()?)?;
        let compute_ns = rig.repeat(patience, || layers.compute_only())?;
        let naive_ns = rig.repeat(patience, || layers.step(Order::OneStream))?;
        let naive_verified = layers.saw_their_weights()?;
        let buffered_ns = rig.repeat(patience, || layers.step(Order::Prefetched))?;
        let verified = naive_verified && layers.saw_their_weights()?;
        Ok(DoubleBufferCase { task, compute_ns, naive_ns, buffered_ns, verified })
    })();
    rig.buffers = buffers;
    measured
}
