//! `keep`: does not copy data back that the host already has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use busbound_cause::{HostUse, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::cold::ColdCaches;
use super::edit::{Hooks, OwnWaits, WORTH_MOVING, WORTH_NOTICING, in_order, is_alone};
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep;

/// Bytes of new host memory per step that slow the host down. Chosen: the smallest run with the effect has 38 MB.
const CHURNING: u64 = 16 << 20;

impl Declared for Keep {
    const ABOUT: About = About {
        name: "keep",
        spelling: "keep",
        help: "do not copy data back that was copied up in the same step",
        doing: "not copying unchanged data back",
        effort: "keep the host's copy and drop the one on the device",
        precondition: "the device does not change the data",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let (own, back) = (OwnWaits::of(graph), copied_back(graph));
        let gone: BTreeSet<WorkId> = back.iter().copied().collect();
        ColdCaches::of(graph).warm(graph, terms.assumed.behind_staging, |copy| gone.contains(&copy));
        let (hooks, mut made) = (Hooks::of(graph), Made::default());
        for copy in back {
            hooks.drop_copy(graph, copy, &own, terms.assumed.hooks);
            made.changed += 1;
        }
        if made.changed > 0 {
            allocate_less(graph, terms.assumed.hooks);
            reuse_pages(graph, terms.assumed.reused_pages);
            calm_host(graph, terms.assumed.without_churn);
        }
        made
    }
}

/// Weights that are moved back into new host memory in each step keep the kernel busy with pages, and slow down what the host does
/// between launches.
fn calm_host(graph: &mut Model, share: f64) {
    let moved = graph.work.iter().filter(|work| work.dropped && is_staged(work.kind));
    let bytes: u64 = moved.map(|work| work.kind.bytes()).sum();
    if bytes < graph.steps as u64 * CHURNING {
        return;
    }
    for call in &mut graph.calls {
        let launching = call.since.uses.iter_mut().filter(|(what, _)| *what == HostUse::Launching);
        launching.for_each(|(_, time)| *time = (*time as f64 * share) as Time);
    }
}

fn is_staged(kind: WorkKind) -> bool {
    matches!(kind, WorkKind::Copy { direction: Direction::DeviceToHost, pageable: true, .. })
}

/// Hooks that move modules away also give their device memory back, and the next ones allocate it again.
fn allocate_less(graph: &mut Model, kept: f64) {
    let uses = graph.calls.iter_mut().flat_map(|call| &mut call.since.uses);
    for (_, time) in uses.filter(|(what, _)| *what == HostUse::Allocation) {
        *time = (*time as f64 * kept) as Time;
    }
}

/// Copies from host memory that is not written in each step are faster: its pages stay where they are.
fn reuse_pages(graph: &mut Model, share: f64) {
    for work in &mut graph.work {
        if matches!(work.kind, WorkKind::Copy { direction: Direction::HostToDevice, pageable: true, .. }) {
            work.alone *= share;
            work.after_call = (work.after_call as f64 * share) as Time;
        }
    }
}

/// D2H copies of as many bytes as an H2D copy of the same step; small ones only in a step with a large one.
fn copied_back(graph: &Model) -> Vec<WorkId> {
    let mut up: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    let copies: Vec<(WorkId, Direction, u64)> = in_order(graph)
        .into_iter()
        .filter(|id| is_alone(graph, *id))
        .filter_map(|id| match graph.work[id].kind {
            WorkKind::Copy { direction, bytes, .. } => Some((id, direction, bytes)),
            _ => None,
        })
        .collect();
    for (id, _, bytes) in copies.iter().filter(|(_, direction, _)| *direction == Direction::HostToDevice) {
        *up.entry((graph.work[*id].step, *bytes)).or_default() += 1;
    }
    let mut is_back = |(id, direction, bytes): &(WorkId, Direction, u64)| {
        let left = up.get_mut(&(graph.work[*id].step, *bytes)).filter(|left| **left > 0);
        *direction == Direction::DeviceToHost && left.map(|left| *left -= 1).is_some()
    };
    let back: Vec<(WorkId, u64)> =
        copies.iter().filter(|copy| is_back(copy)).map(|copy| (copy.0, copy.2)).collect();
    let large = back.iter().filter(|(_, bytes)| *bytes >= WORTH_MOVING);
    let steps: BTreeSet<usize> = large.map(|(id, _)| graph.work[*id].step).collect();
    let is_moved =
        |(id, bytes): &(WorkId, u64)| *bytes >= WORTH_NOTICING && steps.contains(&graph.work[*id].step);
    back.into_iter().filter(is_moved).map(|(id, _)| id).collect()
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
