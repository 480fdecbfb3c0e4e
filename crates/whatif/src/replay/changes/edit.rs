//! Which graph edits do several changes share?

use std::collections::BTreeSet;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{Awaited, CallId, Few, HostAction, HostUse, Model, Time, WorkId, WorkKind};
use busbound_machine::{HostMemory, LinkFacts, bench};
use busbound_trace::Direction;

/// Smaller copies are not worth a separate stream.
pub(super) const WORTH_MOVING: u64 = 64 << 10;
/// Smaller copies are values that the program reads or sets, and no weights.
pub(super) const WORTH_NOTICING: u64 = 256;
/// A wait that takes less than this found nothing to wait for. Measured: docs/results/thresholds.md, syncs that return at once.
const AT_ONCE: Time = 20_000;

/// Host time between two launches without hooks, as a multiple of the time of a launch call: the lowest quarter of a step. Measured on
/// 110 runs in fixtures/frameworks: median 2.3, without hooks 1 to 3.5; hooks before every leaf module, 4.1 to 5.
const USUALLY_BETWEEN: f64 = 2.3;
const MOST_BETWEEN: f64 = 3.0;
/// With fewer pairs of launches, the lowest quarter is an accident.
const ENOUGH_GAPS: usize = 8;

/// Time of a copy from the link's curve, in nanoseconds.
pub(super) fn copy_ns(bytes: u64, direction: Direction, pageable: bool, link: &LinkFacts) -> f64 {
    let rate = || link.expected_of(bytes, bus_direction(direction), host_memory(pageable));
    if bytes == 0 { 0.0 } else { bytes as f64 / rate() }
}

pub(super) fn bus_direction(direction: Direction) -> bench::Direction {
    match direction {
        Direction::DeviceToHost => bench::Direction::D2h,
        _ => bench::Direction::H2d,
    }
}

pub(super) fn host_memory(pageable: bool) -> HostMemory {
    if pageable { HostMemory::Pageable } else { HostMemory::Pinned }
}

/// Whether its call issues nothing else: the nodes of a CUDA graph cannot be moved separately.
pub(super) fn is_alone(graph: &Model, work: WorkId) -> bool {
    graph.work[work].call.is_some_and(|call| match &graph.calls[call].action {
        HostAction::Issue(issued) => issued.len() == 1,
        HostAction::IssueBlocking(_) => true,
        _ => false,
    })
}

/// Whether it is an H2D copy that can be moved and is large enough.
pub(super) fn is_fetched(graph: &Model, id: WorkId) -> bool {
    can_be_fetched(graph, id) && bytes_of(graph, id) >= WORTH_MOVING
}

/// Whether it is an H2D copy that can be moved, however small.
fn can_be_fetched(graph: &Model, id: WorkId) -> bool {
    let work = &graph.work[id];
    !work.dropped && is_alone(graph, id) && work.kind.bus() == Some(Direction::HostToDevice)
}

/// All of every run of neighbors that has a wanted one: whoever moves the weights of a layer moves its biases too.
pub(super) fn runs_with<T>(
    order: &[T],
    are_neighbors: impl Fn(&T, &T) -> bool,
    wanted: impl Fn(&T) -> bool,
) -> impl Iterator<Item = &T> {
    order.chunk_by(are_neighbors).filter(move |run| run.iter().any(&wanted)).flatten()
}

/// Per copy: the wait in its own operator.
pub(super) struct OwnWaits(Vec<Option<CallId>>);

impl OwnWaits {
    pub(super) fn of(graph: &Model) -> Self {
        let mut waits = vec![None; graph.work.len()];
        for (id, call) in graph.calls.iter().enumerate() {
            if let HostAction::Wait { copy: Some(copy), .. } = call.action {
                waits[copy] = Some(id);
            }
        }
        Self(waits)
    }

    pub(super) fn get(&self, copy: WorkId) -> Option<CallId> {
        self.0[copy]
    }
}

/// Work in call order.
pub(super) fn in_order(graph: &Model) -> Vec<WorkId> {
    let mut order: Vec<WorkId> = (0..graph.work.len()).filter(|id| !graph.work[*id].dropped).collect();
    order.sort_by_key(|id| {
        let work = &graph.work[*id];
        (work.call.map_or(work.start, |call| graph.calls[call].start), *id)
    });
    order
}

/// H2D copies, and the work that follows them until the next H2D copies.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) step: usize,
    /// Index within its step.
    pub(super) number: usize,
    pub(super) copies: Vec<WorkId>,
    /// In call order.
    pub(super) work: Vec<WorkId>,
}

/// The groups of each device, device by device.
pub(super) fn groups(graph: &Model, wanted: impl Fn(WorkId) -> bool) -> Vec<Vec<Group>> {
    let order = in_order(graph);
    graph
        .devices()
        .into_iter()
        .map(|device| {
            let of_device =
                order.iter().copied().filter(|id| graph.stream_device[graph.work[*id].stream] == device);
            groups_of(graph, &of_device.collect::<Vec<_>>(), &wanted)
        })
        .collect()
}

