//! Blocks that lie apart: the fastest way to move them, for each size and number that was measured.

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::bench::{Direction, Memory, ScatterMethod};
use busbound_machine::{MachineProfile, ScatterGrid, ScatterPoint};

use super::Table;

/// What the tables show.
pub(crate) const WHAT: &str = "Blocks that lie apart: the fastest way (a loop of copies, one batch call, a gather kernel, or gathering and one copy) and its GB/s, \
                               by the size of a block and the number of blocks.";

/// The best method of a cell, and its rate in GB/s.
type Best = BTreeMap<(u64, u32), (ScatterMethod, f64)>;

/// Numbers of blocks that get a column: those that the suite measures.
const COUNTS: [(u32, &str); 5] =
    [(16, "16 blocks"), (64, "64"), (256, "256"), (1024, "1,024"), (4096, "4,096")];

/// One word per method.
fn word(method: ScatterMethod) -> &'static str {
    match method {
        ScatterMethod::Loop => "loop",
        ScatterMethod::Batch => "batch",
        ScatterMethod::Kernel => "kernel",
        ScatterMethod::Staged => "gather",
    }
}

/// GB/s of the fastest method by size and number of blocks: a table for each memory and direction that was measured.
pub(crate) fn grids(profile: &MachineProfile) -> Vec<Table> {
    let ways = [
        ("pinned H2D", Direction::H2d, Memory::Pinned),
        ("pinned D2H", Direction::D2h, Memory::Pinned),
        ("pageable H2D", Direction::H2d, Memory::Pageable),
        ("pageable D2H", Direction::D2h, Memory::Pageable),
    ];
    ways.into_iter()
        .filter_map(|(title, direction, memory)| grid(title, &best(profile, direction, memory)))
        .collect()
}

fn grid(title: &'static str, best: &Best) -> Option<Table> {
    let is_measured = |count: u32| best.keys().any(|(_, blocks)| *blocks == count);
    let columns: Vec<(u32, &'static str)> =
        COUNTS.into_iter().filter(|(count, _)| is_measured(*count)).collect();
    let sizes: BTreeSet<u64> = best.keys().map(|(bytes, _)| *bytes).collect();
    let row = |bytes: &u64| {
        let cell = |(count, _): &(u32, &str)| {
            let found = best.get(&(*bytes, *count));
            found.map_or("–".to_owned(), |(method, gbps)| format!("{} {gbps:.1}", word(*method)))
        };
        std::iter::once(format!("{} KiB", bytes >> 10)).chain(columns.iter().map(cell)).collect()
    };
    let rows: Vec<Vec<String>> = sizes.iter().map(row).collect();
    let titles = std::iter::once(title).chain(columns.iter().map(|(_, title)| *title)).collect();
    (!rows.is_empty()).then_some(Table { titles, rows })
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
