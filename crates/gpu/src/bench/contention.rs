//! How much slower are pinned copies while something else runs?

use busbound_machine::bench::{
    ContentionCase, ContentionLoad, ContentionTask, Direction, Memory, OtherCopies,
};

use super::buffers::{Filled, SEED};
use super::companion::{BATCH, Companion, CompanionTask};
use super::overlap::{STREAMED, max_covered, to_cover};
use super::rig::{Rig, Timed, per_repetition};
use super::task_error::TaskError;
use crate::driver::{DeviceBuffer, Event, Gpu, Result, Stream};

type Measured = std::result::Result<ContentionCase, TaskError>;

pub(super) fn measure(rig: &mut Rig<'_>, task: ContentionTask) -> Measured {
    rig.buffers.clear();
    let copied = Copied::new(rig, task)?;
    let measured = match task.load {
        ContentionLoad::Nothing => alone(rig, &copied),
        ContentionLoad::OtherDirection | ContentionLoad::DeviceCopy | ContentionLoad::MemoryKernel => {
            beside_own_work(rig, task, &copied)
        }
        ContentionLoad::SecondProcess => beside_process(rig, task, &copied),
        ContentionLoad::OtherGpus => on_all_gpus(rig, task, &copied),
        ContentionLoad::PeerOut | ContentionLoad::PeerIn => beside_peer(rig, task, &copied),
    };
    // Other suites expect their own GPU.
    rig.gpu.make_current()?;
    let (copies, ns, others) = measured?;
    let verified = copied.is_right(rig)?;
    Ok(ContentionCase { task, copies, ns, others, verified })
}

/// Copies per repetition, their times, and those of others.
type Times = (u32, Vec<u64>, Vec<OtherCopies>);

/// What is copied, on both sides.
struct Copied {
    direction: Direction,
    bytes: u64,
    host: Filled,
    device: DeviceBuffer,
}

impl Copied {
    fn new(rig: &Rig<'_>, task: ContentionTask) -> Result<Self> {
        let ContentionTask { direction, bytes, .. } = task;
        let (mut host, device) = (Filled::new(bytes, Memory::Pinned)?, DeviceBuffer::new(bytes)?);
        if direction == Direction::D2h {
            host.will_be_overwritten();
            rig.kernels.fill(&rig.main, &device, bytes, bytes)?;
            rig.main.synchronize()?;
        }
        Ok(Self { direction, bytes, host, device })
    }

    fn queue(&self, stream: &Stream, times: u32) -> Result<()> {
        let Self { direction, bytes, host, device } = self;
        (0..times).try_for_each(|_| match direction {
            Direction::H2d => stream.to_device(device, 0, &host.buffer, 0, *bytes),
            Direction::D2h => stream.to_host(&host.buffer, 0, device, 0, *bytes),
        })
    }

    fn is_right(&self, rig: &Rig<'_>) -> Result<bool> {
        match self.direction {
            Direction::H2d => rig.kernels.holds(&rig.main, &self.device, self.bytes, SEED),
            Direction::D2h => Ok(self.host.holds(0, self.bytes, self.bytes, Memory::Pinned)),
        }
    }
}

fn alone(rig: &Rig<'_>, copied: &Copied) -> std::result::Result<Times, TaskError> {
    let once = |copies: u32| rig.held(|| copied.queue(&rig.main, copies));
    once(1)?;
    let copies = per_repetition(once(1)?, 2);
    Ok((copies, rig.repeat(rig.mode.patience(), || once(copies))?, Vec::new()))
}

/// The load runs on another stream, longer than the copies.
fn beside_own_work(
    rig: &Rig<'_>,
    task: ContentionTask,
    copied: &Copied,
) -> std::result::Result<Times, TaskError> {
    let streamed = STREAMED.min(rig.largest);
    let size = if task.load == ContentionLoad::OtherDirection { task.bytes } else { streamed };
    let (from, to) = (DeviceBuffer::new(size)?, DeviceBuffer::new(size)?);
    let opposite = match task.direction {
        Direction::H2d => Direction::D2h,
        Direction::D2h => Direction::H2d,
    };
    let back = match task.load {
        ContentionLoad::OtherDirection => {
            Some(Copied::new(rig, ContentionTask { direction: opposite, ..task })?)
        }
        _ => None,
    };
    let load = |times: u32| {
        (0..times).try_for_each(|_| match (&back, task.load) {
            (Some(back), _) => back.queue(&rig.side, 1),
            (None, ContentionLoad::DeviceCopy) => rig.side.on_device(&to, &from, size),
            (None, _) => rig.kernels.copy(&rig.side, to.at(0), from.at(0), size),
        })
    };
    let copies_alone = |copies: u32| rig.on_both_streams(Timed::Main, || copied.queue(&rig.main, copies));
    let load_alone = |times: u32| rig.on_both_streams(Timed::Side, || load(times));
    copies_alone(1)?;
    load_alone(1)?;
    let (one_copy, one_load) = (copies_alone(1)?, load_alone(4)?.div_ceil(4));
    let copies = per_repetition(one_copy, 2).min(max_covered(one_copy, one_load));
    let loads = to_cover(&[u64::from(copies) * one_copy], one_load);
    let ns = rig.repeat(rig.mode.patience(), || {
        rig.on_both_streams(Timed::Main, || load(loads).and_then(|()| copied.queue(&rig.main, copies)))
    })?;
    Ok((copies, ns, Vec::new()))
}

