//! How long is a training step whose blocks are streamed: forward, and back in reverse order?
//!
//! The ring is that of `busbound.offload`: slots are given to the blocks that are used next, so the last blocks of the
//! forward pass are not copied again. Where the CPU updates the weights, gradients of a block are copied to the host
//! after its backward pass, one thread updates one block after another, and a block's new weights are copied then.

use serde::Serialize;

use super::Speeds;
use super::order::Phase;
use super::ring::Turn;
use super::schedule::Schedule;
use crate::plan::{BadInput, ensure};

/// What comes after the forward pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Training {
    /// Per block: compute of its backward pass.
    pub backward_ms: Vec<f64>,
    /// The part of the compute outside of blocks that is between forward and backward: the head and the loss.
    pub between_ms: f64,
    /// The most that the host can need for a step, waiting included: how much of it is backward's own is not known. 0 if nothing is.
    pub most_host_ms: f64,
    /// If the CPU updates the weights.
    pub updates: Option<Updates>,
}

/// The CPU's part of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Updates {
    /// Per block: the copy of its gradients to the host.
    pub gradients_ms: Vec<f64>,
    /// Per block: the CPU's time for its update.
    pub update_ms: Vec<f64>,
    /// Updates begin when all gradients have come, because their norm is clipped; per block: the CPU's time for it.
    pub norm_ms: Option<Vec<f64>>,
}

impl Training {
    /// All updates of a step, one after another, with the norms before them.
    pub(super) fn cpu_ms(&self) -> f64 {
        let cpu =
            |updates: &Updates| updates.update_ms.iter().chain(updates.norm_ms.iter().flatten()).sum::<f64>();
        self.updates.as_ref().map_or(0.0, cpu)
    }

    /// The same at other speeds.
    pub(super) fn at(&self, speeds: Speeds) -> Self {
        let times = |ms: &[f64], factor: f64| ms.iter().map(|ms| ms * factor).collect::<Vec<f64>>();
        Self {
            backward_ms: times(&self.backward_ms, speeds.compute),
            between_ms: self.between_ms * speeds.compute,
            most_host_ms: self.most_host_ms,
            updates: self.updates.as_ref().map(|updates| Updates {
                gradients_ms: times(&updates.gradients_ms, 1.0 / speeds.rate),
                update_ms: times(&updates.update_ms, speeds.updates),
                norm_ms: updates.norm_ms.as_ref().map(|ms| times(ms, speeds.updates)),
            }),
        }
    }

    pub(super) fn check(&self, blocks: usize, outside_ms: f64) -> Result<(), BadInput> {
        let updates = self.updates.iter();
        let lists = updates.flat_map(|updates| {
            [&updates.gradients_ms, &updates.update_ms].into_iter().chain(&updates.norm_ms)
        });
        for ms in lists.chain([&self.backward_ms]) {
            ensure(ms.len() == blocks, "the times of a training step", "one per block", ms.len())?;
            let wrong = ms.iter().find(|ms| !(ms.is_finite() && **ms >= 0.0));
            ensure(wrong.is_none(), "a time of a training step", "0 ms or more", wrong.unwrap_or(&0.0))?;
        }
        let host_ms = self.most_host_ms;
        ensure(host_ms.is_finite() && host_ms >= 0.0, "the host time of a step", "0 ms or more", host_ms)?;
        let is_part = (0.0..=outside_ms).contains(&self.between_ms);
        ensure(
            is_part,
            "the time between forward and backward",
            "part of that outside of blocks",
            self.between_ms,
        )
    }
}

/// A steady step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) step_ms: f64,
    /// The time of all copies to the GPU, one after another.
    pub(super) copy_ms: f64,
}

/// Steps simulated; the last of them repeat.
const STEPS: usize = 6;
/// Steps averaged.
const AVERAGED: usize = 2;
/// Blocks whose gradients may be being copied to the host before backward waits.
const IN_FLIGHT: usize = 2;

/// The duration of a steady step. `outside_ms` is all compute outside of blocks.
pub(super) fn step(turns: &[Turn], outside_ms: f64, slots: usize, training: &Training) -> Step {
    let mut run = Run::new(turns, training, slots);
    let mut begin = (0.0, 0.0);
    for number in 0..STEPS {
        if number == STEPS - AVERAGED {
            begin = (run.now, run.copied_ms);
        }
        run.step(outside_ms);
    }
    let average = |end: f64, begin: f64| (end - begin) / AVERAGED as f64;
    Step { step_ms: average(run.now, begin.0), copy_ms: average(run.copied_ms, begin.1) }
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// When its copy has ended.
    ready: f64,
    /// When its last use has ended.
    free: f64,
}

