//! What can be changed, and what does each change do to the graph?

use std::fmt;
use std::str::FromStr;

use busbound_machine::{HostMemory, LinkFacts, Machine, bench};
use busbound_trace::Direction;
use hashbrown::{HashMap, HashSet};

use super::power::Effect;
use busbound_cause::EVENT_PASSES;
use busbound_cause::{CallId, HostAction, HostCall, Model, Time, WorkId, WorkKind};

/// A change to a run, before anyone writes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Host memory page-locked.
    Pin,
    /// Copies to the device on a stream of their own, so many groups ahead.
    Prefetch(u32),
    /// Copies that block made asynchronous, each direction on its own stream.
    Async,
    /// Small copies in a row merged into one.
    Coalesce,
    /// Synchronisation within a step removed.
    NoSync,
    /// Another link, by the name that was given.
    Link(String, Box<LinkFacts>),
    /// This share of the weights that come in each step kept on the device, 0 to 1.
    Resident(f64),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown change {given:?}: {why}; there are pin, prefetch=N, async, coalesce, nosync, link=NAME and resident=N%"
)]
pub struct UnknownChange {
    given: String,
    why: &'static str,
}

impl FromStr for Change {
    type Err = UnknownChange;

    fn from_str(text: &str) -> Result<Self, UnknownChange> {
        let wrong = |why| UnknownChange { given: text.to_owned(), why };
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("pin", None) => Ok(Self::Pin),
            ("async", None) => Ok(Self::Async),
            ("coalesce", None) => Ok(Self::Coalesce),
            ("nosync", None) => Ok(Self::NoSync),
            ("prefetch", Some(depth)) => match depth.parse() {
                Ok(depth @ 1..=64) => Ok(Self::Prefetch(depth)),
                _ => Err(wrong("prefetch takes a depth from 1 to 64")),
            },
            ("prefetch", None) => Ok(Self::Prefetch(1)),
            ("link", Some(name)) => {
                let machine = Machine::named(name).map_err(|_| wrong("no link or GPU has that name"))?;
                Ok(Self::Link(name.to_owned(), Box::new(machine.link_of(None))))
            }
            ("resident", Some(share)) => {
                let number = share.trim_end_matches('%').parse::<f64>().ok();
                let share = number
                    .filter(|share| (0.0..=100.0).contains(share))
                    .ok_or(wrong("give a share such as 50%"))?;
                Ok(Self::Resident(share / 100.0))
            }
            _ => Err(wrong("no such change")),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin => f.write_str("pin"),
            Self::Prefetch(depth) => write!(f, "prefetch={depth}"),
            Self::Async => f.write_str("async"),
            Self::Coalesce => f.write_str("coalesce"),
            Self::NoSync => f.write_str("nosync"),
            Self::Link(name, _) => write!(f, "link={name}"),
            Self::Resident(share) => write!(f, "resident={}%", (1e6 * share).round() / 1e4),
        }
    }
}

impl Change {
    /// Whether its effect hangs on which work made which data, which no trace tells.
    pub(super) fn depends_on_data(&self) -> bool {
        matches!(self, Self::Async)
    }
}

/// What is taken for granted where the trace does not tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Assumed {
    /// Times of changed copies, as a multiple of the curve's.
    pub(super) copies: f64,
    /// Host work right behind a staged copy, as a multiple of what it took: staging leaves the CPU's caches
    /// to the copy, and what comes next finds them cold.
    pub(super) behind_staging: f64,
    /// Host work for each copy that is merged into another, as a multiple of what it took: it has to be packed.
    pub(super) packing: f64,
    /// How much of the power effect comes.
    pub(super) power: Effect,
    /// What is copied has nothing to do with the work beside it: it is of the turn before or after.
    pub(super) independent: bool,
}

