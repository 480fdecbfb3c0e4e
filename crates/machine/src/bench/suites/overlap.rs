//! How much do a copy and a kernel slow each other down when they overlap?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, LARGE_COPY, Phase, SuiteCase, Topic, five_digits};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, MIB, Mode};
use crate::bench::statistics::Spread;
use crate::bench::terms::{Direction, KernelKind};
use crate::profile::{MachineProfile, OverlapFacts};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapTask {
    pub direction: Direction,
    pub kernel: KernelKind,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverlapCase {
    #[serde(flatten)]
    pub task: OverlapTask,
    pub copies: u32,
    pub copy_alone_ns: Vec<u64>,
    pub copy_beside_ns: Vec<u64>,
    pub kernel_alone_ns: Vec<u64>,
    pub kernel_beside_ns: Vec<u64>,
}

impl BenchSuite for OverlapTask {
    const NAME: &'static str = "overlap";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Bus;

    fn plan(mode: Mode, limits: &Limits) -> Vec<Self> {
        let sizes: &[u64] = match mode {
            Mode::Quick => &[64 * MIB],
            Mode::Full => &[MIB, 16 * MIB, 256 * MIB],
        };
        let mut tasks = Vec::new();
        for direction in [Direction::H2d, Direction::D2h] {
            for kernel in [KernelKind::ComputeBound, KernelKind::MemoryBound] {
                for bytes in sizes.iter().map(|bytes| (*bytes).min(limits.largest)) {
                    tasks.push(Self { direction, kernel, bytes });
                }
            }
        }
        tasks
    }

    fn keep(cases: &[&OverlapCase], _identity: &Identity, profile: &mut MachineProfile) {
        profile.overlap.extend(cases.iter().map(|case| OverlapFacts {
            direction: case.task.direction,
            kernel: case.task.kernel,
            bytes: case.task.bytes,
            copy_slowdown: slowdown(&case.copy_beside_ns, &case.copy_alone_ns),
            kernel_slowdown: slowdown(&case.kernel_beside_ns, &case.kernel_alone_ns),
        }));
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let mut figures = Vec::new();
        for (kernel, copy_id, kernel_id, words) in [
            (
                KernelKind::ComputeBound,
                "copy_beside_compute",
                "compute_beside_copy",
                "a compute-bound kernel",
            ),
            (KernelKind::MemoryBound, "copy_beside_memory", "memory_beside_copy", "a memory-bound kernel"),
        ] {
            let Some((copy, slowed)) = worst(&evidence.profile.overlap, kernel) else { continue };
            let copy_words = format!("slowdown of a large copy while {words} runs");
            figures.push(MeasuredFigure::fact(copy_id, copy_words, copy, FigureUnit::Times));
            let kernel_words = format!("slowdown of {words} while copies run");
            figures.push(MeasuredFigure::fact(kernel_id, kernel_words, slowed, FigureUnit::Times));
        }
        figures
    }
}

/// Time with overlap divided by time alone.
fn slowdown(overlapped: &[u64], alone: &[u64]) -> f64 {
    let ratio = Spread::of_ns(overlapped)
        .zip(Spread::of_ns(alone))
        .map_or(1.0, |(overlapped, alone)| overlapped.median / alone.median);
    five_digits(ratio)
}

/// The worst slowdown of large copies and of kernels of this kind.
fn worst(all: &[OverlapFacts], kernel: KernelKind) -> Option<(f64, f64)> {
    let large = all.iter().filter(|one| one.kernel == kernel && one.bytes >= LARGE_COPY);
    large.fold(None, |worst: Option<(f64, f64)>, one| {
        let (copy, kernel) = worst.unwrap_or((1.0, 1.0));
        Some((copy.max(one.copy_slowdown), kernel.max(one.kernel_slowdown)))
    })
}

impl fmt::Display for OverlapTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overlap: copies of {} bytes while kernels run", self.bytes)
    }
}

impl SuiteCase for OverlapCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.copy_alone_ns, &self.copy_beside_ns, &self.kernel_alone_ns, &self.kernel_beside_ns]
    }
}
