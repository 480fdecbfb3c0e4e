//! How long is a step whose weights come from host memory? `diagnosis` compares it with the plan.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Phase, SuiteCase, Topic};
use crate::bench::plan::{Limits, MIB, Mode};
use crate::bench::terms::{Memory, Order};

/// The compute time of a layer is a multiple of its copy time, so that one task suits every machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OffloadTask {
    pub layers: u32,
    pub bytes: u64,
    pub compute_to_copy: f64,
    pub memory: Memory,
    pub order: Order,
    /// 0 unless prefetched.
    pub depth: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OffloadCase {
    #[serde(flatten)]
    pub task: OffloadTask,
    /// One layer's copy without compute, measured just before: the host's staging rate drifts over minutes.
    pub copy_ns: Vec<u64>,
    /// All layers without a copy.
    pub compute_ns: Vec<u64>,
    pub step_ns: Vec<u64>,
    pub verified: bool,
}

impl BenchSuite for OffloadTask {
    const NAME: &'static str = "offload";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Bus;

    fn plan(mode: Mode, limits: &Limits) -> Vec<Self> {
        let mut tasks = match mode {
            Mode::Quick => quick(),
            Mode::Full => full(),
        };
        for task in &mut tasks {
            // Layers may share a buffer, so that the weights of all layers fit in the space of one copy.
            task.bytes = task.bytes.min(limits.largest / 4);
        }
        tasks
    }
}

impl OffloadTask {
    fn blocking(layers: u32, bytes: u64, compute_to_copy: f64, memory: Memory) -> Self {
        Self { layers, bytes, compute_to_copy, memory, order: Order::Blocking, depth: 0 }
    }

    fn prefetched(depth: u32, layers: u32, bytes: u64, compute_to_copy: f64, memory: Memory) -> Self {
        Self { layers, bytes, compute_to_copy, memory, order: Order::Prefetched, depth }
    }
}

fn quick() -> Vec<OffloadTask> {
    let mut tasks = Vec::new();
    for ratio in [0.5, 2.0] {
        tasks.push(OffloadTask::blocking(8, 32 * MIB, ratio, Memory::Pinned));
        tasks.push(OffloadTask::prefetched(1, 8, 32 * MIB, ratio, Memory::Pinned));
    }
    tasks.push(OffloadTask::blocking(8, 32 * MIB, 1.0, Memory::Pageable));
    tasks
}

fn full() -> Vec<OffloadTask> {
    let mut tasks = Vec::new();
    for bytes in [4 * MIB, 32 * MIB, 160 * MIB] {
        for ratio in [0.5, 1.0, 2.0] {
            tasks.push(OffloadTask::blocking(12, bytes, ratio, Memory::Pinned));
            for depth in [1, 2, 4] {
                tasks.push(OffloadTask::prefetched(depth, 12, bytes, ratio, Memory::Pinned));
            }
            tasks.push(OffloadTask::blocking(12, bytes, ratio, Memory::Pageable));
            tasks.push(OffloadTask::prefetched(2, 12, bytes, ratio, Memory::Pageable));
        }
    }
    for layers in [4, 48] {
        tasks.push(OffloadTask::blocking(layers, 32 * MIB, 1.0, Memory::Pinned));
        tasks.push(OffloadTask::prefetched(1, layers, 32 * MIB, 1.0, Memory::Pinned));
    }
    tasks
}

impl fmt::Display for OffloadTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offload: {} layers of {} bytes, depth {}", self.layers, self.bytes, self.depth)
    }
}

impl SuiteCase for OffloadCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.copy_ns, &self.compute_ns, &self.step_ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::H200;
    use super::*;

    #[test]
    fn the_offload_suite_covers_the_combinations_that_plans_are_compared_with() {
        let all = OffloadTask::plan(Mode::Full, &H200);
        assert!(all.len() >= 24, "{}", all.len());
        assert!(!all.iter().any(|task| task.order == Order::Blocking && task.depth > 0));
        assert!(all.iter().any(|task| task.bytes == 160 * MIB));
        let small = OffloadTask::plan(Mode::Full, &Limits { largest: 64 * MIB, ..H200 });
        assert!(small.iter().all(|task| task.bytes <= 16 * MIB));
    }
}
