//! In which order did the host issue work, events and waits, and what does each stream's next work come after?

use std::collections::BTreeMap;

use busbound_trace::{Call, Event, EventId, EventKind, Place, StreamKind, SyncKind, Trace};

use super::clock::Clock;
use crate::Time;
use crate::graph_launches::launches_graph;
use crate::host::Host;

/// What the host did that matters for the order of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Issue(EventId),
    /// Recorded an event; by the correlation of the call.
    Mark {
        stream: i64,
        record: u64,
    },
    /// Made a stream wait for an event.
    Wait {
        stream: i64,
        record: Option<u64>,
    },
    /// Began to wait; the number is that of its end.
    Ask {
        number: usize,
        what: Awaited,
    },
    /// Stopped waiting.
    Done(usize),
    /// Everything that follows may come after everything before.
    Barrier,
}

/// What the host waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    Event(Option<u64>),
    Stream(i64),
    Everything,
}

/// What the host did, in order.
pub(super) struct Steps {
    pub(super) all: Vec<(Time, Step)>,
    /// Streams with work of which it is not known when it was issued.
    pub(super) unissued: Vec<i64>,
}

impl Steps {
    pub(super) fn of(trace: &Trace, host: &Host<'_>) -> Self {
        let mut steps = Self { all: Vec::new(), unissued: Vec::new() };
        let mut waits = 0;
        for event in trace.events() {
            match event.kind() {
                kind if kind.is_gpu_work() => steps.add_work(&event, host),
                EventKind::Synchronization => steps.add_wait(&event, host, &mut waits),
                EventKind::RuntimeCall | EventKind::DriverCall => {
                    steps.add_call(&event, host.call_kind(&event), &mut waits);
                }
                _ => {}
            }
        }
        steps.all.sort_by_key(|(at, _)| *at);
        steps
    }

    fn add_work(&mut self, work: &Event<'_>, host: &Host<'_>) {
        match (host.call_behind(work), work.place()) {
            (Some(call), _) => self.all.push((call.start().as_nanos(), Step::Issue(work.id()))),
            (None, Place::Stream { stream, .. }) => self.unissued.push(stream),
            _ => {}
        }
    }

    fn add_wait(&mut self, event: &Event<'_>, host: &Host<'_>, waits: &mut usize) {
        let (Some(sync), Place::Stream { stream, .. }) = (event.synchronization(), event.place()) else {
            return;
        };
        let record = sync.waits_on_record;
        // The same record may be added by several waits: the snapshot is the same.
        if let (Some(record), Some(stream)) = (record, sync.waits_on_stream)
            && let Some(call) = host.call_with(record)
        {
            self.all.push((call.start().as_nanos(), Step::Mark { stream, record }));
        }
        let (start, end) = (event.start().as_nanos(), event.end().as_nanos());
        let what = match sync.kind {
            SyncKind::StreamWaitEvent => {
                // Which stream waits is not known below 0.
                let wait = if stream < 0 { Step::Barrier } else { Step::Wait { stream, record } };
                return self.all.push((start, wait));
            }
            SyncKind::EventSync => Awaited::Event(record),
            SyncKind::StreamSync => Awaited::Stream(stream),
            SyncKind::ContextSync | SyncKind::Unknown => Awaited::Everything,
        };
        self.add_host_wait((start, end), what, waits);
    }

    fn add_host_wait(&mut self, (start, end): (Time, Time), what: Awaited, waits: &mut usize) {
        let number = *waits;
        *waits += 1;
        self.all.push((start, Step::Ask { number, what }));
        self.all.push((end, Step::Done(number)));
    }

    fn add_call(&mut self, call: &Event<'_>, kind: Call, waits: &mut usize) {
        let (start, end) = (call.start().as_nanos(), call.end().as_nanos());
        match kind {
            // Memory pools add waits of their own, and some allocations wait for the device.
            Call::Allocate => self.all.push((start, Step::Barrier)),
            // Graphs may record events and wait for them.
            Call::Launch if launches_graph(call.name()) => self.all.push((start, Step::Barrier)),
            // What it issued is part of everything once the call returns.
            Call::Copy | Call::Memset if !call.name().contains("Async") => {
                self.add_host_wait((end, end), Awaited::Everything, waits);
            }
            _ => {}
        }
    }
}

