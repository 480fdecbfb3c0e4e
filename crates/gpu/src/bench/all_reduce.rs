//! How fast is an all-reduce over all GPUs of this process?

use busbound_machine::bench::{AllReduceCase, AllReduceTask, Memory, Processes};

use super::rig::{Rig, host_ns};
use super::task_error::TaskError;
use crate::driver::{CudaError, DeviceBuffer, Gpu, HostBuffer, Result, Stream};
use crate::nccl::{Nccl, Rank};

pub(super) const IN_A_ROW: u64 = 10;

/// The buffers of one GPU.
pub(super) struct Part {
    from: DeviceBuffer,
    pub(super) to: DeviceBuffer,
    stream: Stream,
    gpu: Gpu,
}

pub(super) fn measure(
    rig: &mut Rig<'_>,
    task: AllReduceTask,
) -> std::result::Result<AllReduceCase, TaskError> {
    rig.buffers.clear();
    if rig.nccl.is_none() {
        rig.nccl = Some(Nccl::start(rig.gpus));
        rig.gpu.make_current()?;
    }
    let measured = match rig.nccl.as_ref() {
        Some(Ok(nccl)) => run(rig, nccl, task),
        Some(Err(why)) => Err(TaskError::CannotRun(why.clone())),
        None => unreachable!("it was just started"),
    };
    if let Err(TaskError::CannotRun(why)) = &measured {
        // After a failure, NCCL is not tried again.
        rig.nccl = Some(Err(why.clone()));
    }
    rig.gpu.make_current()?;
    measured
}

fn run(rig: &Rig<'_>, nccl: &Nccl, task: AllReduceTask) -> std::result::Result<AllReduceCase, TaskError> {
    let count = (task.bytes / 4) as usize;
    let parts: Vec<Part> = (0..rig.gpus).map(|rank| part(rank, rank, task.bytes)).collect::<Result<_>>()?;
    let ranks: Vec<Rank<'_>> = parts.iter().map(Part::as_rank).collect();
    let mut failure = None;
    // Like nccl-tests: host time over several in a row, until all GPUs have finished.
    let ns = rig.repeat(rig.mode.patience(), || {
        let all = host_ns(|| {
            for _ in 0..IN_A_ROW {
                if let Err(why) = nccl.all_reduce(&ranks, count) {
                    failure = Some(why);
                    return Err(CudaError::Stopped);
                }
            }
            parts.iter().try_for_each(Part::synchronize)
        })?;
        Ok((all / IN_A_ROW).max(1))
    });
    if let Some(why) = failure {
        return Err(TaskError::CannotRun(why));
    }
    let ns = ns?;
    let verified = is_sum(&parts[0], task.bytes, rig.gpus)?;
    let processes = Processes::One;
    Ok(AllReduceCase { ranks: rig.gpus, processes, task, ns, verified, library: nccl.version.clone() })
}

impl Part {
    pub(super) fn as_rank(&self) -> Rank<'_> {
        Rank { gpu: &self.gpu, stream: &self.stream, from: &self.from, to: &self.to }
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        self.gpu.make_current()?;
        self.stream.synchronize()
    }
}

/// What a rank reduces, on the GPU with this number in this process.
pub(super) fn part(ordinal: u32, rank: u32, bytes: u64) -> Result<Part> {
    let gpu = Gpu::open(ordinal)?;
    let stream = Stream::new()?;
    let (from, to) = (DeviceBuffer::new(bytes)?, DeviceBuffer::new(bytes)?);
    to.zero()?;
    let mut host = HostBuffer::new(bytes, Memory::Pinned)?;
    for (i, word) in host.words_mut().iter_mut().enumerate() {
        *word = twice(value(i, rank));
    }
    stream.to_device(&from, 0, &host, 0, bytes)?;
    stream.synchronize()?;
    Ok(Part { from, to, stream, gpu })
}

/// Small integers: their sum over ranks is exact.
fn value(pair: usize, rank: u32) -> f32 {
    (pair % 1000) as f32 + rank as f32
}

pub(super) fn is_sum(part: &Part, bytes: u64, ranks: u32) -> Result<bool> {
    part.gpu.make_current()?;
    let host = HostBuffer::new(bytes, Memory::Pinned)?;
    part.stream.to_host(&host, 0, &part.to, 0, bytes)?;
    part.stream.synchronize()?;
    Ok(holds_sum(host.words(), ranks))
}

/// Two equal floats in one word.
fn twice(value: f32) -> u64 {
    let bits = u64::from(value.to_bits());
    bits << 32 | bits
}

fn holds_sum(words: &[u64], ranks: u32) -> bool {
    let expected = |pair: usize| (0..ranks).map(|rank| value(pair, rank)).sum::<f32>();
    words.iter().enumerate().all(|(pair, word)| *word == twice(expected(pair)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_over_ranks_is_exact_and_one_wrong_float_shows() {
        // 7 + (7 + 1) + (7 + 2) in both halves.
        assert_eq!(twice(24.0), 0x41C0_0000_41C0_0000);
        let mut words: Vec<u64> = (0..4096).map(|pair| twice(3.0 * value(pair, 0) + 3.0)).collect();
        assert!(holds_sum(&words, 3) && !holds_sum(&words, 2));
        words[4000] ^= 1 << 32;
        assert!(!holds_sum(&words, 3));
    }
}