impl Assumed {
    pub(super) const MIDDLE: Self = Self {
        copies: 1.0,
        behind_staging: 0.5,
        packing: 0.2,
        power: Effect::AsMeasured,
        independent: false,
    };
    pub(super) const BEST: Self =
        Self { copies: 0.98, behind_staging: 0.3, packing: 0.0, power: Effect::None, independent: true };
    pub(super) const WORST: Self =
        Self { copies: 1.03, behind_staging: 1.0, packing: 0.6, power: Effect::Most, independent: false };
}

/// What a change came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Made {
    pub(super) changed: usize,
    pub(super) extra_bytes: u64,
}

/// Smaller copies are not worth a stream of their own.
const WORTH_MOVING: u64 = 64 << 10;
/// The most that cold caches cost the host after a staged copy.
const COLD_CACHES: Time = 150_000;
/// Copies up to this size are merged.
const SMALL: u64 = 1 << 20;

pub(super) fn apply(graph: &mut Model, change: &Change, link: &LinkFacts, assumed: Assumed) -> Made {
    match change {
        Change::Pin => pin(graph, link, assumed),
        Change::Prefetch(depth) => prefetch(graph, *depth as usize),
        Change::Async => asynchronous(graph, assumed),
        Change::Coalesce => coalesce(graph, link, assumed),
        Change::NoSync => no_sync(graph),
        Change::Link(_, new) => other_link(graph, link, new, assumed),
        Change::Resident(share) => resident(graph, *share),
    }
}

/// Time of a copy by the link's curve, in nanoseconds.
fn copy_ns(bytes: u64, direction: Direction, pageable: bool, link: &LinkFacts) -> f64 {
    let direction = match direction {
        Direction::DeviceToHost => bench::Direction::D2h,
        _ => bench::Direction::H2d,
    };
    let memory = if pageable { HostMemory::Pageable } else { HostMemory::Pinned };
    if bytes == 0 { 0.0 } else { bytes as f64 / link.expected_of(bytes, direction, memory) }
}

/// Whether its call issues nothing else: a graph's nodes cannot be moved one by one.
fn is_alone(graph: &Model, op: WorkId) -> bool {
    graph.work[op].call.is_some_and(|item| match &graph.calls[item].action {
        HostAction::Issue(ops) => ops.len() == 1,
        HostAction::IssueBlocking(_) => true,
        _ => false,
    })
}

/// The wait in its own operator, by copy.
fn own_waits(graph: &Model) -> HashMap<WorkId, CallId> {
    let waits = graph.calls.iter().enumerate().filter_map(|(id, item)| match item.action {
        HostAction::Wait { copy: Some(copy), .. } => Some((copy, id)),
        _ => None,
    });
    waits.collect()
}

fn pin(graph: &mut Model, link: &LinkFacts, assumed: Assumed) -> Made {
    let mut made = Made::default();
    let own = own_waits(graph);
    // The calls behind which the host went on.
    let mut behind: Vec<CallId> = Vec::new();
    for op in 0..graph.work.len() {
        let WorkKind::Copy { direction, pageable: true, bytes } = graph.work[op].kind else { continue };
        // Of a copy whose size is not told nothing can be said.
        if graph.work[op].kind.bus().is_none() || graph.work[op].dropped || bytes == 0 {
            continue;
        }
        let work = &mut graph.work[op];
        work.kind = WorkKind::Copy { direction, pageable: false, bytes };
        work.alone = copy_ns(bytes, direction, false, link) * assumed.copies;
        // Staging began before the copy did.
        work.after_call = work.after_call.min(2 * EVENT_PASSES);
        if let Some(item) = work.call
            && graph.calls[item].action == HostAction::IssueBlocking(op)
        {
            graph.calls[item].action = HostAction::Issue(vec![op]);
            graph.calls[item].cost = graph.copy_call;
            if bytes >= WORTH_MOVING {
                behind.push(own.get(&op).copied().unwrap_or(item));
            }
        }
        made.changed += 1;
    }
    let behind: HashSet<CallId> = behind.into_iter().collect();
    for thread in graph.threads.clone() {
        for pair in thread.windows(2).filter(|pair| behind.contains(&pair[0])) {
            let next = &mut graph.calls[pair[1]];
            let saved = (next.gap as f64 * (1.0 - assumed.behind_staging)) as Time;
            next.gap -= saved.min(COLD_CACHES);
        }
    }
    made
}