struct Run<'a> {
    turns: &'a [Turn],
    training: &'a Training,
    schedule: Schedule,
    slots: Vec<Slot>,
    /// The slot that backward uses, with its block.
    held: Option<(u32, usize)>,
    /// When a block has its new weights.
    new_at: Vec<f64>,
    /// The ends of compute, of copies to the GPU, of copies to the host, and of updates, so far.
    now: f64,
    copies: f64,
    downloads: f64,
    cpu: f64,
    /// When gradients have come, in the order of backward.
    came: Vec<f64>,
    copied_ms: f64,
}

impl<'a> Run<'a> {
    fn new(turns: &'a [Turn], training: &'a Training, slots: usize) -> Self {
        let streamed = (0..turns.len()).filter(|at| turns[*at].copy_ms.is_some()).map(|at| at as u32);
        let mut run = Self {
            turns,
            training,
            schedule: Schedule::new(streamed.collect(), slots),
            slots: vec![Slot::default(); slots],
            held: None,
            new_at: vec![0.0; turns.len()],
            now: 0.0,
            copies: 0.0,
            downloads: 0.0,
            cpu: 0.0,
            came: Vec::new(),
            copied_ms: 0.0,
        };
        run.fetch();
        run
    }

    fn step(&mut self, outside_ms: f64) {
        for at in 0..self.turns.len() {
            let slot = self.enter(at, Phase::Forward);
            self.now += self.turns[at].compute_ms;
            if let Some(slot) = slot {
                self.leave(slot);
                self.fetch();
            }
        }
        self.now += self.training.between_ms;
        self.came.clear();
        for at in (0..self.turns.len()).rev() {
            self.backward(at);
        }
        if self.training.updates.is_some() {
            self.release_held(None);
        }
        self.now += outside_ms - self.training.between_ms;
        self.finish();
    }

    fn backward(&mut self, at: usize) {
        if let Some(slot) = self.enter(at, Phase::Backward) {
            self.held = Some((slot, at));
            self.fetch();
        }
        let begin = self.now;
        self.now += self.training.backward_ms[at];
        let Some(updates) = &self.training.updates else { return };
        if updates.update_ms[at] == 0.0 {
            return;
        }
        // One gradient after another leaves while backward is still in the block.
        self.downloads = (self.downloads.max(begin) + updates.gradients_ms[at]).max(self.now);
        self.came.push(self.downloads);
        if let Some(before) = self.came.len().checked_sub(1 + IN_FLIGHT) {
            self.now = self.now.max(self.came[before]);
        }
        let takes = updates.norm_ms.as_ref().map_or(updates.update_ms[at], |norm_ms| norm_ms[at]);
        self.cpu = self.cpu.max(self.downloads) + takes;
        if updates.norm_ms.is_none() {
            self.updated(at);
        }
    }

    /// Waits for what the CPU has left to do.
    fn finish(&mut self) {
        let Some(updates) = &self.training.updates else { return };
        if updates.norm_ms.is_some() {
            self.cpu = self.cpu.max(self.now);
            for (at, update_ms) in updates.update_ms.iter().enumerate().filter(|(_, ms)| **ms > 0.0) {
                self.cpu += update_ms;
                self.updated(at);
            }
        }
        self.now = self.now.max(self.cpu);
    }

    /// A block is used, after its copy; the slot that it is in.
    fn enter(&mut self, at: usize, phase: Phase) -> Option<u32> {
        self.turns[at].copy_ms?;
        self.release_held(Some(at));
        let (slot, is_missing) = self.schedule.enter(at as u32, phase).ok()?;
        if is_missing {
            self.copy(slot, at);
        }
        self.now = self.now.max(self.slots[slot as usize].ready);
        Some(slot)
    }

    fn leave(&mut self, slot: u32) {
        self.slots[slot as usize].free = self.now;
        self.schedule.leave(slot);
    }

    /// Backward is over with a block when another one is used.
    fn release_held(&mut self, at: Option<usize>) {
        if let Some((slot, _)) = self.held.take_if(|(_, block)| Some(*block) != at) {
            self.leave(slot);
        }
    }

    fn fetch(&mut self) {
        for fetch in self.schedule.ahead() {
            self.copy(fetch.slot, fetch.block as usize);
        }
    }

    /// A block has new weights, which its slot gets if it has one.
    fn updated(&mut self, at: usize) {
        self.new_at[at] = self.cpu;
        if let Some(slot) = self.schedule.slot_of(at as u32) {
            self.copy(slot, at);
        }
    }

    fn copy(&mut self, slot: u32, at: usize) {
        let takes = self.turns[at].copy_ms.unwrap_or(0.0);
        let slot = &mut self.slots[slot as usize];
        self.copies = self.copies.max(slot.free).max(self.new_at[at]) + takes;
        slot.ready = self.copies;
        self.copied_ms += takes;
    }
}
