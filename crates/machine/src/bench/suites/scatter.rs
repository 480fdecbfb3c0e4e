//! How fast do many blocks that lie apart cross the bus, and by which method?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, five_digits};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{KIB, Limits, MIB, Mode};
use crate::bench::statistics::Spread;
use crate::bench::terms::{Direction, Memory, ScatterMethod};
use crate::profile::{MachineProfile, ScatterGrid, ScatterPoint};

/// One cell of the grid. Its methods are measured in turn, so that a drift of the host's rate affects all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScatterTask {
    pub direction: Direction,
    pub memory: Memory,
    pub block_bytes: u64,
    pub blocks: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScatterCase {
    #[serde(flatten)]
    pub task: ScatterTask,
    pub methods: Vec<ScatterTimes>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScatterTimes {
    pub method: ScatterMethod,
    /// All blocks, from the first call until the host knows that they arrived.
    pub ns: Vec<u64>,
    pub verified: bool,
}

/// The cell that the figures show, if it was measured.
const SHOWN: (u64, u32) = (64 * KIB, 256);

impl BenchSuite for ScatterTask {
    const NAME: &'static str = "scatter";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Bus;

    fn plan(mode: Mode, limits: &Limits) -> Vec<Self> {
        let mut tasks = Vec::new();
        // One host buffer per memory type serves both directions.
        for memory in [Memory::Pinned, Memory::Pageable] {
            for direction in [Direction::H2d, Direction::D2h] {
                let task = |(block_bytes, blocks)| Self { direction, memory, block_bytes, blocks };
                tasks.extend(cells(mode, memory, limits.largest).into_iter().map(task));
            }
        }
        tasks
    }

    fn keep(cases: &[&ScatterCase], _identity: &Identity, profile: &mut MachineProfile) {
        for case in cases {
            let ScatterTask { direction, memory, block_bytes, blocks } = case.task;
            for times in &case.methods {
                let Some(spread) = Spread::of_ns(&times.ns) else { continue };
                let point = ScatterPoint { block_bytes, blocks, us: five_digits(spread.median / 1e3) };
                let method = times.method;
                let is_it = |grid: &&mut ScatterGrid| {
                    (grid.direction, grid.memory, grid.method) == (direction, memory, method)
                };
                match profile.scatter.iter_mut().find(is_it) {
                    Some(grid) => grid.points.push(point),
                    None => {
                        profile.scatter.push(ScatterGrid { direction, memory, method, points: vec![point] });
                    }
                }
            }
        }
        for grid in &mut profile.scatter {
            grid.points.sort_by_key(|point| (point.block_bytes, point.blocks));
        }
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        [
            ("scatter_pinned_h2d", Direction::H2d, Memory::Pinned),
            ("scatter_pinned_d2h", Direction::D2h, Memory::Pinned),
            ("scatter_pageable_h2d", Direction::H2d, Memory::Pageable),
            ("scatter_pageable_d2h", Direction::D2h, Memory::Pageable),
        ]
        .into_iter()
        .filter_map(|(id, direction, memory)| shown(evidence.profile, id, direction, memory))
        .collect()
    }
}

/// KiB per block. The batch call is several times as fast from some size between 16 and 64 KiB on, so these are dense.
const QUICK_SIZES: &[u64] = &[4, 24, 64, 1024];
const FULL_SIZES: &[u64] = &[4, 8, 16, 24, 28, 32, 64, 256, 1024, 4096];
const QUICK_COUNTS: &[u32] = &[FEWEST_BLOCKS, 256, MOST_BLOCKS];
const FULL_COUNTS: &[u32] = &[FEWEST_BLOCKS, 64, 256, 1024, MOST_BLOCKS];
/// Times of fewer or more blocks are extrapolated.
pub const FEWEST_BLOCKS: u32 = 16;
pub const MOST_BLOCKS: u32 = 4096;

/// Every size in every number, as far as all blocks together are not too large. Pageable memory is slow, and its rate does
/// not change for large blocks.
fn cells(mode: Mode, memory: Memory, largest: u64) -> Vec<(u64, u32)> {
    let (sizes, counts, most) = match (mode, memory) {
        (Mode::Quick, _) => (QUICK_SIZES, QUICK_COUNTS, 64 * MIB),
        (Mode::Full, Memory::Pageable) => (FULL_SIZES, FULL_COUNTS, 256 * MIB),
        (Mode::Full, _) => (FULL_SIZES, FULL_COUNTS, 1024 * MIB),
    };
    let fits = |&(bytes, blocks): &(u64, u32)| bytes * u64::from(blocks) <= most.min(largest);
    let of_size = |kib: &u64| {
        let bytes = kib * KIB;
        counts.iter().map(move |blocks| (bytes, *blocks))
    };
    sizes.iter().flat_map(of_size).filter(fits).collect()
}

/// The best method of the shown cell, next to a loop of copies.
fn shown(
    profile: &MachineProfile,
    id: &'static str,
    direction: Direction,
    memory: Memory,
) -> Option<MeasuredFigure> {
    let (block_bytes, blocks) = SHOWN;
    let gbps = |grid: &ScatterGrid| {
        let is_it = |point: &&ScatterPoint| (point.block_bytes, point.blocks) == SHOWN;
        let us = grid.points.iter().find(is_it)?.us;
        Some((grid.method, (block_bytes * u64::from(blocks)) as f64 / us / 1e3))
    };
    let these = profile.scatter.iter().filter(|grid| (grid.direction, grid.memory) == (direction, memory));
    let rates: Vec<(ScatterMethod, f64)> = these.filter_map(gbps).collect();
    let (method, best) = rates.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let beside = rates.iter().find(|(other, _)| *other == ScatterMethod::Loop && *other != method);
    let beside = beside.map_or(String::new(), |(other, gbps)| format!("; {}: {gbps:.1}", other.words()));
    let what = format!(
        "{blocks} blocks of {} KiB, {} {}, {}{beside}",
        block_bytes / KIB,
        memory.words(),
        direction.words(),
        method.words()
    );
    Some(MeasuredFigure::fact(id, what, five_digits(best), FigureUnit::GigabytesPerSecond))
}

impl fmt::Display for ScatterTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, memory, block_bytes, blocks } = self;
        let (memory, direction) = (memory.words(), direction.words());
        write!(f, "scatter: {memory} {direction}, {blocks} blocks of {block_bytes} bytes")
    }
}

