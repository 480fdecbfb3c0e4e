//! How long does it take to move many blocks that lie apart, by each method?
//!
//! The time is the host's, from the first call until it knows that all blocks arrived: the cost of the calls is what
//! the methods differ in.

use std::cell::Cell;

use busbound_machine::bench::{
    Direction, Mode, Patience, ScatterCase, ScatterMethod, ScatterTask, ScatterTimes,
};

use super::buffers::{Filled, SEED, Staging};
use super::rig::{Rig, host_ns};
use crate::driver::{BatchCall, CudaError, DeviceBuffer, HostBuffer, Result, Span, copy_on_host};

/// The pattern on the device before a method is verified; each has its own, so that the data of one does not pass for
/// that of another.
const STALE: u64 = 1 << 40;
/// Blocks that are compared per method.
const COMPARED: usize = 8;

pub(super) fn measure(rig: &mut Rig<'_>, task: ScatterTask) -> Result<ScatterCase> {
    let mut buffers = std::mem::take(&mut rig.buffers);
    let mut staging = buffers.take_staging(rig.largest)?;
    let (host, device) = buffers.prepare(task.memory, rig.largest)?;
    match task.direction {
        Direction::H2d => host.restore(),
        Direction::D2h => host.will_be_overwritten(),
    }
    let batch = BatchCall::find();
    let mut cell = ScatterCell { rig, task, host, device, staging: &mut staging, batch, round: Cell::new(0) };
    let (methods, notes) = cell.usable()?;
    let measured = cell.times(methods);
    rig.notes.extend(notes);
    buffers.give_staging(staging);
    rig.buffers = buffers;
    measured
}

fn patience(mode: Mode) -> Patience {
    match mode {
        Mode::Quick => Patience { least: 5, most: 20, ns: 10_000_000, within: 0.02 },
        Mode::Full => Patience { least: 5, most: 60, ns: 50_000_000, within: 0.01 },
    }
}

/// One cell of the grid.
struct ScatterCell<'a, 'r> {
    rig: &'a Rig<'r>,
    task: ScatterTask,
    host: &'a Filled,
    device: &'a DeviceBuffer,
    staging: &'a mut Staging,
    batch: Option<BatchCall>,
    /// Each run moves other blocks: data that was just moved is in the CPU's cache.
    round: Cell<u64>,
}

