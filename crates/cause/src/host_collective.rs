//! When does a collective run that a library carries out on the host (gloo), who issued it, and who waited for it?
//!
//! A thread of the library carries it out. PyTorch records that as an annotation: within it the thread first waits for the copy
//! from the GPU, then meets the other ranks without recording anything, then copies back. The thread that issued it is inside an
//! operator `c10d::…` meanwhile, and no event says when it waits.

use std::collections::{BTreeMap, BTreeSet};

use busbound_trace::{Event, EventId, EventKind, Interval, IntervalSet, Place, Trace, TrackId};

use crate::Time;
use crate::collective::CollectiveOp;

/// One collective on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCollective {
    /// The annotation on the thread that carries it out.
    pub event: EventId,
    /// The thread that carries it out.
    pub on: TrackId,
    /// When that thread takes it on.
    pub taken: Time,
    /// The exchange with the other ranks: the longest time within the annotation in which nothing is recorded.
    pub exchange: (Time, Time),
    /// When the annotation ends.
    pub ended: Time,
    /// What issued it; `None` if that is not in the trace.
    pub issue: Option<HostIssue>,
}

/// The call of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostIssue {
    pub thread: TrackId,
    pub at: Time,
    /// Since when the thread waited for the end; `None` if it did something else at that time.
    pub waited: Option<Time>,
}

/// A thread that works while a collective runs waits for it only if it is silent for this long until the end, ...
const SILENT: Time = 50_000;
/// ... and goes on this soon after, or after a tenth of a long silence, ...
const WAKES: Time = 200_000;
const LONG: Time = 10;
/// ... or this long before: the library says that the data is there before its annotation ends.
const EARLY: Time = 1_000_000;

/// An operator that issues collectives.
#[derive(Debug, Clone, Copy)]
struct Operator {
    thread: TrackId,
    start: Time,
    end: Time,
}

impl HostCollective {
    /// The collectives of these annotations, which are in time order.
    pub fn all(trace: &Trace, annotations: &[EventId]) -> Vec<Self> {
        let events: Vec<Event<'_>> = annotations.iter().map(|id| trace.event(*id)).collect();
        let issued = Operator::by_event(trace, &events);
        let threads: BTreeSet<TrackId> = issued.values().map(|operator| operator.thread).collect();
        let marks: BTreeMap<TrackId, Vec<Time>> =
            threads.into_iter().map(|thread| (thread, marks(trace, thread))).collect();
        let one = |event: &Event<'_>| {
            let mut collective = Self::of(trace, event);
            if let Some(operator) = issued.get(&event.id()) {
                let silence = silence(&marks[&operator.thread], *operator, collective.ended);
                let (thread, at) = (operator.thread, operator.start);
                collective.issue = Some(HostIssue { thread, at, waited: silence.map(|(since, _)| since) });
                if let Some((_, until)) = silence {
                    collective.end_by(until);
                }
            }
            collective
        };
        events.iter().map(one).collect()
    }

    fn of(trace: &Trace, event: &Event<'_>) -> Self {
        let exchange = exchange(trace, event);
        Self {
            event: event.id(),
            on: event.track_id(),
            taken: event.start().as_nanos(),
            exchange: (exchange.start.as_nanos(), exchange.end.as_nanos()),
            ended: event.end().as_nanos(),
            issue: None,
        }
    }

    /// Who waits goes on when the data is there; the annotation may end a little later.
    fn end_by(&mut self, until: Time) {
        self.ended = self.ended.min(until.max(self.exchange.0 + 1));
        self.exchange.1 = self.exchange.1.min(self.ended);
    }
}

impl Operator {
    /// The operator that issued each collective. A library takes them on in the order in which they were issued; if the trace has
    /// more or fewer operators than collectives of a kind, the last one before counts.
    fn by_event(trace: &Trace, events: &[Event<'_>]) -> BTreeMap<EventId, Self> {
        let mut operators: BTreeMap<CollectiveOp, Vec<Self>> = BTreeMap::new();
        let is_issue = |event: &Event<'_>| {
            event.kind() == EventKind::Operator
                && event.name().starts_with("c10d::")
                && matches!(event.place(), Place::Thread { .. })
        };
        for event in trace.events().filter(is_issue) {
            let (start, end) = (event.start().as_nanos(), event.end().as_nanos());
            let list = operators.entry(CollectiveOp::named(event.name())).or_default();
            list.push(Self { thread: event.track_id(), start, end });
        }
        operators.values_mut().for_each(|list| list.sort_by_key(|one| one.start));
        let mut found = BTreeMap::new();
        for (op, list) in operators {
            let of_kind: Vec<&Event<'_>> =
                events.iter().filter(|event| CollectiveOp::named(event.name()) == op).collect();
            let in_order = of_kind.len() == list.len();
            for (at, event) in of_kind.iter().enumerate() {
                let taken = event.start().as_nanos();
                let last = list.partition_point(|one| one.start <= taken).checked_sub(1);
                let place = if in_order && list[at].start <= taken { Some(at) } else { last };
                found.extend(place.map(|place| (event.id(), list[place])));
            }
        }
        found
    }
}

/// When the events of a thread begin and end.
fn marks(trace: &Trace, thread: TrackId) -> Vec<Time> {
    let ends = |event: Event<'_>| [event.start().as_nanos(), event.end().as_nanos()];
    let mut marks: Vec<Time> = trace.track(thread).events().flat_map(ends).collect();
    marks.sort_unstable();
    marks
}

/// From when to when a thread waited for the end of a collective that it issued: the longest time around the end in which nothing is
/// recorded on it. If that is so from the end of the operator on, it waited all the time; else only if it was silent just then.
fn silence(marks: &[Time], operator: Operator, ended: Time) -> Option<(Time, Time)> {
    if operator.end >= ended {
        // The operator itself waits.
        return Some((operator.start, ended));
    }
    let next = marks.partition_point(|mark| *mark < ended - EARLY).max(1);
    let pairs = marks[next - 1..].windows(2).map(|pair| (pair[0], pair[1]));
    let around = pairs.take_while(|(since, _)| *since < ended);
    let (since, until) = around.max_by_key(|(since, until)| until - since)?;
    let is_waiting = since <= operator.end
        || (until - ended <= WAKES.max((until - since) / LONG) && until - since >= SILENT);
    (is_waiting && until > operator.end).then_some((since.max(operator.end), until))
}

/// The longest time within an annotation in which its thread records nothing.
fn exchange(trace: &Trace, annotation: &Event<'_>) -> Interval {
    let whole = annotation.interval();
    let inner = trace.track(annotation.track_id()).events_between(whole.start, whole.end);
    let inner = inner.filter(|event| event.id() != annotation.id() && event.start() >= whole.start);
    let recorded = IntervalSet::from_unsorted(inner.map(|event| event.interval()));
    let silent = IntervalSet::from_unsorted([whole]).difference(&recorded);
    silent.iter().max_by_key(|silent| silent.length()).unwrap_or(whole)
}
