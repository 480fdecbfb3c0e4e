//! The trace: everything that was read, and how to iterate over it.
//!
//! Long because a trace, its tracks and its events are views of the same columns.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::interval::Interval;
use crate::model::access::{Access, Accesses};
use crate::model::collective::Collective;
use crate::model::copy_operator::CopyOperator;
use crate::model::events::{EventId, Events};
use crate::model::files::FileReads;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::link::{Link, LinkTraffic};
use crate::model::managed::{Faults, Migration};
use crate::model::memory::MemorySample;
use crate::model::names::{NameId, Names};
use crate::model::numa::{HostNode, HostNodes};
use crate::model::origin::Origin;
use crate::model::os_call::OsCall;
use crate::model::size::Bytes;
use crate::model::stats::ImportStats;
use crate::model::sync::Synchronization;
use crate::model::time::{Nanos, Timestamp};
use crate::model::track::{Label, Place, TrackId, Tracks};
use crate::model::transfer::Transfer;

/// One profiler trace: columns of events, interned names, and what was lost while reading.
///
/// A trace may show only some of the events that were read: see [`part`](Self::part).
#[derive(Debug, Default)]
pub struct Trace {
    recorded: Arc<Recorded>,
    /// The visible events, in file order; `None` for all.
    kept: Option<Vec<EventId>>,
    order: OnceLock<TimeOrder>,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) events: Events,
    pub(crate) names: Names,
    pub(crate) tracks: Tracks,
    pub(crate) links: Vec<Link>,
    pub(crate) memory: Vec<MemorySample>,
    pub(crate) link_traffic: Vec<LinkTraffic>,
    pub(crate) file_reads: Vec<FileReads>,
    pub(crate) os_calls: Vec<OsCall>,
    pub(crate) host_nodes: HostNodes,
    pub(crate) accesses: Accesses,
    /// Names given to processes (thread `None`) and threads by metadata events.
    pub(crate) given_names: BTreeMap<(Label, Option<Label>), NameId>,
    pub(crate) origin: Origin,
    pub(crate) stats: ImportStats,
}

impl Recorded {
    /// Memory used, for the reader's limit and for reports.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.events.heap_bytes()
            + self.names.heap_bytes()
            + self.tracks.heap_bytes()
            + self.links.capacity() * size_of::<Link>()
            + self.memory.capacity() * size_of::<MemorySample>()
            + self.link_traffic.capacity() * size_of::<LinkTraffic>()
            + self.file_reads.capacity() * size_of::<FileReads>()
            + self.os_calls.capacity() * size_of::<OsCall>()
            + self.host_nodes.heap_bytes()
            + self.accesses.heap_bytes()
            + self.given_names.len() * 64
    }
}

impl From<Recorded> for Trace {
    fn from(recorded: Recorded) -> Self {
        Self::of_some(recorded, None)
    }
}

/// Tracks with more events than this are sorted on their own thread.
const LARGE_TRACK: usize = 100_000;

/// Event ids grouped by track, in time order within each.
#[derive(Debug, Default)]
pub(crate) struct TimeOrder {
    ids: Vec<EventId>,
    /// Where each track's events begin in `ids`; one more entry than tracks.
    begins: Vec<usize>,
    /// Of each position in `ids`: see [`TimeOrder::parents`].
    parents: OnceLock<Vec<u16>>,
}

/// Events that are further back than this are not searched for what runs at a moment.
const FARTHEST: usize = 2_000;

impl Trace {
    /// Shows only these events, which are in file order.
    pub(crate) fn of_some(recorded: Recorded, kept: Option<Vec<EventId>>) -> Self {
        Self { recorded: Arc::new(recorded), kept, order: OnceLock::new() }
    }