/// Copies that come in, and the work that follows them until the next.
#[derive(Debug)]
struct Group {
    step: usize,
    /// Among those of its step.
    number: usize,
    copies: Vec<WorkId>,
    /// In order of their calls.
    work: Vec<WorkId>,
}

fn is_fetched(graph: &Model, op: WorkId) -> bool {
    let work = &graph.work[op];
    !work.dropped
        && is_alone(graph, op)
        && matches!(work.kind, WorkKind::Copy { direction: Direction::HostToDevice, bytes, .. } if bytes >= WORTH_MOVING)
}

/// Work in the order of its calls.
fn in_order(graph: &Model) -> Vec<WorkId> {
    let mut order: Vec<WorkId> = (0..graph.work.len()).filter(|op| !graph.work[*op].dropped).collect();
    order.sort_by_key(|op| {
        let work = &graph.work[*op];
        (work.call.map_or(work.start, |item| graph.calls[item].start), *op)
    });
    order
}

/// The groups of each device, device by device.
fn groups(graph: &Model, wanted: impl Fn(WorkId) -> bool) -> Vec<Vec<Group>> {
    let order = in_order(graph);
    graph
        .devices()
        .into_iter()
        .map(|device| {
            let of_device =
                order.iter().copied().filter(|op| graph.stream_device[graph.work[*op].stream] == device);
            groups_of(graph, of_device, &wanted)
        })
        .collect()
}

fn groups_of(
    graph: &Model,
    order: impl Iterator<Item = WorkId>,
    wanted: impl Fn(WorkId) -> bool,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut has_computed = false;
    for op in order {
        let step = graph.work[op].step;
        let open = groups.last_mut().filter(|group| group.step == step);
        if wanted(op) {
            match open.filter(|_| !has_computed) {
                Some(group) => group.copies.push(op),
                None => {
                    let number =
                        groups.last().filter(|last| last.step == step).map_or(0, |last| last.number + 1);
                    groups.push(Group { step, number, copies: vec![op], work: Vec::new() });
                }
            }
            has_computed = false;
        } else if let Some(group) = open {
            has_computed |= graph.work[op].kind.is_kernel();
            group.work.push(op);
        }
    }
    groups
}

/// A new stream of the device that this work runs on.
fn new_stream(graph: &mut Model, like: WorkId) -> usize {
    graph.streams.push(Vec::new());
    graph.stream_device.push(graph.stream_device[graph.work[like].stream]);
    graph.streams.len() - 1
}

/// Puts work on other streams, at their ends and in this order.
fn move_all(graph: &mut Model, moves: &[(WorkId, usize)]) {
    let moved: HashSet<WorkId> = moves.iter().map(|(op, _)| *op).collect();
    for stream in &mut graph.streams {
        stream.retain(|op| !moved.contains(op));
    }
    for &(op, stream) in moves {
        let work = &mut graph.work[op];
        work.stream = stream;
        work.after_work = work.after_work.min(EVENT_PASSES);
        work.after_call = work.after_call.min(2 * EVENT_PASSES);
        graph.streams[stream].push(op);
    }
}

/// A copy that no longer holds the host, unless it is staged by it.
fn let_go(graph: &mut Model, op: WorkId) {
    if let (Some(item), WorkKind::Copy { pageable: false, .. }) = (graph.work[op].call, graph.work[op].kind)
        && graph.calls[item].action == HostAction::IssueBlocking(op)
    {
        graph.calls[item].action = HostAction::Issue(vec![op]);
        graph.calls[item].cost = graph.copy_call;
    }
}

