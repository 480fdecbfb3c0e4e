//! Which blocks of a model stay on the GPU, and how many slots are the others streamed through?
//!
//! The step is that of `busbound.offload`: blocks are copied in order into a ring of slots, a slot is filled as soon as
//! the block in it has run, and the copies go on into the next pass. The choice is made by simulation.

mod choice;
mod order;
mod placement;
pub(in crate::plan) mod ring;
mod schedule;
mod together;
mod training;

use std::ops::Deref;

use busbound_machine::{HostMemory, LinkFacts};
use serde::Serialize;

use super::{BadInput, at_least, at_most, ensure};
use crate::Range;
use choice::Choice;

pub use order::Phase;
pub use placement::{FORMULAS, LayeredModel, Placed, Placement, PlacementInputs};
pub use schedule::{Fetch, NoSlot, Schedule};
pub use together::{Component, Together};
pub use training::{Training, Updates};

/// A part of a model that is copied as one piece.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Block {
    pub bytes: u64,
    pub compute_ms: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamInputs {
    pub blocks: Vec<Block>,
    /// Compute outside of the blocks, per pass.
    pub outside_ms: f64,
    /// Host time to launch a pass; with short kernels a pass is not shorter.
    pub host_ms: f64,
    pub link: LinkFacts,
    /// Measured rate of a pinned H2D copy of the largest block; without it the rate of the link is expected.
    pub measured_gbps: Option<f64>,
    /// GPU memory for everything below.
    pub gpu_bytes: u64,
    /// Weights outside of the blocks.
    pub outside_bytes: u64,
    pub activation_bytes: u64,
    /// The number of slots, if it is given and not to be chosen.
    pub slots: Option<u32>,
    /// If backward follows each pass: then the step is both.
    pub training: Option<Training>,
}

