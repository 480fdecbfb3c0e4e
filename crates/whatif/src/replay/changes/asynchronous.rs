//! `async`: makes blocking copies asynchronous, with one stream per direction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{HostAction, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::edit::{
    OwnWaits, WORTH_MOVING, bytes_of, in_order, is_alone, move_all, new_stream, remove_call, runs_with,
    unblock_host, wait_by_event,
};
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Async;

/// Saved tensors are moved by a pair of Python hooks each, which cost this many times as much as a stream in a loop. Measured on
/// runs of fixtures/frameworks: 45 to 65 µs per tensor (`saved-…-async`), 5 to 15 µs in a loop (`checkpoint-…-async`).
const HOOKS: Time = 3;

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
        let returns = brought_back(graph, &places.order);
        let hooked: BTreeSet<WorkId> =
            returns.iter().flat_map(|(saved, unpacked)| [*saved, *unpacked]).collect();
        let beside = beside_large(graph, &places.order);
        let mut moves = Vec::new();
        let mut streams: BTreeMap<(i32, bool), usize> = BTreeMap::new();
        let mut fetched: BTreeMap<usize, u64> = BTreeMap::new();
        for (i, &id) in places.order.iter().enumerate() {
            let is_hooked = hooked.contains(&id);
            let is_read = bytes_of(graph, id) < WORTH_MOVING && !is_hooked && !beside.contains(&id);
            let Some(direction) = movable(graph, id) else { continue };
            if !is_hooked && (is_read && direction == Direction::DeviceToHost || !blocks(graph, &own, id)) {
                continue;
            }
            let to_host = direction == Direction::DeviceToHost;
            let stream =
                *streams.entry((places.device_of[id], to_host)).or_insert_with(|| new_stream(graph, id));
            moves.push((id, stream));
            unblock_host(graph, id);
            if let Some(call) = graph.work[id].call {
                graph.calls[call].cost += terms.assumed.side_stream * if is_hooked { HOOKS } else { 1 };
            }
            if let Some(wait) = own.get(id) {
                remove_call(graph, wait);
            }
            let is_dependent = !terms.assumed.independent || is_hooked;
            if is_dependent && to_host {
                let before = places.before[id].map(|before| (before, EVENT_PASSES));
                graph.work[id].waits.extend(before);
            } else if is_dependent {
                let users = places.users_of(graph, i);
                wait_by_event(graph, &[id], &users);
            }
            *fetched.entry(graph.work[id].step).or_default() += bytes_of(graph, id);
        }
        move_all(graph, &moves);
        for (saved, unpacked) in returns {
            graph.work[unpacked].waits.push((saved, EVENT_PASSES));
        }
        // Nothing blocks the host anymore: all copies of a step may be in flight at the same time.
        Made { changed: moves.len(), extra_bytes: fetched.values().copied().max().unwrap_or(0) }
    }
}

/// Saved tensors that go to the host and come back: the one that was saved last comes back first, and only after it arrived.
/// This holds whatever else overlaps.
fn brought_back(graph: &Model, order: &[WorkId]) -> BTreeMap<WorkId, WorkId> {
    let mut saved: BTreeMap<(usize, u64), Vec<WorkId>> = BTreeMap::new();
    let mut returns = BTreeMap::new();
    for &id in order {
        let of = (graph.work[id].step, bytes_of(graph, id));
        let unpacks = graph.work[id].call.is_some_and(|call| graph.calls[call].is_unpacking);
        if graph.work[id].kind.bus() == Some(Direction::DeviceToHost) {
            saved.entry(of).or_default().push(id);
        } else if let Some(copy) = unpacks.then(|| saved.get_mut(&of)?.pop()).flatten() {
            returns.insert(copy, id);
        }
    }
    returns
}

/// The direction of a copy that can be moved: a D2H copy to pageable memory always blocks.
fn movable(graph: &Model, id: WorkId) -> Option<Direction> {
    let WorkKind::Copy { pageable, .. } = graph.work[id].kind else { return None };
    let direction = graph.work[id].kind.bus()?;
    let must_block = direction == Direction::DeviceToHost && pageable;
    (is_alone(graph, id) && !must_block).then_some(direction)
}

/// Whether a copy blocks the host.
fn blocks(graph: &Model, own: &OwnWaits, id: WorkId) -> bool {
    let call = graph.work[id].call;
    own.get(id).is_some()
        || call.is_some_and(|call| graph.calls[call].action == HostAction::IssueBlocking(id))
}

/// Large copies, and small D2H copies right before and after them. The host waits for other small ones because it reads their
/// values.
fn beside_large(graph: &Model, order: &[WorkId]) -> BTreeSet<WorkId> {
    let is_down = |id: &WorkId| graph.work[*id].kind.bus() == Some(Direction::DeviceToHost);
    let is_large = |id: &WorkId| bytes_of(graph, *id) >= WORTH_MOVING;
    runs_with(order, |a, b| is_down(a) && is_down(b), is_large).copied().collect()
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
