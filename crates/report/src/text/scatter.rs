//! Blocks that lie apart: the fastest way to move them, for each size and number that was measured.

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::bench::{Direction, Memory, ScatterMethod};
use busbound_machine::{MachineProfile, ScatterGrid, ScatterPoint};

use super::Table;

/// The best method of a cell, and its rate in GB/s.
type Best = BTreeMap<(u64, u32), (ScatterMethod, f64)>;

/// Numbers of blocks that get a column: those that the suite measures.
const COUNTS: [(u32, &str); 5] =
    [(16, "16 blocks"), (64, "64 blocks"), (256, "256 blocks"), (1024, "1024 blocks"), (4096, "4096 blocks")];

/// One word per method.
fn word(method: ScatterMethod) -> &'static str {
    match method {
        ScatterMethod::Loop => "loop",
        ScatterMethod::Batch => "batch",
        ScatterMethod::Kernel => "kernel",
        ScatterMethod::Staged => "gather",
    }
}

/// GB/s of the fastest method by memory, direction, size and number of blocks; `None` if that was not measured.
pub(crate) fn grid(profile: &MachineProfile) -> Option<Table> {
    let points = || profile.scatter.iter().flat_map(|grid| &grid.points);
    let columns: Vec<(u32, &'static str)> =
        COUNTS.into_iter().filter(|(count, _)| points().any(|point| point.blocks == *count)).collect();
    let mut titles = vec!["fastest way, GB/s"];
    titles.extend(columns.iter().map(|(_, title)| *title));
    let mut rows = Vec::new();
    for memory in [Memory::Pinned, Memory::Pageable] {
        for direction in [Direction::H2d, Direction::D2h] {
            let best = best(profile, direction, memory);
            let sizes: BTreeSet<u64> = best.keys().map(|(bytes, _)| *bytes).collect();
            for bytes in sizes {
                let name = format!("{} {}, {} KiB", memory.words(), direction.words(), bytes >> 10);
                let cell = |(count, _): &(u32, &str)| {
                    let found = best.get(&(bytes, *count));
                    found.map_or("–".to_owned(), |(method, gbps)| format!("{} {gbps:.1}", word(*method)))
                };
                rows.push(std::iter::once(name).chain(columns.iter().map(cell)).collect());
            }
        }
    }
    (!rows.is_empty()).then(|| Table { titles, rows })
}

fn best(profile: &MachineProfile, direction: Direction, memory: Memory) -> Best {
    let is_it = |grid: &&ScatterGrid| (grid.direction, grid.memory) == (direction, memory);
    let mut best = Best::new();
    for grid in profile.scatter.iter().filter(is_it) {
        for ScatterPoint { block_bytes, blocks, us } in &grid.points {
            let gbps = (block_bytes * u64::from(*blocks)) as f64 / us / 1e3;
            let known = best.entry((*block_bytes, *blocks)).or_insert((grid.method, gbps));
            if gbps > known.1 {
                *known = (grid.method, gbps);
            }
        }
    }
    best
}