/// What takes as long as the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamBound {
    Compute,
    Bus,
    /// Launching the kernels takes longer than running them.
    Host,
    /// The CPU updates weights.
    Updates,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stream {
    /// Per block: whether it stays on the GPU.
    pub resident: Vec<bool>,
    /// Slots of the ring; 0 if every block is resident.
    pub slots: u32,
    pub step_ms: Range,
    pub expected_ms: f64,
    /// The largest of compute, copies and launches: no schedule is faster with these residents.
    pub limit_ms: f64,
    pub compute_ms: f64,
    pub host_ms: f64,
    pub copy_ms: f64,
    pub copy_gbps: f64,
    /// The CPU's updates of weights, one after another.
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu_ms: f64,
    pub bound: StreamBound,
    pub streamed_bytes: u64,
    /// GPU memory that the plan needs.
    pub used_bytes: u64,
    /// The step with 1 GB more GPU memory; `null` if everything is resident.
    pub one_gb_more_ms: Option<f64>,
    /// GPU memory with which compute hides all copies; `null` if it does already.
    pub hides_all_bytes: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(ms: &f64) -> bool {
    *ms == 0.0
}

/// More blocks than any model has; keeps planning instant.
const MOST_BLOCKS: usize = 5_000;
/// Fewer slots cannot overlap, more only cost memory.
const SLOTS: std::ops::RangeInclusive<u32> = 2..=4;
/// Compute while copies are hidden behind it, relative to compute alone: a GPU at its power limit lowers its clock
/// (measured on an H200: GEMMs of 77 ms take 85 to 87 ms).
const SLOWER_COMPUTE: f64 = 1.13;
/// Compute that was measured with gaps between blocks can be this much faster without them.
const FASTER_COMPUTE: f64 = 0.95;
/// How far a copy's rate differs from the measured one: four of six passes and one of seven steps on an H200 were up to 1.6% faster than with
/// at most 1%.
const RATE_RANGE: Range = Range { low: 0.965, high: 1.03 };
/// Launches of the same pass scatter by 30 to 40% (measured with Hugging Face models).
const HOST_RANGE: Range = Range { low: 0.75, high: 1.4 };
/// How far the CPU's updates differ from the measured ones: they share its memory with copies.
const UPDATE_RANGE: Range = Range { low: 0.85, high: 1.2 };
/// Host time per streamed block in addition to what was measured, in milliseconds.
const HOST_MS: f64 = 0.06;

/// How many times as long compute and updates take as measured, and how many times as fast copies are.
#[derive(Debug, Clone, Copy)]
struct Speeds {
    compute: f64,
    rate: f64,
    updates: f64,
}

impl Speeds {
    const MEASURED: Self = Self { compute: 1.0, rate: 1.0, updates: 1.0 };
    const FASTEST: Self = Self { compute: FASTER_COMPUTE, rate: RATE_RANGE.high, updates: UPDATE_RANGE.low };
    const SLOWEST: Self = Self { compute: SLOWER_COMPUTE, rate: RATE_RANGE.low, updates: UPDATE_RANGE.high };
}

impl Stream {
    /// # Errors
    /// If an input is invalid, or the memory is not enough for a ring of two slots.
    pub fn plan(inputs: &StreamInputs) -> Result<Self, BadInput> {
        check(inputs)?;
        let inputs = &Task::of(inputs);
        let Some(choice) = Choice::best(inputs, inputs.gpu_bytes) else {
            let least = Choice::least_bytes(inputs);
            let valid = format!("{}: weights outside of blocks, activations and two blocks", at_least(least));
            return Err(BadInput { what: "the GPU memory", valid, given: at_most(inputs.gpu_bytes) });
        };
        Ok(Self::of(inputs, choice))
    }

    /// The prediction for blocks that are chosen already.
    ///
    /// # Errors
    /// If an input is invalid.
    pub fn predict(inputs: &StreamInputs, resident: Vec<bool>, slots: u32) -> Result<Self, BadInput> {
        check(inputs)?;
        ensure(resident.len() == inputs.blocks.len(), "resident", "one value per block", resident.len())?;
        Ok(Self::of(&Task::of(inputs), Choice::given(inputs, resident, slots)))
    }

    fn of(inputs: &Task<'_>, choice: Choice) -> Self {
        let copy_ms = choice.copy_ms(inputs);
        let compute_ms = compute_ms(inputs);
        let streamed = choice.streamed(inputs);
        let streamed_bytes: u64 = streamed.iter().map(|block| block.bytes).sum();
        // Backward uses each block again.
        let uses = if inputs.training.is_some() { 2.0 } else { 1.0 };
        let slowest_host = HOST_MS * uses * streamed.len() as f64;
        let busy_ms = compute_ms.max(inputs.host_ms);
        let cpu_ms = inputs.training.as_ref().map_or(0.0, Training::cpu_ms);
        // Where weights are trained on the CPU, what stays on the GPU is not chosen by time.
        let is_chosen = cpu_ms == 0.0;
        let hides_all = is_chosen.then(|| Choice::hiding(inputs)).flatten();
        let hides_all = hides_all.filter(|bytes| copy_ms > busy_ms && *bytes > inputs.gpu_bytes);
        let more = is_chosen.then(|| Choice::best(inputs, inputs.gpu_bytes.saturating_add(1_000_000_000)));
        Self {
            step_ms: Range {
                low: choice.pass_ms(inputs, Speeds::FASTEST).max(inputs.host_ms * HOST_RANGE.low),
                high: (choice.pass_ms(inputs, Speeds::SLOWEST) + slowest_host)
                    .max(inputs.host_ms * HOST_RANGE.high)
                    .max(inputs.training.as_ref().map_or(0.0, |training| training.most_host_ms)),
            },
            expected_ms: choice.step_ms(inputs),
            limit_ms: busy_ms.max(copy_ms).max(cpu_ms),
            bound: match () {
                () if cpu_ms > busy_ms.max(copy_ms) => StreamBound::Updates,
                () if copy_ms > busy_ms => StreamBound::Bus,
                () if inputs.host_ms > compute_ms => StreamBound::Host,
                () => StreamBound::Compute,
            },
            host_ms: inputs.host_ms,
            copy_gbps: if copy_ms > 0.0 { inputs.mean_gbps(&choice.resident) } else { 0.0 },
            one_gb_more_ms: more.flatten().filter(|_| !streamed.is_empty()).map(|more| more.step_ms(inputs)),
            hides_all_bytes: hides_all,
            used_bytes: choice.used_bytes(inputs),
            slots: choice.slots,
            resident: choice.resident,
            compute_ms,
            copy_ms,
            cpu_ms,
            streamed_bytes,
        }
    }
}

fn check(inputs: &StreamInputs) -> Result<(), BadInput> {
    let blocks = inputs.blocks.len();
    ensure((1..=MOST_BLOCKS).contains(&blocks), "the number of blocks", "between 1 and 5000", blocks)?;
    let is_time = |ms: f64| ms.is_finite() && ms >= 0.0;
    for block in &inputs.blocks {
        ensure(block.bytes > 0, "the bytes of a block", "above zero", block.bytes)?;
        ensure(is_time(block.compute_ms), "the compute time of a block", "0 ms or more", block.compute_ms)?;
    }
    ensure(
        is_time(inputs.outside_ms),
        "the compute time outside of blocks",
        "0 ms or more",
        inputs.outside_ms,
    )?;
    ensure(is_time(inputs.host_ms), "the host time of a pass", "0 ms or more", inputs.host_ms)?;
    let gbps = inputs.measured_gbps.unwrap_or(1.0);
    ensure(gbps.is_finite() && gbps > 0.0, "the measured rate", "above zero", gbps)?;
    let slots = inputs.slots.unwrap_or(2);
    ensure((1..=64).contains(&slots), "slots", "between 1 and 64", slots)?;
    inputs.training.as_ref().map_or(Ok(()), |training| training.check(blocks, inputs.outside_ms))
}

/// All compute of a pass, or of a training step.
fn compute_ms(inputs: &StreamInputs) -> f64 {
    let backward_ms = inputs.training.iter().flat_map(|training| &training.backward_ms);
    let blocks = inputs.blocks.iter().map(|block| &block.compute_ms).chain(backward_ms);
    inputs.outside_ms + blocks.sum::<f64>()
}

/// The inputs, with what all simulations of them need.
struct Task<'i> {
    inputs: &'i StreamInputs,
    /// The rate of each block's copy: the shape of the link's curve through the measured rate of the largest block.
    gbps: Vec<f64>,
}

