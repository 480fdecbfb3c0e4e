//! `async`: makes blocking copies asynchronous, with one stream per direction.

use std::collections::BTreeMap;
use std::fmt;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{HostAction, Model, WorkId, WorkKind};
use busbound_trace::Direction;

use super::edit::{
    OwnWaits, WORTH_MOVING, bytes_of, in_order, is_alone, move_all, new_stream, remove_call, unblock_host,
    wait_by_event,
};
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Async;

impl Declared for Async {
    const ABOUT: About = About {
        name: "async",
        spelling: "async",
        help: "make blocking copies asynchronous, with one stream per direction",
        doing: "copying without waiting",
        effort: "add one stream per direction, `non_blocking=True` and events",
        precondition: "the copied data is neither modified nor used before its event",
        depends_on_data: true,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let own = OwnWaits::of(graph);
        let places = Places::of(graph);
        let mut moves = Vec::new();
        let mut streams: BTreeMap<(i32, bool), usize> = BTreeMap::new();
        let mut fetched: BTreeMap<usize, u64> = BTreeMap::new();
        for (i, &id) in places.order.iter().enumerate() {
            let Some(direction) = blocking_copy(graph, &own, id) else { continue };
            let to_host = direction == Direction::DeviceToHost;
            let stream =
                *streams.entry((places.device_of[id], to_host)).or_insert_with(|| new_stream(graph, id));
            moves.push((id, stream));
            unblock_host(graph, id);
            if let Some(call) = graph.work[id].call {
                graph.calls[call].cost += terms.assumed.side_stream;
            }
            if let Some(wait) = own.get(id) {
                remove_call(graph, wait);
            }
            if !terms.assumed.independent && to_host {
                let before = places.before[id].map(|before| (before, EVENT_PASSES));
                graph.work[id].waits.extend(before);
            } else if !terms.assumed.independent {
                let users = places.users_of(graph, i);
                wait_by_event(graph, &[id], &users);
            }
            *fetched.entry(graph.work[id].step).or_default() += bytes_of(graph, id);
        }
        move_all(graph, &moves);
        // Nothing blocks the host anymore: all copies of a step may be in flight at the same time.
        Made { changed: moves.len(), extra_bytes: fetched.values().copied().max().unwrap_or(0) }
    }
}

/// The direction of a copy that blocks the host unnecessarily.
fn blocking_copy(graph: &Model, own: &OwnWaits, id: WorkId) -> Option<Direction> {
    let work = &graph.work[id];
    let WorkKind::Copy { pageable, bytes, .. } = work.kind else { return None };
    let direction = work.kind.bus()?;
    // A D2H copy to pageable memory always blocks, and the host needs to wait for a small value that it reads.
    let must_block = direction == Direction::DeviceToHost && (pageable || bytes < WORTH_MOVING);
    let blocks = work.call.is_some_and(|call| graph.calls[call].action == HostAction::IssueBlocking(id));
    let may_move = is_alone(graph, id) && !must_block && (blocks || own.get(id).is_some());
    may_move.then_some(direction)
}

/// The position of all work before any of it moves.
struct Places {
    /// In call order.
    order: Vec<WorkId>,
    device_of: Vec<i32>,
    /// Per kernel or copy: the previous one on its stream.
    before: Vec<Option<WorkId>>,
}

impl Places {
    fn of(graph: &Model) -> Self {
        let mut before = vec![None; graph.work.len()];
        for pair in graph.streams.iter().flat_map(|stream| stream.windows(2)) {
            before[pair[1]] = Some(pair[0]);
        }
        Self {
            order: in_order(graph),
            device_of: graph.work.iter().map(|work| graph.stream_device[work.stream]).collect(),
            before,
        }
    }

    /// The work after a copy, up to the next H2D copy: it uses the copied data.
    fn users_of(&self, graph: &Model, place: usize) -> Vec<WorkId> {
        let copy = self.order[place];
        let (device, step) = (self.device_of[copy], graph.work[copy].step);
        let rest = self.order[place + 1..].iter().copied();
        rest.filter(|next| self.device_of[*next] == device)
            .take_while(|next| graph.work[*next].step == step)
            .take_while(|next| graph.work[*next].kind.bus() != Some(Direction::HostToDevice))
            .collect()
    }
}

impl fmt::Display for Async {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