/// Without a hold: it is a kernel that spins, and GPUs switch between the kernels of processes.
fn beside_process(
    rig: &Rig<'_>,
    task: ContentionTask,
    copied: &Copied,
) -> std::result::Result<Times, TaskError> {
    let program =
        rig.program.as_deref().ok_or_else(|| TaskError::CannotRun("this program is unknown".to_owned()))?;
    let theirs = CompanionTask { direction: task.direction, bytes: task.bytes };
    let mut companion = Companion::start(program, rig.gpu.ordinal(), theirs)?;
    companion.go()?;
    let ns = rig.repeat(rig.mode.step_patience(), || rig.unheld(|| copied.queue(&rig.main, BATCH)))?;
    Ok((BATCH, ns, vec![companion.stop()?]))
}

/// The same copies on another GPU. Fields are dropped in order: buffers before their GPU.
struct OnOther {
    copied: (Filled, DeviceBuffer),
    stream: Stream,
    events: (Event, Event),
    gpu: Gpu,
}

impl OnOther {
    fn new(gpu: u32, bytes: u64) -> Result<Self> {
        let gpu = Gpu::open(gpu)?;
        gpu.make_current()?;
        let copied = (Filled::new(bytes, Memory::Pinned)?, DeviceBuffer::new(bytes)?);
        Ok(Self { copied, stream: Stream::new()?, events: (Event::new()?, Event::new()?), gpu })
    }

    fn queue(&self, direction: Direction, bytes: u64, times: u32) -> Result<()> {
        self.gpu.make_current()?;
        self.stream.record(&self.events.0)?;
        let (host, device) = &self.copied;
        (0..times).try_for_each(|_| match direction {
            Direction::H2d => self.stream.to_device(device, 0, &host.buffer, 0, bytes),
            Direction::D2h => self.stream.to_host(&host.buffer, 0, device, 0, bytes),
        })?;
        self.stream.record(&self.events.1)
    }

    fn ns(&self) -> Result<u64> {
        self.gpu.make_current()?;
        self.stream.synchronize()?;
        self.events.1.ns_since(&self.events.0)
    }
}

/// Without a hold, whose flag is mapped for one GPU only: a repetition takes far longer than to queue it.
fn on_all_gpus(
    rig: &Rig<'_>,
    task: ContentionTask,
    copied: &Copied,
) -> std::result::Result<Times, TaskError> {
    let own = rig.gpu.ordinal();
    let others: Vec<OnOther> = (0..rig.gpus)
        .filter(|gpu| *gpu != own)
        .map(|gpu| OnOther::new(gpu, task.bytes))
        .collect::<Result<_>>()?;
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); others.len()];
    let ns = rig.repeat(rig.mode.step_patience(), || {
        others.iter().try_for_each(|other| other.queue(task.direction, task.bytes, BATCH))?;
        rig.gpu.make_current()?;
        let own = rig.unheld(|| copied.queue(&rig.main, BATCH))?;
        for (other, times) in others.iter().zip(&mut times) {
            times.push(other.ns()?);
        }
        rig.gpu.make_current()?;
        Ok(own)
    })?;
    // The first repetition is the warm-up.
    let of_other = |times: Vec<u64>| OtherCopies { copies: BATCH, ns: times.into_iter().skip(1).collect() };
    let others_times = times.into_iter().map(of_other).collect();
    free(rig, others)?;
    Ok((BATCH, ns, others_times))
}

/// Buffers are freed on their own GPU.
fn free(rig: &Rig<'_>, others: Vec<OnOther>) -> Result<()> {
    for other in others {
        other.gpu.make_current()?;
        drop(other);
    }
    rig.gpu.make_current()
}

/// Copies between this GPU and the next one run on a stream of the GPU that sends.
fn beside_peer(
    rig: &Rig<'_>,
    task: ContentionTask,
    copied: &Copied,
) -> std::result::Result<Times, TaskError> {
    let other = (rig.gpu.ordinal() + 1) % rig.gpus;
    let theirs = OnOther::new(other, task.bytes)?;
    rig.gpu.make_current()?;
    let here = DeviceBuffer::new(task.bytes)?;
    let there = &theirs.copied.1;
    let sends = task.load == ContentionLoad::PeerOut;
    let peer = |times: u32| -> Result<()> {
        if sends {
            return (0..times)
                .try_for_each(|_| rig.side.to_peer(there, &theirs.gpu, &here, &rig.gpu, task.bytes));
        }
        theirs.gpu.make_current()?;
        (0..times)
            .try_for_each(|_| theirs.stream.to_peer(&here, &rig.gpu, there, &theirs.gpu, task.bytes))?;
        rig.gpu.make_current()
    };
    let finish = || -> Result<()> {
        rig.side.synchronize()?;
        theirs.gpu.make_current()?;
        theirs.stream.synchronize()?;
        rig.gpu.make_current()
    };
    rig.gpu.reaches(&theirs.gpu)?;
    let one_peer = time_of(|| peer(8).and_then(|()| finish()))?.div_ceil(8);
    let one_copy = rig.unheld(|| copied.queue(&rig.main, 1))?;
    let copies = per_repetition(one_copy, 2).min(max_covered(one_copy, one_peer));
    let peers = to_cover(&[u64::from(copies) * one_copy], one_peer);
    let ns = rig.repeat(rig.mode.patience(), || {
        peer(peers)?;
        let own = rig.unheld(|| copied.queue(&rig.main, copies))?;
        finish()?;
        Ok(own)
    })?;
    drop(here);
    free(rig, vec![theirs])?;
    Ok((copies, ns, Vec::new()))
}

/// Of the second time: the first one includes what the driver sets up.
fn time_of(work: impl Fn() -> Result<()>) -> Result<u64> {
    work()?;
    super::rig::host_ns(work)
}