impl<'i> Task<'i> {
    fn of(inputs: &'i StreamInputs) -> Self {
        let expected = |block: &Block| inputs.link.expected_gbps(block.bytes, HostMemory::Pinned);
        let mut gbps: Vec<f64> = inputs.blocks.iter().map(expected).collect();
        let largest = inputs.blocks.iter().max_by_key(|block| block.bytes).map(expected);
        if let Some((measured, largest)) = inputs.measured_gbps.zip(largest) {
            gbps.iter_mut().for_each(|gbps| *gbps = measured * *gbps / largest);
        }
        Self { inputs, gbps }
    }

    /// The rate of the copies of all streamed blocks together.
    fn mean_gbps(&self, resident: &[bool]) -> f64 {
        let streamed = self.copies().zip(resident).filter(|(_, resident)| !**resident);
        let (bytes, ms) = streamed.fold((0.0, 0.0), |(bytes, ms), ((block, gbps), _)| {
            (bytes + block.bytes as f64, ms + block.bytes as f64 / gbps / 1e6)
        });
        bytes / ms / 1e6
    }

    /// Each block with the rate of its copy.
    fn copies(&self) -> impl Iterator<Item = (&Block, f64)> + Clone {
        self.inputs.blocks.iter().zip(self.gbps.iter().copied())
    }
}

impl Deref for Task<'_> {
    type Target = StreamInputs;

    fn deref(&self) -> &StreamInputs {
        self.inputs
    }
}

#[cfg(test)]
mod tests;