/// The first work of each stream waits for a copy by an event.
fn consume(graph: &mut Model, copies: &[WorkId], work: &[WorkId]) {
    let mut seen: Vec<usize> = Vec::new();
    for &op in work {
        let stream = graph.work[op].stream;
        if seen.contains(&stream) || graph.work[op].kind.bus().is_some() {
            continue;
        }
        seen.push(stream);
        graph.work[op].waits.extend(copies.iter().map(|copy| (*copy, EVENT_PASSES)));
    }
}

fn prefetch(graph: &mut Model, depth: usize) -> Made {
    let own = own_waits(graph);
    // Copies on a stream of their own that nothing waits for on the host are ahead already.
    let kernels: Vec<bool> = (0..graph.streams.len()).map(|stream| graph.has_kernels(stream)).collect();
    let wanted: Vec<bool> = (0..graph.work.len())
        .map(|op| is_fetched(graph, op) && (kernels[graph.work[op].stream] || own.contains_key(&op)))
        .collect();
    let mut made = Made::default();
    // Calls to be put before others.
    let mut moved: HashMap<CallId, Vec<CallId>> = HashMap::new();
    for all in groups(graph, |op| wanted[op]) {
        let of_device = prefetch_on(graph, depth, &all, &own, &mut moved);
        made.changed += of_device.changed;
        made.extra_bytes += of_device.extra_bytes;
    }
    for thread in &mut graph.threads {
        let order = std::mem::take(thread);
        for item in order {
            thread.extend(moved.remove(&item).unwrap_or_default());
            thread.push(item);
        }
    }
    made
}

fn prefetch_on(
    graph: &mut Model,
    depth: usize,
    all: &[Group],
    own: &HashMap<WorkId, CallId>,
    moved: &mut HashMap<CallId, Vec<CallId>>,
) -> Made {
    let Some(first) = all.first().and_then(|group| group.copies.first().copied()) else {
        return Made::default();
    };
    let stream = new_stream(graph, first);
    let mut made = Made::default();
    let mut moves = Vec::new();
    // Where each group's copies were called for, before any of them moves.
    let places: Vec<Option<CallId>> =
        all.iter().map(|group| group.copies.first().and_then(|op| graph.work[*op].call)).collect();
    let mut largest = 0;
    for (i, group) in all.iter().enumerate() {
        let Some(place) = places[i - group.number.min(depth)] else { continue };
        for &op in &group.copies {
            let_go(graph, op);
            let Some(item) = graph.work[op].call else { continue };
            // The call goes ahead; what the host did before it stays where it was.
            let call = HostCall { gap: 0, after: None, ..graph.calls[item].clone() };
            let id = graph.calls.len();
            graph.calls.push(call);
            no_longer(graph, item);
            graph.work[op].call = Some(id);
            moved.entry(place).or_default().push(id);
            if let Some(wait) = own.get(&op) {
                no_longer(graph, *wait);
            }
            moves.push((op, stream));
            made.changed += 1;
        }
        // A place on the device is free when the group that had it is done.
        if group.number > depth
            && let Some(&last) =
                all[i - depth - 1].work.iter().rev().find(|op| graph.work[**op].kind.is_kernel())
            && let Some(&copy) = group.copies.first()
        {
            graph.work[copy].waits.push((last, EVENT_PASSES));
        }
        consume(graph, &group.copies, &group.work);
        let bytes = |op: &WorkId| match graph.work[*op].kind {
            WorkKind::Copy { bytes, .. } => bytes,
            _ => 0,
        };
        largest = largest.max(group.copies.iter().map(bytes).sum());
    }
    move_all(graph, &moves);
    made.extra_bytes = largest * depth as u64;
    made
}

/// The call is not made any more; the host work before it stays.
fn no_longer(graph: &mut Model, item: CallId) {
    graph.calls[item].action = HostAction::Nothing;
    graph.calls[item].cost = 0;
}