    /// Number of events kept.
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.numbers(), Vec::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every event, in file order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event<'_>> {
        self.events_in(0..self.len())
    }

    /// Some of them, by their positions in that order.
    pub fn events_in(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = Event<'_>> {
        let place = |place: usize| place.min(self.len());
        (place(places.start)..place(places.end)).map(|place| {
            let id = self.kept.as_ref().map_or_else(|| EventId::of_row(place), |kept| kept[place]);
            Event { trace: self, id }
        })
    }

    pub fn event(&self, id: EventId) -> Event<'_> {
        Event { trace: self, id }
    }

    pub fn names(&self) -> &Names {
        &self.recorded.names
    }

    pub fn origin(&self) -> &Origin {
        &self.recorded.origin
    }

    pub fn stats(&self) -> &ImportStats {
        &self.recorded.stats
    }

    /// Forward operators and their backward operators.
    pub fn links(&self) -> &[Link] {
        &self.recorded.links
    }

    /// Allocator samples, in file order.
    pub fn memory(&self) -> &[MemorySample] {
        &self.recorded.memory
    }

    /// Readings of the byte counters of the GPUs' links, in file order.
    pub fn link_traffic(&self) -> &[LinkTraffic] {
        &self.recorded.link_traffic
    }

    /// What the process had read from files until some moments, in file order.
    pub fn file_reads(&self) -> &[FileReads] {
        &self.recorded.file_reads
    }

    /// Calls of system libraries by threads that have other events, in file order; short ones and nested ones are left out.
    pub fn os_calls(&self) -> &[OsCall] {
        &self.recorded.os_calls
    }

    /// Whether the memory of copies and memsets is recorded.
    pub fn has_accesses(&self) -> bool {
        !self.recorded.accesses.is_empty()
    }

    /// Whether some operator has [`operand_bytes`](Event::operand_bytes).
    pub fn has_operand_bytes(&self) -> bool {
        self.recorded.events.has_operand_bytes()
    }

    /// The numbers of streams that waited for something else than an event: a value in memory, a semaphore, the host.
    pub fn other_waits(&self) -> &[i64] {
        &self.recorded.accesses.other_waits
    }

    /// The name that a metadata event gave to a process or one of its threads.
    pub fn given_name(&self, process: Label, thread: Option<Label>) -> Option<&str> {
        self.recorded.given_names.get(&(process, thread)).map(|&id| self.recorded.names.get(id))
    }

    pub fn track(&self, id: TrackId) -> Track<'_> {
        Track { trace: self, id, place: self.recorded.tracks.get(id) }
    }

    /// Every place with events, ordered by place.
    pub fn tracks(&self) -> Vec<Track<'_>> {
        let mut tracks: Vec<_> =
            self.recorded.tracks.iter().map(|(id, place)| Track { trace: self, id, place }).collect();
        tracks.sort_by_key(|track| track.place);
        tracks
    }

    /// The (device, stream) pairs that have events, in order.
    pub fn streams(&self) -> impl Iterator<Item = Track<'_>> {
        self.tracks().into_iter().filter(|track| matches!(track.place, Place::Stream { .. }))
    }

    /// The threads that have events, in order.
    pub fn threads(&self) -> impl Iterator<Item = Track<'_>> {
        self.tracks().into_iter().filter(|track| matches!(track.place, Place::Thread { .. }))
    }

    /// A view of the same run with only the events that satisfy `keep`, e.g. without the warm-up.
    ///
    /// Nothing is copied: event ids, names, tracks and import statistics stay the same.
    pub fn part(&self, keep: impl Fn(&Event<'_>) -> bool) -> Self {
        let kept: Vec<EventId> = self.events().filter(|event| keep(event)).map(|event| event.id()).collect();
        let order = self.order.get().map(|order| order.only(&kept, self.numbers()));
        let order = order.map_or_else(OnceLock::new, OnceLock::from);
        Self { recorded: Arc::clone(&self.recorded), kept: Some(kept), order }
    }

    /// Everything that was recorded, also of a [`part`](Self::part).
    pub fn whole(&self) -> Self {
        Self { recorded: Arc::clone(&self.recorded), kept: None, order: OnceLock::new() }
    }

    /// One more than the largest event id in this trace.
    pub fn numbers(&self) -> usize {
        self.recorded.events.len()
    }

    /// Memory the trace holds, for reports.
    pub fn heap_bytes(&self) -> usize {
        self.recorded.heap_bytes()
    }

    fn order(&self) -> &TimeOrder {
        let (events, tracks) = (&self.recorded.events, self.recorded.tracks.len());
        self.order.get_or_init(|| TimeOrder::of(events, self.kept.as_deref(), tracks))
    }
}

impl TimeOrder {
    /// The order of some of the events, whose ids are below `numbers`.
    fn only(&self, kept: &[EventId], numbers: usize) -> Self {
        let mut is_kept = vec![false; numbers];
        kept.iter().for_each(|id| is_kept[id.index()] = true);
        let mut ids = Vec::with_capacity(kept.len());
        let mut begins = vec![0];
        for track in self.begins.windows(2) {
            ids.extend(self.ids[track[0]..track[1]].iter().filter(|id| is_kept[id.index()]));
            begins.push(ids.len());
        }
        Self { ids, begins, parents: OnceLock::new() }
    }

    fn of(events: &Events, kept: Option<&[EventId]>, tracks: usize) -> Self {
        match kept {
            Some(kept) => Self::of_ids(events, tracks, kept.iter().copied()),
            None => Self::of_ids(events, tracks, (0..events.len()).map(EventId::of_row)),
        }
    }