/// The wanted copies, and the small ones right before and after them.
fn with_small(graph: &Model, order: &[WorkId], wanted: impl Fn(WorkId) -> bool) -> BTreeSet<WorkId> {
    let ends_run = |id: &WorkId| graph.work[*id].kind.is_kernel();
    let step = |id: &WorkId| graph.work[*id].step;
    let are_neighbors = |a: &WorkId, b: &WorkId| !ends_run(a) && !ends_run(b) && step(a) == step(b);
    let whole = runs_with(order, are_neighbors, |id| wanted(*id)).copied();
    whole.filter(|id| can_be_fetched(graph, *id)).collect()
}

fn groups_of(graph: &Model, order: &[WorkId], wanted: impl Fn(WorkId) -> bool) -> Vec<Group> {
    let wanted = with_small(graph, order, wanted);
    let mut groups: Vec<Group> = Vec::new();
    let mut has_computed = false;
    for &id in order {
        let step = graph.work[id].step;
        let open = groups.last_mut().filter(|group| group.step == step);
        if wanted.contains(&id) {
            match open.filter(|_| !has_computed) {
                Some(group) => group.copies.push(id),
                None => {
                    let number =
                        groups.last().filter(|last| last.step == step).map_or(0, |last| last.number + 1);
                    groups.push(Group { step, number, copies: vec![id], work: Vec::new() });
                }
            }
            has_computed = false;
        } else if let Some(group) = open {
            has_computed |= graph.work[id].kind.is_kernel();
            group.work.push(id);
        }
    }
    groups
}

/// A new stream on the device of this work.
pub(super) fn new_stream(graph: &mut Model, like: WorkId) -> usize {
    graph.streams.push(Vec::new());
    graph.stream_device.push(graph.stream_device[graph.work[like].stream]);
    graph.streams.len() - 1
}

/// Appends work to other streams, in this order.
pub(super) fn move_all(graph: &mut Model, moves: &[(WorkId, usize)]) {
    let mut is_moved = vec![false; graph.work.len()];
    for (id, _) in moves {
        is_moved[*id] = true;
    }
    for stream in &mut graph.streams {
        stream.retain(|id| !is_moved[*id]);
    }
    for &(id, stream) in moves {
        let work = &mut graph.work[id];
        work.stream = stream;
        work.after_work = work.after_work.min(EVENT_PASSES);
        work.after_call = work.after_call.min(2 * EVENT_PASSES);
        graph.streams[stream].push(id);
    }
}

/// Makes the call of a copy non-blocking, unless the host stages the copy.
pub(super) fn unblock_host(graph: &mut Model, copy: WorkId) {
    if let (Some(call), WorkKind::Copy { pageable: false, .. }) =
        (graph.work[copy].call, graph.work[copy].kind)
        && graph.calls[call].action == HostAction::IssueBlocking(copy)
    {
        graph.calls[call].action = HostAction::Issue(Few::one(copy));
        graph.calls[call].cost = graph.copy_call;
    }
}

/// Makes the first work on each stream wait for these copies with an event.
pub(super) fn wait_by_event(graph: &mut Model, copies: &[WorkId], work: &[WorkId]) {
    let mut seen: Vec<usize> = Vec::new();
    for &id in work {
        let stream = graph.work[id].stream;
        if seen.contains(&stream) || graph.work[id].kind.bus().is_some() {
            continue;
        }
        seen.push(stream);
        graph.work[id].waits.extend(copies.iter().map(|copy| (*copy, EVENT_PASSES)));
    }
}

/// Removes the host work before a call that exists only for the call: all of it but `kept`, 0 to 1. Waiting for input or for
/// another thread stays.
pub(super) fn remove_host_work(graph: &mut Model, call: CallId, kept: f64) {
    for (what, time) in &mut graph.calls[call].since.uses {
        if !matches!(what, HostUse::Input | HostUse::Waiting) {
            *time = (*time as f64 * kept) as Time;
        }
    }
}

/// Per call: the one after it on its thread.
pub(super) fn next_calls(graph: &Model) -> Vec<Option<CallId>> {
    let mut next = vec![None; graph.calls.len()];
    for pair in graph.threads.iter().flat_map(|thread| thread.windows(2)) {
        next[pair[0]] = Some(pair[1]);
    }
    next
}

/// Host work around copies: what is between two launches without a copy, and the call after each call.
pub(super) struct Hooks {
    usual_gap: Time,
    next: Vec<Option<CallId>>,
}

impl Hooks {
    pub(super) fn of(graph: &Model) -> Self {
        let (mut gaps, mut costs) = (Vec::new(), Vec::new());
        let launches = |call: CallId| {
            let issued = graph.calls[call].action.issued();
            !issued.is_empty() && issued.iter().all(|work| graph.work[*work].kind.is_kernel())
        };
        for pair in graph.threads.iter().flat_map(|thread| thread.windows(2)) {
            if launches(pair[0]) && launches(pair[1]) {
                gaps.push(graph.calls[pair[1]].gap());
            }
            costs.extend(launches(pair[1]).then(|| graph.calls[pair[1]].cost));
        }
        gaps.sort_unstable();
        costs.sort_unstable();
        let launch = costs.get(costs.len() / 2).copied().unwrap_or(0) as f64;
        let usually = (USUALLY_BETWEEN * launch) as Time;
        let usual_gap = match gaps.get(gaps.len() / 4) {
            Some(gap) if gaps.len() >= ENOUGH_GAPS && *gap as f64 > MOST_BETWEEN * launch => usually,
            Some(gap) => *gap,
            None => usually,
        };
        Self { usual_gap, next: next_calls(graph) }
    }