impl SuiteCase for ScatterCase {
    fn series(&self) -> Vec<&[u64]> {
        self.methods.iter().map(|times| &times.ns[..]).collect()
    }

    fn verified(&self) -> Option<bool> {
        Some(self.methods.iter().all(|times| times.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::H200;
    use super::*;

    #[test]
    fn the_grid_covers_16_to_4096_blocks_of_4_kib_to_4_mib_within_1_gib() {
        let full = cells(Mode::Full, Memory::Pinned, 1 << 30);
        assert_eq!(full.len(), 47);
        assert_eq!((full[0], full[46]), ((4 * KIB, 16), (4 * MIB, 256)));
        assert!(full.contains(&(256 * KIB, 4096)) && !full.contains(&(MIB, 4096)));
        // Every quick cell is a full cell too, and the figures show one of them.
        let quick = cells(Mode::Quick, Memory::Pageable, 1 << 30);
        assert!(quick.iter().all(|cell| full.contains(cell)) && quick.contains(&SHOWN));
        assert_eq!(quick.len(), 8);
        assert_eq!(ScatterTask::plan(Mode::Full, &H200).len(), 2 * 47 + 2 * 44);
        let small = cells(Mode::Full, Memory::Pinned, MIB);
        assert!(small.iter().all(|(bytes, blocks)| bytes * u64::from(*blocks) <= MIB));
    }

    #[test]
    fn the_profile_keeps_the_median_per_method_and_the_figure_names_the_best() {
        let times = |method, ns: [u64; 3]| ScatterTimes { method, ns: ns.to_vec(), verified: true };
        let task = ScatterTask {
            direction: Direction::H2d,
            memory: Memory::Pinned,
            block_bytes: SHOWN.0,
            blocks: SHOWN.1,
        };
        let methods = vec![
            times(ScatterMethod::Loop, [800_000, 700_000, 900_000]),
            times(ScatterMethod::Kernel, [400_000; 3]),
        ];
        let case = ScatterCase { task, methods };
        let mut profile = MachineProfile::default();
        let small = ScatterCase { task: ScatterTask { blocks: 16, ..task }, ..case.clone() };
        ScatterTask::keep(&[&case, &small], &Identity::default(), &mut profile);
        let points: Vec<(u32, f64)> = profile.scatter[0].points.iter().map(|p| (p.blocks, p.us)).collect();
        assert_eq!(points, [(16, 800.0), (256, 800.0)]);
        let figure = shown(&profile, "x", Direction::H2d, Memory::Pinned).unwrap();
        assert_eq!(figure.what, "256 blocks of 64 KiB, pinned H2D, gather kernel; loop of copies: 21.0");
        assert_eq!(figure.measured, 41.943);
        assert!(shown(&profile, "x", Direction::D2h, Memory::Pinned).is_none());
    }
}
