//! How fast is a copy from one GPU's memory to another's, and does the data arrive?

use busbound_machine::bench::{PeerToPeerCase, PeerToPeerTask};

use super::rig::{Rig, per_repetition};
use crate::driver::{DeviceBuffer, Event, Gpu, Kernels, Result, Stream};

pub(super) fn measure(rig: &mut Rig<'_>, task: PeerToPeerTask) -> Result<PeerToPeerCase> {
    rig.buffers.clear();
    let measured = pair(rig, task);
    // Other suites expect their own GPU.
    rig.gpu.make_current()?;
    measured
}

fn pair(rig: &Rig<'_>, task: PeerToPeerTask) -> Result<PeerToPeerCase> {
    let PeerToPeerTask { from, to, bytes } = task;
    // Declared first, so that they are dropped last: buffers must be freed before their GPU.
    let (far, near) = (Gpu::open(to)?, Gpu::open(from)?);
    far.make_current()?;
    let far_kernels = Kernels::load(&far)?;
    let far_stream = Stream::new()?;
    let arrived = DeviceBuffer::new(bytes)?;
    arrived.zero()?;
    let direct = near.reaches(&far)?;
    near.make_current()?;
    let near_kernels = Kernels::load(&near)?;
    let stream = Stream::new()?;
    let sent = DeviceBuffer::new(bytes)?;
    near_kernels.fill(&stream, &sent, bytes, bytes)?;
    let (start, end) = (Event::new()?, Event::new()?);
    // Without a hold: its flag is mapped for one GPU only, and copies of this size take far longer than their launch.
    let once = |copies: u32| {
        stream.synchronize()?;
        stream.record(&start)?;
        (0..copies).try_for_each(|_| stream.to_peer(&arrived, &far, &sent, &near, bytes))?;
        stream.record(&end)?;
        stream.synchronize()?;
        end.ns_since(&start)
    };
    once(1)?;
    let copies = per_repetition(once(1)?, 4);
    let ns = rig.repeat(rig.mode.patience(), || once(copies))?;
    far.make_current()?;
    let verified = far_kernels.holds(&far_stream, &arrived, bytes, bytes)?;
    drop((arrived, far_stream, far_kernels));
    near.make_current()?;
    Ok(PeerToPeerCase { task, copies, direct, ns, verified })
}
