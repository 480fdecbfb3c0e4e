//! `prefetch=N`: moves H2D copies to a separate stream, N groups ahead.

use std::collections::BTreeMap;
use std::fmt;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{Awaited, CallId, HostAction, HostCall, HostTime, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::edit::{
    Group, OwnWaits, bytes_of, groups, is_fetched, move_all, new_stream, remove_call, unblock_host,
    wait_by_event,
};
use super::{About, Declared, Made, Terms};
use crate::replay::assumed::Assumed;

/// The number of groups ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefetch(pub u32);

impl Declared for Prefetch {
    const ABOUT: About = About {
        name: "prefetch",
        spelling: "prefetch=N",
        help: "move H2D copies to a separate stream, N groups ahead",
        doing: "prefetching on a second stream",
        effort: "add a copy stream, one event per group, and one more buffer per group ahead",
        precondition: "the next data is known in advance, and device memory has room for it",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        match value.map_or(Ok(1), str::parse) {
            Ok(depth @ 1..=64) => Ok(Self(depth)),
            _ => Err("prefetch takes a depth from 1 to 64"),
        }
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let own = OwnWaits::of(graph);
        // Copies on a separate stream that the host does not wait for are already prefetched.
        let kernels: Vec<bool> = (0..graph.streams.len()).map(|stream| graph.has_kernels(stream)).collect();
        let wanted: Vec<bool> = (0..graph.work.len())
            .map(|id| is_fetched(graph, id) && (kernels[graph.work[id].stream] || own.get(id).is_some()))
            .collect();
        let mut made = Made::default();
        let in_hooks = graph.work.iter().any(|work| work.dropped && is_back(work.kind));
        let (depth, assumed) = (self.0 as usize, terms.assumed);
        let mut ahead = Ahead { depth, own, assumed, in_hooks, before: BTreeMap::new() };
        for of_device in groups(graph, |id| wanted[id]) {
            let its = ahead.fetch(graph, &of_device);
            made.changed += its.changed;
            made.extra_bytes += its.extra_bytes;
        }
        for thread in &mut graph.threads {
            let order = std::mem::take(thread);
            for call in order {
                thread.extend(ahead.before.remove(&call).unwrap_or_default());
                thread.push(call);
            }
        }
        made
    }
}

/// Weights that went back to the host in each step are moved by a framework's hooks around each module, which cost this many times
/// as much as a stream in a loop. Measured on runs of fixtures/frameworks: 40 to 65 µs per module (`diffusers-leaf_…-stream`).
const HOOKS: Time = 4;

fn is_back(kind: WorkKind) -> bool {
    matches!(kind, WorkKind::Copy { direction: Direction::DeviceToHost, .. })
}

/// Copies that are issued earlier.
struct Ahead {
    depth: usize,
    own: OwnWaits,
    assumed: Assumed,
    /// Whether a framework's hooks issue them.
    in_hooks: bool,
    /// Calls to insert before other calls.
    before: BTreeMap<CallId, Vec<CallId>>,
}

impl Ahead {
    /// Prefetches all groups of one device.
    fn fetch(&mut self, graph: &mut Model, all: &[Group]) -> Made {
        let Some(first) = all.first().and_then(|group| group.copies.first().copied()) else {
            return Made::default();
        };
        let stream = new_stream(graph, first);
        let mut moves = Vec::new();
        // Where each group's copies were issued, before any of them moves.
        let places: Vec<Option<CallId>> =
            all.iter().map(|group| group.copies.first().and_then(|id| graph.work[*id].call)).collect();
        let mut largest = 0;
        for (i, group) in all.iter().enumerate() {
            let Some(place) = places[i - group.number.min(self.depth)] else { continue };
            if self.in_hooks && self.assumed.hooks_wait && self.depth == 1 && group.number > 0 {
                self.wait_at(graph, &all[i - 1], place);
            }
            let called: Vec<WorkId> =
                group.copies.iter().copied().filter(|copy| self.call_at(graph, *copy, place)).collect();
            if let Some(call) = called.first().and_then(|copy| graph.work[*copy].call) {
                graph.calls[call].cost += self.assumed.side_stream * if self.in_hooks { HOOKS } else { 1 };
            }
            moves.extend(called.into_iter().map(|copy| (copy, stream)));
            // A buffer on the device is free when the group that used it is done.
            if group.number > self.depth
                && let Some(last) = last_kernel(graph, &all[i - self.depth - 1])
                && let Some(&copy) = group.copies.first()
            {
                graph.work[copy].waits.push((last, EVENT_PASSES));
            }
            wait_by_event(graph, &group.copies, &group.work);
            largest = largest.max(group.copies.iter().map(|id| bytes_of(graph, *id)).sum());
        }
        move_all(graph, &moves);
        Made { changed: moves.len(), extra_bytes: largest * self.depth as u64 }
    }

    /// The host waits for the last copy of a group.
    fn wait_at(&mut self, graph: &mut Model, group: &Group, place: CallId) {
        let Some(&last) = group.copies.last() else { return };
        let id = graph.calls.len();
        graph.calls.push(HostCall {
            since: HostTime::default(),
            after: None,
            after_work: None,
            action: HostAction::Wait { awaited: Awaited::Work(last), copy: None },
            cost: graph.copy_call,
            ..graph.calls[place].clone()
        });
        self.before.entry(place).or_default().push(id);
    }

    /// Moves the copy's call ahead; the host work before it stays in place. False for a copy without a call.
    fn call_at(&mut self, graph: &mut Model, copy: WorkId, place: CallId) -> bool {
        unblock_host(graph, copy);
        let Some(call) = graph.work[copy].call else { return false };
        let id = graph.calls.len();
        graph.calls.push(HostCall {
            since: HostTime::default(),
            after: None,
            after_work: None,
            ..graph.calls[call].clone()
        });
        remove_call(graph, call);
        graph.work[copy].call = Some(id);
        self.before.entry(place).or_default().push(id);
        if let Some(wait) = self.own.get(copy) {
            remove_call(graph, wait);
        }
        true
    }
}

fn last_kernel(graph: &Model, group: &Group) -> Option<WorkId> {
    group.work.iter().rev().copied().find(|id| graph.work[*id].kind.is_kernel())
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", Self::ABOUT.name, self.0)
    }
}