/// What is known to be done, while the host goes on.
pub(super) struct Order {
    kinds: BTreeMap<i64, StreamKind>,
    /// Streams that copy, by their place here.
    lanes: Vec<i64>,
    /// Whether blocking streams may have waited for work whose launch is not known.
    is_blocking_unknown: bool,
    /// What the next work of each stream comes after.
    streams: BTreeMap<i64, Clock>,
    /// What is done for all that the host does now.
    host: Clock,
    issued: Vec<u32>,
    /// What was given to the legacy stream, and to those that wait for it.
    legacy: Clock,
    blocking: Clock,
    /// What each event that was recorded stands for.
    marks: BTreeMap<u64, Clock>,
    asked: BTreeMap<usize, Clock>,
}

impl Order {
    /// `other_waits` are streams that wait for something else than events.
    pub(super) fn new(kinds: BTreeMap<i64, StreamKind>, other_waits: &[i64], unissued: &[i64]) -> Self {
        let is_free = |stream: &i64| kinds.get(stream) == Some(&StreamKind::NonBlocking);
        Self {
            lanes: kinds.keys().copied().collect(),
            is_blocking_unknown: !unissued.iter().all(is_free),
            streams: other_waits.iter().map(|stream| (*stream, Clock::unknown())).collect(),
            host: Clock::default(),
            issued: vec![0; kinds.len()],
            legacy: Clock::default(),
            blocking: Clock::default(),
            marks: BTreeMap::new(),
            asked: BTreeMap::new(),
            kinds,
        }
    }

    pub(super) fn lane(&self, stream: i64) -> Option<usize> {
        self.lanes.binary_search(&stream).ok()
    }

    fn kind(&self, stream: i64) -> StreamKind {
        self.kinds.get(&stream).copied().unwrap_or(StreamKind::Unknown)
    }

    /// Whether it is known which streams this one waits for by itself.
    pub(super) fn is_known(&self, stream: i64) -> bool {
        match self.kind(stream) {
            StreamKind::Unknown => false,
            StreamKind::Blocking => !self.is_blocking_unknown,
            StreamKind::Legacy | StreamKind::NonBlocking => true,
        }
    }

    /// What the next work of a stream comes after.
    pub(super) fn begin(&mut self, stream: i64) -> &mut Clock {
        let kind = self.kind(stream);
        let clock = self.streams.entry(stream).or_default();
        clock.join(&self.host);
        // A stream that is not known may be either.
        if matches!(kind, StreamKind::Legacy | StreamKind::Unknown) {
            clock.join(&self.blocking);
        }
        if matches!(kind, StreamKind::Blocking | StreamKind::Unknown) {
            clock.join(&self.legacy);
        }
        clock
    }

    /// After something was given to a stream.
    fn end(&mut self, stream: i64) {
        let kind = self.kind(stream);
        let Some(clock) = self.streams.get(&stream) else { return };
        if matches!(kind, StreamKind::Legacy | StreamKind::Unknown) {
            self.legacy.join(clock);
        }
        if matches!(kind, StreamKind::Blocking | StreamKind::Unknown) {
            self.blocking.join(clock);
        }
    }

    /// Gives a copy to its stream, or other work where `lane` is `None`; returns the number of the copy on its stream.
    pub(super) fn issue(&mut self, stream: i64, lane: Option<usize>) -> u32 {
        let number = lane.map_or(0, |lane| {
            self.issued[lane] += 1;
            self.issued[lane]
        });
        if let Some(lane) = lane {
            self.begin(stream).add(lane, number);
        }
        self.end(stream);
        number
    }

    fn everything(&self) -> Clock {
        let mut all = Clock::default();
        for (lane, number) in self.issued.iter().enumerate() {
            all.add(lane, *number);
        }
        all
    }

    /// What an event stands for; everything if its record is not known.
    fn marked(&self, record: Option<u64>) -> Clock {
        let known = record.and_then(|record| self.marks.get(&record));
        known.cloned().unwrap_or_else(|| self.everything())
    }

    /// Applies what is no work.
    pub(super) fn apply(&mut self, step: Step) {
        match step {
            Step::Issue(_) => {}
            Step::Mark { stream, record } => {
                let clock = self.begin(stream).clone();
                self.marks.entry(record).or_insert(clock);
                self.end(stream);
            }
            Step::Wait { stream, record } => {
                let marked = self.marked(record);
                self.begin(stream).join(&marked);
                self.end(stream);
            }
            Step::Ask { number, what } => {
                let asked = match what {
                    Awaited::Event(record) => self.marked(record),
                    Awaited::Stream(stream) if stream >= 0 => self.begin(stream).clone(),
                    Awaited::Stream(_) | Awaited::Everything => self.everything(),
                };
                self.asked.insert(number, asked);
            }
            Step::Done(number) => {
                if let Some(asked) = self.asked.remove(&number) {
                    self.host.join(&asked);
                }
            }
            Step::Barrier => self.host = self.everything(),
        }
    }
}