fn asynchronous(graph: &mut Model, assumed: Assumed) -> Made {
    let own = own_waits(graph);
    let order = in_order(graph);
    let device_of: Vec<i32> = graph.work.iter().map(|op| graph.stream_device[op.stream]).collect();
    let mut before: HashMap<WorkId, WorkId> = HashMap::new();
    for stream in &graph.streams {
        before.extend(stream.windows(2).map(|pair| (pair[1], pair[0])));
    }
    let mut made = Made::default();
    let mut moves = Vec::new();
    let mut streams: HashMap<(i32, Direction), usize> = HashMap::new();
    let mut fetched: HashMap<usize, u64> = HashMap::new();
    for (i, &op) in order.iter().enumerate() {
        let WorkKind::Copy { direction, pageable, bytes } = graph.work[op].kind else { continue };
        // A copy to pageable memory blocks whatever is asked, and a value that comes to the host is waited
        // for with reason.
        let to_host = direction == Direction::DeviceToHost;
        let must_block = to_host && (pageable || bytes < WORTH_MOVING);
        let held =
            graph.work[op].call.is_some_and(|item| graph.calls[item].action == HostAction::IssueBlocking(op));
        if graph.work[op].kind.bus().is_none()
            || !is_alone(graph, op)
            || must_block
            || !(held || own.contains_key(&op))
        {
            continue;
        }
        let (device, step) = (device_of[op], graph.work[op].step);
        let stream = match streams.get(&(device, direction)) {
            Some(stream) => *stream,
            None => {
                let stream = new_stream(graph, op);
                streams.insert((device, direction), stream);
                stream
            }
        };
        moves.push((op, stream));
        let_go(graph, op);
        if let Some(wait) = own.get(&op) {
            no_longer(graph, *wait);
        }
        if !assumed.independent && to_host {
            graph.work[op].waits.extend(before.get(&op).map(|before| (*before, EVENT_PASSES)));
        } else if !assumed.independent {
            // The work that follows, up to the next that comes in, uses what has come.
            let rest = order[i + 1..].iter().copied().filter(|next| device_of[*next] == device);
            let work: Vec<WorkId> = rest
                .take_while(|next| graph.work[*next].step == step)
                .take_while(|next| graph.work[*next].kind.bus() != Some(Direction::HostToDevice))
                .collect();
            consume(graph, &[op], &work);
        }
        *fetched.entry(step).or_default() += bytes;
        made.changed += 1;
    }
    move_all(graph, &moves);
    // Nothing holds the host any more: all that a step fetches may be on its way at once.
    made.extra_bytes = fetched.values().copied().max().unwrap_or(0);
    made
}

fn coalesce(graph: &mut Model, link: &LinkFacts, assumed: Assumed) -> Made {
    let mut made = Made::default();
    let mut run: Vec<WorkId> = Vec::new();
    let mut runs: Vec<Vec<WorkId>> = Vec::new();
    let own = own_waits(graph);
    for op in in_order(graph) {
        let work = &graph.work[op];
        let small = is_alone(graph, op)
            && matches!(
                work.kind,
                WorkKind::Copy { direction: Direction::HostToDevice, bytes: 1..=SMALL, .. }
            );
        let goes_on = run.first().is_some_and(|first| {
            let first = &graph.work[*first];
            let same = |a: WorkKind, b: WorkKind| matches!((a, b), (WorkKind::Copy { pageable: a, .. }, WorkKind::Copy { pageable: b, .. }) if a == b);
            first.stream == work.stream && first.step == work.step && same(first.kind, work.kind)
        });
        if small && goes_on {
            run.push(op);
        } else {
            runs.push(std::mem::take(&mut run));
            if small {
                run.push(op);
            }
        }
    }
    runs.push(run);
    for run in runs.into_iter().filter(|run| run.len() > 1) {
        let mut total = 0;
        for (i, &op) in run.iter().enumerate() {
            let WorkKind::Copy { bytes, .. } = graph.work[op].kind else { continue };
            total += bytes;
            if i > 0 {
                drop_copy(graph, op, own.get(&op).copied());
                // Most of what prepared the copy goes with it.
                if let Some(item) = graph.work[op].call {
                    let gap = graph.calls[item].gap as f64;
                    graph.calls[item].gap = (gap * assumed.packing) as Time;
                }
            }
            made.changed += 1;
        }
        if let WorkKind::Copy { direction, pageable, .. } = graph.work[run[0]].kind {
            graph.work[run[0]].kind = WorkKind::Copy { direction, pageable, bytes: total };
            graph.work[run[0]].alone = copy_ns(total, direction, pageable, link) * assumed.copies;
        }
    }
    made
}