    fn of_ids(events: &Events, tracks: usize, kept: impl ExactSizeIterator<Item = EventId> + Clone) -> Self {
        let mut begins = vec![0usize; tracks + 1];
        for id in kept.clone() {
            begins[events.track(id.index()).index() + 1] += 1;
        }
        for i in 1..begins.len() {
            begins[i] += begins[i - 1];
        }
        let mut next = begins.clone();
        let mut ids = vec![EventId::of_row(0); kept.len()];
        for id in kept {
            let at = &mut next[events.track(id.index()).index()];
            ids[*at] = id;
            *at += 1;
        }
        // Parents before their children: if two begin at the same time, the longer one comes first.
        let in_order = |slice: &mut [EventId]| {
            slice.sort_by(|a, b| {
                let (a, b) = (a.index(), b.index());
                let longer_first = || events.duration.get(b).cmp(&events.duration.get(a));
                events.start[a].cmp(&events.start[b]).then_with(longer_first)
            });
        };
        // Tracks are independent; most events are on a few of them.
        std::thread::scope(|scope| {
            let mut rest = ids.as_mut_slice();
            for track in 0..tracks {
                let (slice, others) = rest.split_at_mut(begins[track + 1] - begins[track]);
                rest = others;
                if slice.len() > LARGE_TRACK {
                    scope.spawn(move || in_order(slice));
                } else {
                    in_order(slice);
                }
            }
        });
        Self { ids, begins, parents: OnceLock::new() }
    }

    /// Of each position, how far back the last one before it on its track is that runs longer than to this one's start; 0 if
    /// there is none, or only one that is too far. So the events that run at a moment are among the parents of the last one
    /// before it.
    fn parents(&self, events: &Events) -> &[u16] {
        self.parents.get_or_init(|| {
            let mut parents = Vec::with_capacity(self.ids.len());
            for track in self.begins.windows(2) {
                let mut open: Vec<(Timestamp, usize)> = Vec::new();
                for (position, id) in self.ids[track[0]..track[1]].iter().enumerate() {
                    let start = events.start[id.index()];
                    while open.last().is_some_and(|(end, _)| *end <= start) {
                        open.pop();
                    }
                    let back = open.last().map_or(0, |(_, parent)| position - parent);
                    parents.push(if back <= FARTHEST { back as u16 } else { 0 });
                    open.push((start + events.duration.get(id.index()), position));
                }
            }
            parents
        })
    }
}

/// The events of one thread or one (device, stream), in time order.
#[derive(Debug, Clone, Copy)]
pub struct Track<'a> {
    trace: &'a Trace,
    id: TrackId,
    place: Place,
}

impl<'a> Track<'a> {
    pub fn id(&self) -> TrackId {
        self.id
    }

    pub fn place(&self) -> Place {
        self.place
    }

    fn ids(&self) -> &'a [EventId] {
        let order = self.trace.order();
        &order.ids[order.begins[self.id.index()]..order.begins[self.id.index() + 1]]
    }

    pub fn len(&self) -> usize {
        self.ids().len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids().is_empty()
    }

    /// How many events start before `at`: an index into [`events`](Self::events).
    pub fn position(&self, at: Timestamp) -> usize {
        self.ids().partition_point(|id| self.trace.recorded.events.start[id.index()] < at)
    }

    /// The events from a [`position`](Self::position) on, in time order.
    pub fn events_from(&self, position: usize) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let trace = self.trace;
        self.ids().get(position..).unwrap_or_default().iter().map(move |&id| Event { trace, id })
    }

    /// The event at a [`position`](Self::position).
    ///
    /// # Panics
    /// If there is none.
    pub fn event_at(&self, position: usize) -> Event<'a> {
        Event { trace: self.trace, id: self.ids()[position] }
    }

    /// The events that start before `at`, latest first.
    pub fn events_before(&self, at: Timestamp) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let trace = self.trace;
        self.ids()[..self.position(at)].iter().rev().map(move |&id| Event { trace, id })
    }

    /// The events that start in `from..until`, in time order.
    pub fn events_between(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = Event<'a>> + use<'a> {
        self.events_from(self.position(from)).take_while(move |event| event.start() < until)
    }

    /// The innermost event that covers `at` and satisfies `wanted`.
    pub fn enclosing(&self, at: Timestamp, wanted: impl Fn(&Event<'a>) -> bool) -> Option<Event<'a>> {
        let before = self.ids().partition_point(|id| self.trace.recorded.events.start[id.index()] <= at);
        self.running(before, at).find(wanted)
    }

    /// The events before a [`position`](Self::position) that run longer than until `at`, innermost first. Not those that
    /// are more than 2,000 events back.
    pub fn running(&self, before: usize, at: Timestamp) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let (trace, order) = (self.trace, self.trace.order());
        let parents = order.parents(&trace.recorded.events);
        let first = order.begins[self.id.index()];
        let parent = |position: &usize| {
            let back = usize::from(parents[*position]);
            (back > 0).then(|| position - back)
        };
        let last = before.checked_sub(1).map(|last| first + last);
        std::iter::successors(last, parent)
            .take_while(move |position| first + before - position <= FARTHEST)
            .map(|position| Event { trace, id: order.ids[position] })
            .filter(move |event| event.end() > at)
    }

    /// Ordered by start. If two events start at the same time, the longer one comes first, so that parents precede
    /// their children. The order is computed once per trace.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event<'a>> + DoubleEndedIterator + use<'a> {
        let trace = self.trace;
        self.ids().iter().map(move |&id| Event { trace, id })
    }
}

