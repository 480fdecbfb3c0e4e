//! `coalesce`: merges small copies in one direction into one.

use std::fmt;

use busbound_cause::{HostUse, Model, Time, Work, WorkId, WorkKind};
use busbound_machine::{Blocks, LinkFacts};
use busbound_trace::Direction;

use super::edit::{OwnWaits, bus_direction, bytes_of, copy_ns, drop_copy, host_memory, in_order, is_alone};
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalesce;

/// Copies up to this size are merged.
const LARGEST_MERGED: u64 = 1 << 20;

impl Declared for Coalesce {
    const ABOUT: About = About {
        name: "coalesce",
        spelling: "coalesce",
        help: "merge small copies in one direction into one",
        doing: "merging small copies",
        effort: "pack the small copies into one buffer",
        precondition: "the data of all copies is ready at the same time",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        let own = OwnWaits::of(graph);
        for run in runs(graph).into_iter().filter(|run| run.len() > 1) {
            let total = run.iter().map(|id| bytes_of(graph, *id)).sum();
            let kept = place_of(graph, &run);
            for &id in run.iter().filter(|id| **id != kept) {
                drop_copy(graph, id, own.get(id));
                // Most of the host work that prepared the copy goes away too. Memory is still allocated.
                if let Some(call) = graph.work[id].call.map(|call| &mut graph.calls[call]) {
                    let stays = call.since.of(HostUse::Allocation);
                    let packing = (call.gap() - stays) as f64 * terms.assumed.packing;
                    call.set_gap(stays + packing as Time);
                }
            }
            made.changed += run.len();
            let merged = &mut graph.work[kept];
            if let WorkKind::Copy { direction, pageable, .. } = merged.kind {
                merged.kind = WorkKind::Copy { direction, pageable, bytes: total };
                let alone = merged_ns(run.len(), total, direction, pageable, terms.link);
                merged.alone = alone * terms.assumed.copies;
            }
        }
        made
    }
}

/// One copy of all bytes; or the fastest way to move that many blocks that lie apart, where the profile has it.
fn merged_ns(copies: usize, total: u64, direction: Direction, pageable: bool, link: &LinkFacts) -> f64 {
    let blocks = Blocks {
        direction: bus_direction(direction),
        memory: host_memory(pageable),
        block_bytes: total / copies.max(1) as u64,
        blocks: copies as u64,
    };
    let as_one = copy_ns(total, direction, pageable, link);
    link.together_ns(&blocks).map_or(as_one, |apart| apart.max(as_one))
}

/// Where the merged copy is: data for the device is there from the start, data from the device when the last of it is computed.
fn place_of(graph: &Model, run: &[WorkId]) -> WorkId {
    let is_read = |id: &&WorkId| graph.work[**id].kind.bus() == Some(Direction::DeviceToHost);
    *run.last().filter(is_read).unwrap_or(&run[0])
}

/// Small copies in one direction on one stream within one step, with nothing but kernels between them. A copy in the other
/// direction ends a run: what follows may depend on it.
fn runs(graph: &Model) -> Vec<Vec<WorkId>> {
    let mut runs: Vec<Vec<WorkId>> = Vec::new();
    let mut run: Vec<WorkId> = Vec::new();
    for id in in_order(graph).into_iter().filter(|id| graph.work[*id].kind.bus().is_some()) {
        let continues = run.first().is_some_and(|first| is_alike(&graph.work[*first], &graph.work[id]));
        if is_small(graph, id) && continues {
            run.push(id);
        } else {
            runs.push(std::mem::take(&mut run));
            if is_small(graph, id) {
                run.push(id);
            }
        }
    }
    runs.push(run);
    runs
}

fn is_small(graph: &Model, id: WorkId) -> bool {
    is_alone(graph, id)
        && matches!(
            graph.work[id].kind,
            WorkKind::Copy {
                direction: Direction::HostToDevice | Direction::DeviceToHost,
                bytes: 1..=LARGEST_MERGED,
                ..
            }
        )
}

fn is_alike(a: &Work, b: &Work) -> bool {
    let same_memory = match (a.kind, b.kind) {
        (
            WorkKind::Copy { pageable: a, direction: from, .. },
            WorkKind::Copy { pageable: b, direction: to, .. },
        ) => (a, from) == (b, to),
        _ => false,
    };
    a.stream == b.stream && a.step == b.step && same_memory
}

impl fmt::Display for Coalesce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

#[cfg(test)]
mod tests {
    use busbound_machine::bench::{self, Memory, ScatterMethod};
    use busbound_machine::{Machine, MachineProfile, ScatterGrid, ScatterPoint};

    use super::*;

    /// 256 blocks of 64 KiB: one copy of 16 MiB takes 305 µs, and in a kernel 1,000 µs with 9 µs of waiting.
    #[test]
    fn merged_copies_take_as_long_as_the_fastest_method_that_was_measured_without_a_loop() {
        let json = include_str!("../../../../../fixtures/machines/h200.json");
        let profile = MachineProfile::parse(json).unwrap();
        let grid = |method, us| ScatterGrid {
            direction: bench::Direction::H2d,
            memory: Memory::Pinned,
            method,
            points: vec![ScatterPoint { block_bytes: 64 << 10, blocks: 256, us }],
        };
        let ns = |scatter: Vec<ScatterGrid>, direction| {
            let link = Machine::measured(MachineProfile { scatter, ..profile.clone() }).link_of(None);
            merged_ns(256, 16 << 20, direction, false, &link)
        };
        let both = |us| vec![grid(ScatterMethod::Loop, 200.0), grid(ScatterMethod::Kernel, us)];
        let as_one = ns(Vec::new(), Direction::HostToDevice);
        assert!((as_one / 305_000.0 - 1.0).abs() < 0.01, "{as_one}");
        let apart = ns(both(1000.0), Direction::HostToDevice);
        assert!((apart / 991_000.0 - 1.0).abs() < 0.001, "{apart}");
        // Never faster than one copy of all bytes, and only where it was measured.
        assert_eq!(ns(both(100.0), Direction::HostToDevice), as_one);
        assert_eq!(ns(both(1000.0), Direction::DeviceToHost), ns(Vec::new(), Direction::DeviceToHost));
    }
}
