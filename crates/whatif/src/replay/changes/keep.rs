//! `keep`: does not copy data back that the host already has.

use std::collections::BTreeMap;
use std::fmt;

use busbound_cause::{Model, WorkId, WorkKind};
use busbound_trace::Direction;

use super::edit::{Hooks, OwnWaits, WORTH_MOVING, in_order, is_alone};
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep;

impl Declared for Keep {
    const ABOUT: About = About {
        name: "keep",
        spelling: "keep",
        help: "do not copy data back that was copied up in the same step",
        doing: "keeping the host's copy",
        effort: "keep the host's copy and drop the one on the device",
        precondition: "the device does not change the data",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let (own, hooks) = (OwnWaits::of(graph), Hooks::of(graph));
        let mut made = Made::default();
        for copy in copied_back(graph) {
            hooks.drop_copy(graph, copy, &own, terms.assumed.hooks);
            made.changed += 1;
        }
        made
    }
}

/// D2H copies of as many bytes as an H2D copy of the same step.
fn copied_back(graph: &Model) -> Vec<WorkId> {
    let mut up: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    let copies: Vec<(WorkId, Direction, u64)> = in_order(graph)
        .into_iter()
        .filter(|id| is_alone(graph, *id))
        .filter_map(|id| match graph.work[id].kind {
            WorkKind::Copy { direction, bytes, .. } if bytes >= WORTH_MOVING => Some((id, direction, bytes)),
            _ => None,
        })
        .collect();
    for (id, _, bytes) in copies.iter().filter(|(_, direction, _)| *direction == Direction::HostToDevice) {
        *up.entry((graph.work[*id].step, *bytes)).or_default() += 1;
    }
    let down = copies.iter().filter(|(_, direction, _)| *direction == Direction::DeviceToHost);
    let is_back = |(id, _, bytes): &&(WorkId, Direction, u64)| {
        let left = up.get_mut(&(graph.work[*id].step, *bytes)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    down.filter(is_back).map(|(id, ..)| *id).collect()
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