    /// Removes the host work after a call that exists for it: the next launch then comes as usual.
    pub(super) fn remove_after(&self, graph: &mut Model, call: CallId, kept: f64) {
        let Some(next) = self.next[call] else { return };
        let gap = graph.calls[next].gap();
        let usual = self.usual_gap.min(gap);
        let kept = usual as f64 / gap.max(1) as f64 + kept * (1.0 - usual as f64 / gap.max(1) as f64);
        remove_host_work(graph, next, kept);
    }

    /// Removes hooks that run between launches without a copy: no gap stays longer than `times` the usual one.
    pub(super) fn shorten(&self, graph: &mut Model, group: &Group, times: f64) {
        let most = (self.usual_gap as f64 * times) as Time;
        let calls: Vec<CallId> = group.work.iter().filter_map(|work| graph.work[*work].call).collect();
        for call in calls {
            if self.usual_gap > 0 && graph.calls[call].gap() > most {
                graph.calls[call].set_gap(most);
            }
        }
    }

    /// Removes a copy with everything that exists for it: its call, the wait for it, and the host work around it.
    pub(super) fn drop_copy(&self, graph: &mut Model, copy: WorkId, own: &OwnWaits, kept: f64) {
        let wait = own.get(copy);
        drop_copy(graph, copy, wait);
        for call in graph.work[copy].call.into_iter().chain(wait) {
            remove_host_work(graph, call, kept);
        }
        if let Some(last) = wait.or(graph.work[copy].call) {
            self.remove_after(graph, last, kept);
        }
    }

    /// Removes the waits for streams that have no work left, and those that a hook makes before it copies, with the host work around
    /// them.
    pub(super) fn drop_waits_for_nothing(&self, graph: &mut Model, kept: f64) {
        let mut is_used = vec![false; graph.streams.len()];
        let mut is_dropped = vec![false; graph.calls.len()];
        for work in &graph.work {
            is_used[work.stream] |= !work.dropped;
            if let Some(call) = work.call.filter(|_| work.dropped) {
                is_dropped[call] = true;
            }
        }
        let is_over = |id: &CallId| {
            let call = &graph.calls[*id];
            let HostAction::Wait { awaited, .. } = call.action else { return false };
            let is_before_copy = || self.next[*id].is_some_and(|next| is_dropped[next]);
            match awaited {
                Awaited::Stream(stream) if !is_used[stream] => true,
                Awaited::Work(work) if !is_used[graph.work[work].stream] => true,
                Awaited::Device(_) => false,
                _ => call.end - call.start < AT_ONCE && is_before_copy(),
            }
        };
        let over: Vec<CallId> = (0..graph.calls.len()).filter(is_over).collect();
        for call in over {
            remove_call(graph, call);
            remove_host_work(graph, call, kept);
            self.remove_after(graph, call, kept);
        }
    }
}

/// Small H2D copies of a group: a hook that fetches weights also fetches small ones.
pub(super) fn small_copies(graph: &Model, group: &Group) -> Vec<WorkId> {
    group.work.iter().copied().filter(|id| can_be_fetched(graph, *id)).collect()
}

/// Small H2D copies that are left, of the size of one that was removed: those of modules that have only small weights.
pub(super) fn alike_small_copies(graph: &Model) -> Vec<WorkId> {
    let small = |id: &WorkId| (WORTH_NOTICING..WORTH_MOVING).contains(&bytes_of(graph, *id));
    let removed = (0..graph.work.len()).filter(|id| graph.work[*id].dropped).filter(small);
    let sizes: BTreeSet<u64> = removed.map(|id| bytes_of(graph, id)).collect();
    let is_alike = |id: &WorkId| can_be_fetched(graph, *id) && sizes.contains(&bytes_of(graph, *id));
    (0..graph.work.len()).filter(is_alike).collect()
}

/// Removes a call; the host work before it stays.
pub(super) fn remove_call(graph: &mut Model, call: CallId) {
    graph.calls[call].action = HostAction::Nothing;
    graph.calls[call].cost = 0;
}

/// Removes a copy and the wait for it.
pub(super) fn drop_copy(graph: &mut Model, copy: WorkId, own_wait: Option<CallId>) {
    graph.work[copy].dropped = true;
    for call in graph.work[copy].call.into_iter().chain(own_wait) {
        remove_call(graph, call);
    }
}

/// Bytes of a copy; 0 for other work.
pub(super) fn bytes_of(graph: &Model, id: WorkId) -> u64 {
    graph.work[id].kind.bytes()
}