/// The copy is not made any more, nor waited for.
fn drop_copy(graph: &mut Model, op: WorkId, own_wait: Option<CallId>) {
    graph.work[op].dropped = true;
    for item in graph.work[op].call.into_iter().chain(own_wait) {
        no_longer(graph, item);
    }
}

fn no_sync(graph: &mut Model) -> Made {
    let mut made = Made::default();
    // The last wait of a step is what ends it: the program may need it to hand out its result.
    let mut last: HashMap<usize, Time> = HashMap::new();
    for item in graph.calls.iter().filter(|item| matches!(item.action, HostAction::Wait { .. })) {
        let at = last.entry(item.step).or_insert(item.start);
        *at = (*at).max(item.start);
    }
    for id in 0..graph.calls.len() {
        let item = &graph.calls[id];
        let HostAction::Wait { copy, .. } = item.action else { continue };
        // A value that comes to the host is waited for with reason.
        let needed = copy.is_some_and(|copy| graph.work[copy].kind.bus() == Some(Direction::DeviceToHost));
        if needed || last.get(&item.step) == Some(&item.start) {
            continue;
        }
        no_longer(graph, id);
        made.changed += 1;
    }
    made
}

fn other_link(graph: &mut Model, old: &LinkFacts, new: &LinkFacts, assumed: Assumed) -> Made {
    let mut made = Made::default();
    for work in graph.work.iter_mut().filter(|op| op.kind.bus().is_some() && !op.dropped) {
        let WorkKind::Copy { direction, pageable, bytes } = work.kind else { continue };
        let (before, after) =
            (copy_ns(bytes, direction, pageable, old), copy_ns(bytes, direction, pageable, new));
        if before > 0.0 {
            work.alone *= after / before * assumed.copies;
            made.changed += 1;
        }
    }
    made
}

fn resident(graph: &mut Model, share: f64) -> Made {
    let own = own_waits(graph);
    let all: Vec<Group> = groups(graph, |op| is_fetched(graph, op)).into_iter().flatten().collect();
    let mut made = Made::default();
    let mut kept_of_step: HashMap<usize, u64> = HashMap::new();
    for group in &all {
        let number = group.number as f64;
        // Evenly among the groups of a step.
        if ((number + 1.0) * share + 1e-9).floor() <= (number * share + 1e-9).floor() {
            continue;
        }
        for &op in &group.copies {
            if let WorkKind::Copy { bytes, .. } = graph.work[op].kind {
                *kept_of_step.entry(group.step).or_default() += bytes;
            }
            drop_copy(graph, op, own.get(&op).copied());
            made.changed += 1;
        }
    }
    made.extra_bytes = kept_of_step.values().copied().max().unwrap_or(0);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_written() {
        for text in ["pin", "prefetch=2", "async", "coalesce", "nosync", "link=pcie4x16", "resident=50%"] {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        assert_eq!("prefetch".parse::<Change>().unwrap(), Change::Prefetch(1));
        assert_eq!("resident=25".parse::<Change>().unwrap(), Change::Resident(0.25));
        for wrong in ["", "pinned", "prefetch=0", "prefetch=x", "link=h999", "resident=120%", "pin=2", "link"]
        {
            let error = wrong.parse::<Change>().unwrap_err().to_string();
            assert!(error.contains("there are pin, prefetch=N"), "{error}");
        }
    }
}
