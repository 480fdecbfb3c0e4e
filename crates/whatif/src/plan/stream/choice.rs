//! Which residents and how many slots give the shortest pass within the memory?

use super::ring::{Turn, pass_ms};
use super::training::{Step, step};
use super::{Block, SLOTS, Speeds, StreamInputs, Task, compute_ms};

/// Models with more blocks are only spread evenly: trying each block takes a simulation for each pair of them.
const TRIED_ONE_BY_ONE: usize = 64;
/// The same for training steps, whose simulation takes longer.
const TRIED_IN_TRAINING: usize = 24;
/// A choice that needs more memory must be this much faster.
const WORTH_MEMORY: f64 = 0.998;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) resident: Vec<bool>,
    pub(super) slots: u32,
}

impl Choice {
    /// The fastest choice within this memory; `None` if there is not enough for any.
    pub(super) fn best(inputs: &Task<'_>, gpu_bytes: u64) -> Option<Self> {
        let all = Self { resident: vec![true; inputs.blocks.len()], slots: 0 };
        if all.used_bytes(inputs) <= gpu_bytes {
            return Some(all);
        }
        let slots = inputs.slots.map_or(SLOTS, |slots| slots..=slots);
        let mut best: Option<(f64, Self)> = None;
        for choice in slots.flat_map(|slots| Self::candidates(inputs, gpu_bytes, slots)) {
            if choice.used_bytes(inputs) > gpu_bytes {
                continue;
            }
            let step = choice.step_ms(inputs);
            if best.as_ref().is_none_or(|(fastest, _)| step < fastest * WORTH_MEMORY) {
                best = Some((step, choice));
            }
        }
        best.map(|(_, choice)| choice)
    }

    pub(super) fn given(inputs: &StreamInputs, resident: Vec<bool>, slots: u32) -> Self {
        let streamed = resident.iter().filter(|resident| !**resident).count() as u32;
        debug_assert_eq!(resident.len(), inputs.blocks.len());
        Self { resident, slots: slots.min(streamed) }
    }

    /// The memory for the smallest ring and no resident block.
    pub(super) fn least_bytes(inputs: &StreamInputs) -> u64 {
        let slots = inputs.slots.unwrap_or(*SLOTS.start());
        Self { resident: vec![false; inputs.blocks.len()], slots }.used_bytes(inputs)
    }

    /// The least memory with which compute hides the copies.
    pub(super) fn hiding(inputs: &Task<'_>) -> Option<u64> {
        let total: u64 = inputs.blocks.iter().map(|block| block.bytes).sum();
        let (mut short, mut enough) = (0, Self::least_bytes(inputs) + total);
        let hides = |bytes| {
            Self::best(inputs, bytes)
                .is_some_and(|choice| choice.copy_ms(inputs) <= compute_ms(inputs).max(inputs.host_ms))
        };
        if !hides(enough) {
            return None;
        }
        // More memory never means more copies. A hundredth of a GB is exact enough.
        while enough - short > 10_000_000 {
            let middle = short.midpoint(enough);
            if hides(middle) { enough = middle } else { short = middle }
        }
        Some(enough)
    }

    pub(super) fn streamed(&self, inputs: &StreamInputs) -> Vec<Block> {
        let blocks = inputs.blocks.iter().zip(&self.resident);
        blocks.filter(|(_, resident)| !**resident).map(|(block, _)| *block).collect()
    }

    pub(super) fn used_bytes(&self, inputs: &StreamInputs) -> u64 {
        let largest = self.streamed(inputs).iter().map(|block| block.bytes).max().unwrap_or(0);
        let resident = inputs.blocks.iter().zip(&self.resident).filter(|(_, resident)| **resident);
        let resident: u64 = resident.map(|(block, _)| block.bytes).sum();
        inputs.outside_bytes + inputs.activation_bytes + resident + u64::from(self.slots) * largest
    }

    /// The time of all copies of a pass, one after another.
    pub(super) fn copy_ms(&self, inputs: &Task<'_>) -> f64 {
        let streamed = inputs.copies().zip(&self.resident).filter(|(_, resident)| !**resident);
        if inputs.training.is_some() {
            return self.simulated(inputs, Speeds::MEASURED).copy_ms;
        }
        if streamed.clone().count() <= self.slots as usize {
            return 0.0;
        }
        streamed.map(|((block, gbps), _)| block.bytes as f64 / gbps / 1e6).sum()
    }

