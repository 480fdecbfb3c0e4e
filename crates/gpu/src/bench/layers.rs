//! Weight offload: weights in host memory are copied in for each layer, in the orders used in practice.
//!
//! Each layer folds the weights it read into its own word. A prefetch that overwrites a slot too early changes that
//! word, and its time does not count.

use std::cell::Cell;

use busbound_machine::bench::{Memory, Order, Spread};

use super::buffers::Filled;
use super::rig::Rig;
use crate::driver::{DeviceBuffer, Event, Result};

/// Iterations of the arithmetic loop to measure its speed.
const PROBE_TURNS: u32 = 4_000;

/// Buffers and events of one configuration.
pub(super) struct Layers<'r, 'a> {
    rig: &'r Rig<'a>,
    host: &'r Filled,
    /// The folded value of each slice of host memory.
    folded: Vec<u64>,
    slots: DeviceBuffer,
    slot_count: u32,
    seen: DeviceBuffer,
    ready: Vec<Event>,
    done: Vec<Event>,
    layers: u32,
    bytes: u64,
    memory: Memory,
    turns: u32,
    /// The slice of the step's first layer.
    first: Cell<usize>,
}

impl<'r, 'a> Layers<'r, 'a> {
    pub(super) fn new(
        rig: &'r Rig<'a>,
        host: &'r mut Filled,
        layers: u32,
        bytes: u64,
        memory: Memory,
        slot_count: u32,
    ) -> Result<Self> {
        host.restore();
        // Weights come from the whole buffer, and each step uses other slices than the last one: otherwise the
        // weights of a few small layers would stay in the CPU cache. Layers share slices if all of them would need
        // too much memory.
        let places = (host.buffer.bytes() / bytes).max(1);
        let words = (bytes / 8) as usize;
        let folded = host
            .buffer
            .words()
            .chunks_exact(words)
            .take(places as usize)
            .map(|place| place.iter().fold(0, |all, word| all ^ word));
        let events = || (0..layers).map(|_| Event::new()).collect::<Result<Vec<_>>>();
        let slots = DeviceBuffer::new(bytes * u64::from(slot_count))?;
        slots.zero()?;
        Ok(Self {
            rig,
            folded: folded.collect(),
            host,
            slots,
            slot_count,
            seen: DeviceBuffer::new(8 * u64::from(layers))?,
            ready: events()?,
            done: events()?,
            layers,
            bytes,
            memory,
            turns: 0,
            first: Cell::new(0),
        })
    }

    /// One layer's copy without any compute, from memory as cold as in a step.
    pub(super) fn copies_alone(&self) -> Result<Vec<u64>> {
        let rig = self.rig;
        rig.repeat(rig.mode.step_patience(), || {
            self.first.set(self.place(self.layers));
            let queue = || (0..self.layers).try_for_each(|layer| self.copy(&rig.main, layer));
            let all = if self.memory == Memory::Pageable { rig.unheld(queue)? } else { rig.held(queue)? };
            Ok((all / u64::from(self.layers)).max(1))
        })
    }

    /// Sets the compute time of a layer to this multiple of its copy time.
    pub(super) fn set_compute(&mut self, compute_to_copy: f64, copy_ns: &[u64]) -> Result<()> {
        let rig = self.rig;
        let copy_ns = Spread::of_ns(copy_ns).map_or(0.0, |spread| spread.median);
        let kernel = |turns: u32| {
            let one = || {
                rig.held(|| {
                    rig.kernels.layer(&rig.main, self.slots.at(0), self.bytes, turns, self.seen.at(0))
                })
            };
            one()?;
            Ok::<_, crate::driver::CudaError>((one()?.min(one()?)) as f64)
        };
        let (reading, probed) = (kernel(0)?, kernel(PROBE_TURNS)?);
        self.turns = turns_for(compute_to_copy * copy_ns, reading, probed);
        Ok(())
    }

    fn slot(&self, layer: u32) -> u64 {
        u64::from(layer % self.slot_count) * self.bytes
    }

    fn place(&self, layer: u32) -> usize {
        (self.first.get() + layer as usize) % self.folded.len()
    }

    fn copy(&self, stream: &crate::driver::Stream, layer: u32) -> Result<()> {
        let from = self.place(layer) as u64 * self.bytes;
        stream.to_device(&self.slots, self.slot(layer), &self.host.buffer, from, self.bytes)
    }

    fn compute(&self, layer: u32) -> Result<()> {
        let weights = self.slots.at(self.slot(layer));
        let seen = self.seen.at(8 * u64::from(layer));
        self.rig.kernels.layer(&self.rig.main, weights, self.bytes, self.turns, seen)
    }

    pub(super) fn compute_only(&self) -> Result<u64> {
        self.rig.held(|| (0..self.layers).try_for_each(|layer| self.compute(layer)))
    }

    /// One step from the first copy to the end of the last layer.
    pub(super) fn step(&self, order: Order) -> Result<u64> {
        self.seen.zero()?;
        self.first.set(self.place(self.layers));
        let rig = self.rig;
        let queue = || match order {
            Order::Blocking => (0..self.layers).try_for_each(|layer| {
                self.copy(&rig.main, layer)?;
                rig.main.synchronize()?;
                self.compute(layer)
            }),
            Order::OneStream => (0..self.layers).try_for_each(|layer| {
                self.copy(&rig.main, layer)?;
                self.compute(layer)
            }),
            Order::Prefetched => self.prefetched(),
        };
        // If the host takes part, the stream must not be held.
        if self.memory == Memory::Pageable || order == Order::Blocking {
            rig.unheld(queue)
        } else {
            rig.held(queue)
        }
    }

    fn prefetched(&self) -> Result<()> {
        let (compute, copies) = (&self.rig.main, &self.rig.side);
        // The copies start with the step, not before.
        let begun = Event::new()?;
        compute.record(&begun)?;
        copies.wait(&begun)?;
        for layer in 0..self.layers {
            // A slot is free when the layer that last used it is done.
            if let Some(before) = layer.checked_sub(self.slot_count) {
                copies.wait(&self.done[before as usize])?;
            }
            self.copy(copies, layer)?;
            copies.record(&self.ready[layer as usize])?;
            compute.wait(&self.ready[layer as usize])?;
            self.compute(layer)?;
            compute.record(&self.done[layer as usize])?;
        }
        Ok(())
    }

    pub(super) fn saw_their_weights(&self) -> Result<bool> {
        let seen = self.seen.words(self.layers as usize)?;
        Ok(seen.iter().zip(0..).all(|(seen, layer)| *seen == self.folded[self.place(layer)]))
    }
}

/// Loop iterations for a layer of this duration, from the times without the loop and with the probe.
fn turns_for(wanted_ns: f64, reading_ns: f64, probed_ns: f64) -> u32 {
    let turn_ns = ((probed_ns - reading_ns) / f64::from(PROBE_TURNS)).max(0.1);
    ((wanted_ns - reading_ns) / turn_ns).clamp(1.0, 1e8) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_fill_the_time_that_reading_the_weights_leaves() {
        // The probe's 4000 iterations took 80 µs longer than reading: 20 ns each.
        assert_eq!(turns_for(110_000.0, 10_000.0, 90_000.0), 5_000);
        // A layer whose reading exceeds the wanted time still computes once.
        assert_eq!(turns_for(5_000.0, 10_000.0, 90_000.0), 1);
        // A noisy probe on a busy GPU does not lead to endless kernels.
        assert_eq!(turns_for(1e12, 10_000.0, 9_000.0), 100_000_000);
    }
}