/// One event of a trace.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    trace: &'a Trace,
    id: EventId,
}

impl<'a> Event<'a> {
    #[inline]
    fn row(&self) -> usize {
        self.id.index()
    }

    #[inline]
    pub fn id(&self) -> EventId {
        self.id
    }

    #[inline]
    pub fn kind(&self) -> EventKind {
        self.trace.recorded.events.kind[self.row()]
    }

    #[inline]
    pub fn name_id(&self) -> NameId {
        self.trace.recorded.events.name(self.row())
    }

    pub fn name(&self) -> &'a str {
        self.trace.recorded.names.get(self.name_id())
    }

    #[inline]
    pub fn track_id(&self) -> TrackId {
        self.trace.recorded.events.track(self.row())
    }

    pub fn place(&self) -> Place {
        self.trace.recorded.tracks.get(self.track_id())
    }

    #[inline]
    pub fn start(&self) -> Timestamp {
        self.trace.recorded.events.start[self.row()]
    }

    #[inline]
    pub fn duration(&self) -> Nanos {
        self.trace.recorded.events.duration.get(self.row())
    }

    #[inline]
    pub fn end(&self) -> Timestamp {
        self.start() + self.duration()
    }

    #[inline]
    pub fn interval(&self) -> Interval {
        Interval::new(self.start(), self.end())
    }

    /// Joins a runtime call and the GPU work it launched, within one process.
    #[inline]
    pub fn correlation(&self) -> Option<u64> {
        self.trace.recorded.events.correlation.get(self.row())
    }

    /// Joins GPU work and runtime calls to the operator they ran under.
    pub fn external_id(&self) -> Option<u64> {
        self.trace.recorded.events.external(self.id)
    }

    /// Bytes and memory kinds of a copy or memset.
    pub fn transfer(&self) -> Option<&'a Transfer> {
        self.trace.recorded.events.transfer(self.id)
    }

    /// The NUMA node of the host memory of a copy, if recorded.
    pub fn host_node(&self) -> Option<HostNode> {
        self.trace.recorded.host_nodes.get(self.correlation()?)
    }

    /// The memory that a copy or memset touched, if recorded.
    pub fn access(&self) -> Option<Access> {
        self.trace.recorded.accesses.get(self.correlation()?)
    }

    pub fn launch(&self) -> Option<&'a Launch> {
        self.trace.recorded.events.launch(self.id)
    }

    pub fn synchronization(&self) -> Option<&'a Synchronization> {
        self.trace.recorded.events.sync(self.id)
    }

    pub fn copy_operator(&self) -> Option<&'a CopyOperator> {
        self.trace.recorded.events.copy_operator(self.id)
    }

    pub fn collective(&self) -> Option<&'a Collective> {
        self.trace.recorded.events.collective(self.id)
    }

    /// Why a copy of managed memory happened, if no call requested it explicitly.
    pub fn migration(&self) -> Option<&'a Migration> {
        self.trace.recorded.events.migration(self.id)
    }

    /// What an operator must read at least, if its shapes were recorded and it does little with each byte (products of few rows,
    /// element-wise operators); from 1 MiB on.
    pub fn operand_bytes(&self) -> Option<Bytes> {
        self.trace.recorded.events.operand_bytes(self.id)
    }

    pub fn faults(&self) -> Option<&'a Faults> {
        self.trace.recorded.events.faults(self.id)
    }
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind())
            .field("name", &self.name())
            .field("place", &self.place())
            .field("start", &self.start().as_nanos())
            .field("duration", &self.duration().get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::builder::TraceBuilder;

    proptest! {
        #[test]
        fn running_events_are_those_that_a_search_of_all_finds(
            events in prop::collection::vec((0..60i64, 0..30i64), 0..40),
            at in 0..90i64,
        ) {
            let mut trace = TraceBuilder::default();
            let thread = trace.thread(1, 1);
            for (start, length) in events {
                trace.operator(thread, "op", start..start + length);
            }
            let trace = trace.finish();
            let (track, at) = (trace.track(thread), Timestamp::from_nanos(at));
            let found = track.running(track.position(at), at).map(|event| event.id());
            let all = track.events_before(at).filter(|event| event.end() > at).map(|event| event.id());
            prop_assert!(found.eq(all));
        }
    }
}