    /// The expected pass.
    pub(super) fn step_ms(&self, inputs: &Task<'_>) -> f64 {
        self.pass_ms(inputs, Speeds::MEASURED).max(inputs.host_ms)
    }

    /// The pass on the device at these speeds.
    pub(super) fn pass_ms(&self, inputs: &Task<'_>, speeds: Speeds) -> f64 {
        self.simulated(inputs, speeds).step_ms
    }

    fn simulated(&self, inputs: &Task<'_>, speeds: Speeds) -> Step {
        let turn = |((block, gbps), resident): ((&Block, f64), &bool)| Turn {
            compute_ms: block.compute_ms * speeds.compute,
            copy_ms: (!*resident).then(|| block.bytes as f64 / (gbps * speeds.rate) / 1e6),
        };
        let turns: Vec<Turn> = inputs.copies().zip(&self.resident).map(turn).collect();
        let (outside_ms, slots) = (inputs.outside_ms * speeds.compute, self.slots as usize);
        match &inputs.training {
            None => Step { step_ms: pass_ms(&turns, outside_ms, slots), copy_ms: 0.0 },
            Some(training) => step(&turns, outside_ms, slots, &training.at(speeds)),
        }
    }

    /// Choices with this many slots: residents spread evenly, and chosen one by one.
    fn candidates(inputs: &Task<'_>, gpu_bytes: u64, slots: u32) -> Vec<Self> {
        let none = Self { resident: vec![false; inputs.blocks.len()], slots };
        if none.used_bytes(inputs) > gpu_bytes {
            return Vec::new();
        }
        let mut found: Vec<Self> =
            [1.0, 0.5, 0.0].into_iter().map(|from| none.spread(inputs, gpu_bytes, from)).collect();
        let tried = if inputs.training.is_some() { TRIED_IN_TRAINING } else { TRIED_ONE_BY_ONE };
        if inputs.blocks.len() <= tried {
            found.push(none.one_by_one(inputs, gpu_bytes));
        }
        found
    }

    /// Fills the memory with residents at equal distances; `from` is where in the first distance they begin.
    fn spread(&self, inputs: &StreamInputs, gpu_bytes: u64, from: f64) -> Self {
        let room = gpu_bytes.saturating_sub(self.used_bytes(inputs)) as f64;
        let total: f64 = inputs.blocks.iter().map(|block| block.bytes as f64).sum();
        let share = (room / total).min(1.0);
        let mut choice = self.clone();
        let first = inputs.blocks.first().map_or(0.0, |block| block.bytes as f64);
        let (mut owed, mut left) = (first * from * share, room);
        for (block, resident) in inputs.blocks.iter().zip(&mut choice.resident) {
            let bytes = block.bytes as f64;
            owed += bytes * share;
            // Tolerates floating-point error just below a whole block.
            if owed >= bytes * (1.0 - 1e-9) && bytes <= left {
                *resident = true;
                owed -= bytes;
                left -= bytes;
            }
        }
        choice
    }

    /// Adds the resident that shortens the pass most, again and again.
    fn one_by_one(&self, inputs: &Task<'_>, gpu_bytes: u64) -> Self {
        let mut choice = self.clone();
        loop {
            let step_ms = choice.step_ms(inputs);
            let mut best: Option<(f64, Self)> = None;
            for at in 0..inputs.blocks.len() {
                if choice.resident[at] {
                    continue;
                }
                let mut more = choice.clone();
                more.resident[at] = true;
                if more.used_bytes(inputs) > gpu_bytes {
                    continue;
                }
                // By time saved per byte: a large block saves more because it is large.
                let saved = step_ms - more.step_ms(inputs);
                let worth = saved / inputs.blocks[at].bytes as f64;
                if best.as_ref().is_none_or(|(most, _)| worth > *most) {
                    best = Some((worth, more));
                }
            }
            match best {
                Some((_, more)) => choice = more,
                None => return choice,
            }
        }
    }
}