impl ScatterCell<'_, '_> {
    /// The methods that work here, with whether their data was correct; and why others do not.
    fn usable(&mut self) -> Result<(Vec<ScatterTimes>, Vec<String>)> {
        let (mut methods, mut notes) = (Vec::new(), Vec::new());
        for method in ScatterMethod::for_memory(self.task.memory) {
            if method == ScatterMethod::Batch && self.batch.is_none() {
                notes.push("the driver has no batch call (it needs CUDA 12.8), so it is left out".to_owned());
                continue;
            }
            match self.is_correct(method) {
                Ok(verified) => methods.push(ScatterTimes { method, ns: Vec::new(), verified }),
                // It may reject this kind of memory; the GPU goes on.
                Err(error) if method == ScatterMethod::Batch && self.rig.main.synchronize().is_ok() => {
                    let memory = self.task.memory.words();
                    notes.push(format!("the batch call does not work with {memory} memory: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((methods, notes))
    }

    /// The methods in turn, until the times of all are stable.
    fn times(&mut self, mut methods: Vec<ScatterTimes>) -> Result<ScatterCase> {
        let patience = patience(self.rig.mode);
        while !methods.iter().all(|times| patience.is_over(&times.ns)) {
            self.rig.check_stop()?;
            for times in methods.iter_mut().filter(|times| !patience.is_over(&times.ns)) {
                let spans = self.next_spans();
                times.ns.push(host_ns(|| self.run(times.method, &spans))?);
            }
        }
        Ok(ScatterCase { task: self.task, methods })
    }

    /// Runs a method once and compares some of its blocks. This is also its warm-up.
    fn is_correct(&mut self, method: ScatterMethod) -> Result<bool> {
        let (rig, bytes) = (self.rig, self.task.block_bytes);
        let seed = STALE * (method as u64 + 1);
        rig.kernels.fill(&rig.main, self.device, self.device.bytes(), seed)?;
        rig.main.synchronize()?;
        let spans = self.next_spans();
        self.run(method, &spans)?;
        for span in spans.iter().step_by(spans.len().div_ceil(COMPARED)).chain(spans.last()) {
            let arrived = match self.task.direction {
                Direction::H2d => {
                    rig.kernels.holds_at(&rig.main, self.device, span.device, bytes, SEED + span.host / 8)?
                }
                Direction::D2h => self.host.holds(span.host, bytes, seed + span.device / 8, self.task.memory),
            };
            if !arrived {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn next_spans(&self) -> Vec<Span> {
        let round = self.round.replace(self.round.get() + 1);
        spans(round, self.task.blocks, self.task.block_bytes, self.device.bytes())
    }

    /// Moves the blocks, and waits until they arrived.
    fn run(&mut self, method: ScatterMethod, spans: &[Span]) -> Result<()> {
        match method {
            ScatterMethod::Loop => self.one_by_one(spans)?,
            ScatterMethod::Batch => self.in_a_batch(spans)?,
            ScatterMethod::Kernel => self.by_a_kernel(spans)?,
            ScatterMethod::Staged => match self.task.direction {
                Direction::H2d => self.staged_to_device(spans)?,
                Direction::D2h => return self.staged_to_host(spans),
            },
        }
        self.rig.main.synchronize()
    }

    fn one_by_one(&self, spans: &[Span]) -> Result<()> {
        let (stream, bytes) = (&self.rig.main, self.task.block_bytes);
        let host: &HostBuffer = &self.host.buffer;
        spans.iter().try_for_each(|span| match self.task.direction {
            Direction::H2d => stream.to_device(self.device, span.device, host, span.host, bytes),
            Direction::D2h => stream.to_host(host, span.host, self.device, span.device, bytes),
        })
    }

    fn in_a_batch(&self, spans: &[Span]) -> Result<()> {
        let batch = self.batch.ok_or(CudaError::Driver("no batch call".to_owned()))?;
        let (stream, bytes) = (&self.rig.main, self.task.block_bytes);
        match self.task.direction {
            Direction::H2d => batch.to_device(stream, self.device, &self.host.buffer, spans, bytes),
            Direction::D2h => batch.to_host(stream, &self.host.buffer, self.device, spans, bytes),
        }
    }

    fn by_a_kernel(&mut self, spans: &[Span]) -> Result<()> {
        let host = self.host.buffer.device_pointer()?;
        self.staging.table.set(spans.iter().map(|span| {
            let (host, device) = (host + span.host, self.device.at(span.device));
            match self.task.direction {
                Direction::H2d => (device, host),
                Direction::D2h => (host, device),
            }
        }));
        self.rig.kernels.blocks(&self.rig.main, &self.staging.table, self.task.block_bytes)
    }

    fn staged_to_device(&mut self, spans: &[Span]) -> Result<()> {
        let (rig, bytes) = (self.rig, self.task.block_bytes);
        for (place, span) in (0..).step_by(bytes as usize).zip(spans) {
            copy_on_host(&self.staging.host, place, &self.host.buffer, span.host, bytes);
        }
        let all = bytes * spans.len() as u64;
        rig.main.to_device(&self.staging.device, 0, &self.staging.host, 0, all)?;
        let staged = (self.staging.device.at(0)..).step_by(bytes as usize);
        let to = spans.iter().map(|span| self.device.at(span.device));
        self.staging.table.set(to.zip(staged).collect::<Vec<_>>().into_iter());
        rig.kernels.blocks(&rig.main, &self.staging.table, bytes)
    }

    fn staged_to_host(&mut self, spans: &[Span]) -> Result<()> {
        let (rig, bytes) = (self.rig, self.task.block_bytes);
        let staged = (self.staging.device.at(0)..).step_by(bytes as usize);
        let from = spans.iter().map(|span| self.device.at(span.device));
        self.staging.table.set(staged.zip(from).collect::<Vec<_>>().into_iter());
        rig.kernels.blocks(&rig.main, &self.staging.table, bytes)?;
        let all = bytes * spans.len() as u64;
        rig.main.to_host(&self.staging.host, 0, &self.staging.device, 0, all)?;
        rig.main.synchronize()?;
        for (place, span) in (0..).step_by(bytes as usize).zip(spans) {
            copy_on_host(&self.host.buffer, span.host, &self.staging.host, place, bytes);
        }
        Ok(())
    }
}

/// Odd, so that every slot of a power of two is used once; no two neighbors stay neighbors.
const HOST_STRIDE: u64 = 0x9E37_79B5;
const DEVICE_STRIDE: u64 = 0x85EB_CA6B;

/// Where the blocks of a round lie, in two buffers of this many bytes.
fn spans(round: u64, blocks: u32, block_bytes: u64, buffer: u64) -> Vec<Span> {
    let slots = 1 << (buffer / block_bytes).max(1).ilog2();
    let at = |index: u64, stride: u64| index.wrapping_mul(stride) % slots * block_bytes;
    let first = round * u64::from(blocks);
    (first..first + u64::from(blocks))
        .map(|index| Span { host: at(index, HOST_STRIDE), device: at(index, DEVICE_STRIDE) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_fill_their_buffers_once_without_neighbors_and_move_on_every_round() {
        for (blocks, bytes, buffer) in [(16, 4096, 1 << 16), (256, 4 << 20, 1 << 30), (16, 28 << 10, 1 << 30)]
        {
            let all = spans(3, blocks, bytes, buffer);
            let offsets = |of: fn(&Span) -> u64| all.iter().map(of).collect::<BTreeSet<u64>>();
            let (host, device) = (offsets(|span| span.host), offsets(|span| span.device));
            assert_eq!((host.len(), device.len()), (blocks as usize, blocks as usize));
            assert!(host.iter().chain(&device).all(|at| at + bytes <= buffer));
            for pair in all.windows(2) {
                assert!(pair[0].host.abs_diff(pair[1].host) > bytes);
                assert!(pair[0].device.abs_diff(pair[1].device) > bytes);
            }
        }
        assert_ne!(spans(0, 16, 4096, 1 << 30), spans(1, 16, 4096, 1 << 30));
    }
}
