//! Are the records of a trace complete, and do they fit together?
//!
//! A profiler whose buffers overflow drops records: the GPU then looks idle while it works. A converter may mix clocks, units or
//! ids. Each of these leaves signs: calls without work, work without calls, work that begins before its call.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use busbound_trace::hash::HashMap;
use busbound_trace::{
    Call, Event, EventId, EventKind, Interval, IntervalSet, Label, Nanos, Place, Timestamp, Trace, Track,
    TrackId,
};

use crate::captures::capture_times;
use crate::graph_launches::launches_graph;
use crate::host::is_issuing;
use crate::search::first_after_near;
use crate::thresholds::{
    BUSY_TO_THE_END, CLOCKS_APART, CONFLICTING_RECORDS, LONGEST_QUEUE, MOSTLY_QUEUED, OVERLAPPING_WORK,
    QUEUED_AT_THE_END, UNRECORDED_CALLS, UNRECORDED_LAUNCHES,
};

/// How the recorded calls and the recorded GPU work fit together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    /// Kernel launches; without a kernel in the trace.
    pub launches: Counted,
    /// Copy calls; without a copy in the trace.
    pub copies: Counted,
    /// GPU work that was launched during the recording; without a call in the trace.
    pub work: Counted,
    /// GPU work whose id belongs to several calls.
    pub ambiguous: usize,
    /// GPU work that has its call in the trace.
    pub joined: usize,
    pub clocks: Clocks,
    /// Time of GPU work that runs while other work of the same stream does, as a share of all.
    pub overlapping: f64,
}

/// How many there are, and how many of them lack the other half.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    pub all: usize,
    pub alone: usize,
}

impl Counted {
    fn add(&mut self, is_alone: bool) {
        self.all += 1;
        self.alone += usize::from(is_alone);
    }

    fn plus(self, other: Self) -> Self {
        Self { all: self.all + other.all, alone: self.alone + other.alone }
    }

    /// Without this many that lack the other half.
    fn minus(self, alone: usize) -> Self {
        Self { all: self.all.saturating_sub(alone), alone: self.alone.saturating_sub(alone) }
    }

    fn exceeds(self, share: f64) -> bool {
        self.alone as f64 > share * self.all as f64
    }
}

/// What calls and their work say about the clocks of host and GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clocks {
    /// Work that begins before its call does, and syncs that return before the work they wait for ends.
    pub impossible: usize,
    /// By how much at most.
    pub by: Nanos,
    /// Shortest time from a call to its work: from its end, unless the work begins before that. The first launch of a process may take
    /// seconds, and its kernel begins after them.
    pub least_latency: Option<Nanos>,
    /// From the first to the last recorded work.
    pub gpu_span: Nanos,
    /// Time between two kernels or copies as a multiple of the time between their calls, over the whole trace.
    pub pace: Option<f64>,
}

/// How the clocks of host and GPU differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClockFault {
    /// GPU times are this many times those of the host: other units.
    Units(f64),
    /// GPU times are at least this much too early.
    Early(Nanos),
    /// GPU times are about this much too late.
    Late(Nanos),
}

/// GPU work with an id. Small, because there is as much as events.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    id: u64,
    event: EventId,
    /// Calls that have its id.
    calls: u8,
}

const _: () = assert!(size_of::<Work>() <= 16);

/// One call and the calls inside it.
struct Outer {
    kind: Call,
    is_graph: bool,
    interval: Interval,
    has_work: bool,
}

impl Records {
    pub fn of(trace: &Trace) -> Self {
        let work = || trace.events().filter(|event| event.kind().is_gpu_work());
        let mut span: Option<Interval> = None;
        let mut by_id: Vec<Work> = Vec::with_capacity(work().count());
        for event in work() {
            span = Some(span.map_or(event.interval(), |span| span.hull(event.interval())));
            by_id.extend(event.correlation().map(|id| Work { id, event: event.id(), calls: 0 }));
        }
        let Some(span) = span else { return Self::default() };
        by_id.sort_unstable();
        let mut records = Self::default();
        records.clocks.gpu_span = span.length();
        let kinds: Vec<(Call, bool)> =
            trace.names().iter().map(|name| (Call::of(name), launches_graph(name))).collect();
        let mut joined = Joined {
            trace,
            work: by_id,
            near: 0,
            in_graph: Vec::new(),
            pairs: Pairs::until(device_syncs(trace, &kinds)),
            tails: [Counted::default(); 2],
            process: None,
            streams: BTreeMap::new(),
        };
        let captures = captures(trace, &kinds);
        for track in trace.threads() {
            joined.process = track.place().process();
            joined.add_thread(&mut records, track.events(), &kinds, span.end, &captures);
        }
        // A file that is cut has lost the work of its last calls, and says so.
        if trace.stats().is_complete() {
            records.add_tails(joined.tails);
        }
        records.add_work(&joined);
        records.clocks = joined.pairs.clocks(records.clocks.gpu_span);
        records.overlapping = overlapping(trace, &joined.in_graph);
        if records.kernels_are_missing() || records.copies_are_missing() {
            records.forgive_queue(&mut joined, &kinds, span, &captures);
        }
        records
    }

    /// A window that was cut out of a recording ends while work is queued: its calls are in the window, and the work is not. In a
    /// stream, all of that comes after the last recorded work. Each process has streams of its own.
    fn forgive_queue(
        &mut self,
        joined: &mut Joined<'_>,
        kinds: &[(Call, bool)],
        span: Interval,
        captures: &IntervalSet,
    ) {
        let since_of = |thread: Track<'_>| joined.queued_since(thread.place().process(), span);
        let since: Vec<Option<Timestamp>> = joined.trace.threads().map(since_of).collect();
        let mut queued = Self::default();
        for (track, since) in joined.trace.threads().zip(since) {
            let Some(since) = since else { continue };
            joined.process = track.place().process();
            let later = track.events().filter(|event| event.start() > since);
            joined.add_thread(&mut queued, later, kinds, Timestamp::from_nanos(i64::MAX), captures);
        }
        let without = |counted: Counted, queued: Counted| match queued.exceeds(MOSTLY_QUEUED) {
            true => counted.minus(queued.alone),
            false => counted,
        };
        let launches = without(self.launches, queued.launches);
        let copies = without(self.copies, queued.copies);
        // Where others lack their work too, the profiler dropped records.
        if !launches.exceeds(UNRECORDED_LAUNCHES) && !copies.exceeds(UNRECORDED_LAUNCHES) {
            (self.launches, self.copies) = (launches, copies);
        }
    }

    /// Calls after the last recorded work. Some are still queued when a recording stops.
    fn add_tails(&mut self, [launches, copies]: [Counted; 2]) {
        for (counted, tail) in [(&mut self.launches, launches), (&mut self.copies, copies)] {
            let all = counted.plus(tail);
            if tail.alone as f64 > QUEUED_AT_THE_END * all.all as f64 {
                *counted = all;
            }
        }
    }

    /// Work without a call. What ran on a stream before the first work with a call was launched before the recording.
    fn add_work(&mut self, joined: &Joined<'_>) {
        let mut first: HashMap<TrackId, Timestamp> = HashMap::default();
        let mut starts: Vec<Timestamp> = Vec::with_capacity(joined.work.len());
        for work in joined.work.iter().filter(|work| work.calls > 0) {
            let event = joined.trace.event(work.event);
            starts.push(event.start());
            let start = first.entry(event.track_id()).or_insert(event.start());
            *start = (*start).min(event.start());
        }
        // Half of the recording later, what still runs was not launched before it.
        let middle = starts.len() / 2;
        if starts.is_empty() {
            return;
        }
        let late = *starts.select_nth_unstable(middle).1;
        for work in &joined.work {
            self.ambiguous += usize::from(work.calls > 1);
            self.joined += usize::from(work.calls == 1);
            let event = joined.trace.event(work.event);
            let since = first.get(&event.track_id()).copied().unwrap_or(late);
            // A migration has no call, and has no id.
            if event.start() >= since {
                self.work.add(work.calls == 0);
            }
        }
    }

    /// Whether so many kernels are missing that shares of the rest mislead.
    pub fn kernels_are_missing(&self) -> bool {
        self.launches.exceeds(UNRECORDED_LAUNCHES)
    }

    /// The same for copies.
    pub fn copies_are_missing(&self) -> bool {
        self.copies.exceeds(UNRECORDED_LAUNCHES)
    }

    /// Whether calls were dropped.
    pub fn calls_are_missing(&self) -> bool {
        self.work.exceeds(UNRECORDED_CALLS)
    }

    /// Whether most ids say nothing.
    pub fn ids_are_ambiguous(&self) -> bool {
        self.ambiguous as f64 > CONFLICTING_RECORDS * (self.ambiguous + self.joined) as f64
    }

    /// Whether times or streams are wrong: a stream runs one thing at a time.
    pub fn streams_overlap(&self) -> bool {
        self.overlapping > OVERLAPPING_WORK
    }

    /// How the clocks of host and GPU differ, if they do.
    pub fn clock_fault(&self) -> Option<ClockFault> {
        let clocks = &self.clocks;
        let latency = clocks.least_latency.filter(|_| !self.ids_are_ambiguous())?;
        let queue = Nanos::new(LONGEST_QUEUE).max(clocks.gpu_span);
        let is_early = clocks.impossible as f64 > CONFLICTING_RECORDS * self.joined as f64;
        if !is_early && latency <= queue && clocks.impossible < 3 {
            return None;
        }
        if let Some(pace) = clocks.pace.filter(|pace| !(0.1..10.0).contains(pace)) {
            return Some(ClockFault::Units(pace));
        }
        match () {
            () if latency > queue => Some(ClockFault::Late(latency)),
            () if latency.get() < -CLOCKS_APART => Some(ClockFault::Early(clocks.by)),
            () if is_early || clocks.impossible >= 3 => Some(ClockFault::Late(clocks.by)),
            () => None,
        }
    }
}

/// What calls and their work say together, without keeping them.
#[derive(Default)]
struct Pairs {
    clocks: Clocks,
    /// The starts of the first and of the last call, each with that of its work.
    first: Option<(Timestamp, Timestamp)>,
    last: Option<(Timestamp, Timestamp)>,
    /// Calls that wait for the device, by start.
    syncs: Vec<Interval>,
    /// Of each sync: when the last work ended whose call is before it, and after the sync before it.
    ended: Vec<Option<Timestamp>>,
}

const TOLERATED: Nanos = Nanos::new(CLOCKS_APART);

impl Pairs {
    fn until(mut syncs: Vec<Interval>) -> Self {
        syncs.sort_unstable();
        Self { ended: vec![None; syncs.len()], syncs, ..Self::default() }
    }

    /// Adds a call and its work.
    fn add(&mut self, call: Interval, work: Interval) {
        let clocks = &mut self.clocks;
        let latency = work.start - call.start.max(work.start.min(call.end));
        clocks.least_latency = Some(clocks.least_latency.map_or(latency, |least| least.min(latency)));
        let early = call.start - work.start;
        if early > TOLERATED {
            clocks.impossible += 1;
            clocks.by = clocks.by.max(early);
        }
        let pair = (call.start, work.start);
        self.first = Some(self.first.map_or(pair, |first| first.min(pair)));
        self.last = self.last.max(Some(pair));
        let next = self.syncs.partition_point(|sync| sync.start <= call.start);
        if let Some(ended) = self.ended.get_mut(next) {
            *ended = (*ended).max(Some(work.end));
        }
    }

    /// Syncs that returned before work ended that they waited for count too.
    fn clocks(&self, gpu_span: Nanos) -> Clocks {
        let mut clocks = Clocks { gpu_span, pace: self.pace(), ..self.clocks };
        let mut last: Option<Timestamp> = None;
        for (sync, ended) in self.syncs.iter().zip(&self.ended) {
            last = last.max(*ended);
            if let Some(late) = last.map(|last| last - sync.end).filter(|late| *late > TOLERATED) {
                clocks.impossible += 1;
                clocks.by = clocks.by.max(late);
            }
        }
        clocks
    }

    /// Time between the first and the last work as a multiple of the time between their calls.
    fn pace(&self) -> Option<f64> {
        let ((first_call, first), (last_call, last)) = (self.first?, self.last?);
        let (calls, work) = ((last_call - first_call).get(), (last - first).get());
        (calls > 0 && work > 0).then(|| work as f64 / calls as f64)
    }
}

struct Joined<'a> {
    trace: &'a Trace,
    /// In the order of ids.
    work: Vec<Work>,
    /// Where the last call's work is: the next one's is mostly close.
    near: usize,
    /// Ids of graph launches, in no order.
    in_graph: Vec<u64>,
    pairs: Pairs,
    /// Launches and copy calls after the last recorded work.
    tails: [Counted; 2],
    /// The process whose calls are being added.
    process: Option<Label>,
    /// Per process and stream: how much work has its call, and its last work with the start of its call.
    streams: BTreeMap<(Option<Label>, TrackId), (usize, Interval, Timestamp)>,
}

impl Joined<'_> {
    /// The call of the last work of the process's stream with most work, if that stream is busy until the recording ends.
    fn queued_since(&self, process: Option<Label>, gpu: Interval) -> Option<Timestamp> {
        let of_process = self.streams.iter().filter(|((of, _), _)| *of == process);
        let (_, (_, last, call)) =
            of_process.max_by_key(|(track, (count, ..))| (*count, Reverse(**track)))?;
        let calls =
            self.trace.threads().flat_map(|track| track.events().filter(|event| event.kind().is_call()));
        // A call that begins in the window may end after it.
        let end = calls.map(|call| call.start()).max().map_or(gpu.end, |start| start.max(gpu.end));
        let margin = Nanos::new(gpu.length().get() / BUSY_TO_THE_END);
        (last.end + margin >= end).then_some(*call)
    }

    /// Counts the calls of one thread, in time order. A runtime call and the driver call inside it are one.
    fn add_thread<'t>(
        &mut self,
        records: &mut Records,
        events: impl Iterator<Item = Event<'t>>,
        kinds: &[(Call, bool)],
        last: Timestamp,
        captures: &IntervalSet,
    ) {
        let mut open: Option<Outer> = None;
        let mut tails = self.tails;
        let mut close = |outer: Option<Outer>, records: &mut Records| {
            let Some(outer) = outer.filter(|outer| !captures.covers(outer.interval.start)) else { return };
            let is_late = outer.interval.start > last;
            let counted = match outer.kind {
                Call::Launch if outer.is_graph => return,
                Call::Launch if is_late => &mut tails[0],
                Call::Launch => &mut records.launches,
                Call::Copy if is_late => &mut tails[1],
                Call::Copy => &mut records.copies,
                _ => return,
            };
            counted.add(!outer.has_work);
        };
        for call in events.filter(|event| event.kind().is_call()) {
            let (kind, is_graph) = kinds[call.name_id().index()];
            if !is_issuing(kind) {
                continue;
            }
            // A call without a correlation cannot be joined to anything.
            let Some(id) = call.correlation() else { continue };
            if is_graph {
                self.in_graph.push(id);
            }
            let has_work = self.join(id, call.interval());
            match open.as_mut().filter(|outer| call.start() < outer.interval.end) {
                Some(outer) => outer.has_work |= has_work,
                None => {
                    close(open.take(), records);
                    open = Some(Outer { kind, is_graph, interval: call.interval(), has_work });
                }
            }
        }
        close(open, records);
        self.tails = tails;
    }

    /// Whether there is work with this id; remembers when its call was.
    fn join(&mut self, id: u64, call: Interval) -> bool {
        let before = |place: usize| self.work[place].id < id;
        self.near = first_after_near(&(0..self.work.len()), self.near, before);
        let mut found: Option<Interval> = None;
        for work in self.work[self.near..].iter_mut().take_while(|work| work.id == id) {
            let event = self.trace.event(work.event);
            work.calls = work.calls.saturating_add(1);
            let stream = (self.process, event.track_id());
            let stream = self.streams.entry(stream).or_insert((0, event.interval(), call.start));
            stream.0 += 1;
            if event.start() >= stream.1.start {
                (stream.1, stream.2) = (event.interval(), call.start);
            }
            found = Some(found.map_or(event.interval(), |known| known.hull(event.interval())));
            // With one id for everything, each call would visit all work.
            if work.calls > 2 {
                break;
            }
        }
        if let Some(work) = found {
            self.pairs.add(call, work);
        }
        found.is_some()
    }
}

/// Calls that wait for everything on the only device, if all calls are of one process.
fn device_syncs(trace: &Trace, kinds: &[(Call, bool)]) -> Vec<Interval> {
    let mut devices: Vec<i32> = Vec::new();
    let mut processes = Vec::new();
    for track in trace.tracks().into_iter().filter(|track| !track.is_empty()) {
        match track.place() {
            Place::Stream { device, .. } => devices.push(device),
            Place::Thread { process, .. } if track.events().any(|event| event.kind().is_call()) => {
                processes.push(process);
            }
            Place::Thread { .. } => {}
        }
    }
    devices.sort_unstable();
    devices.dedup();
    processes.sort_unstable();
    processes.dedup();
    if devices.len() != 1 || processes.len() != 1 {
        return Vec::new();
    }
    let waits = |event: &Event<'_>| {
        event.kind().is_call()
            && kinds[event.name_id().index()].0 == Call::Synchronize
            && (event.name().contains("DeviceSynchronize") || event.name().contains("CtxSynchronize"))
    };
    trace.events().filter(waits).map(|event| event.interval()).collect()
}

/// The share of its time that work runs while other work of its stream does. Branches of a graph share a stream's number,
/// and ROCm reports copies on stream 0.
fn overlapping(trace: &Trace, in_graph: &[u64]) -> f64 {
    let in_graph: busbound_trace::hash::HashSet<u64> = in_graph.iter().copied().collect();
    let (mut all, mut shared) = (Nanos::ZERO, Nanos::ZERO);
    for track in trace.streams() {
        let Place::Stream { stream: 0.., .. } = track.place() else { continue };
        let mut last: Option<Timestamp> = None;
        let alone = |event: &Event<'_>| {
            matches!(event.kind(), EventKind::Kernel | EventKind::Memset)
                && event.correlation().is_none_or(|id| !in_graph.contains(&id))
        };
        for work in track.events().filter(alone) {
            all += work.duration();
            if let Some(last) = last.filter(|last| *last > work.start()) {
                shared += last.min(work.end()) - work.start();
            }
            last = last.max(Some(work.end()));
        }
    }
    if all > Nanos::ZERO { shared.get() as f64 / all.get() as f64 } else { 0.0 }
}

/// Times at which a stream was captured into a graph: launches then run nothing.
fn captures(trace: &Trace, kinds: &[(Call, bool)]) -> IntervalSet {
    if !kinds.iter().any(|(kind, _)| *kind == Call::Capture) {
        return IntervalSet::default();
    }
    let is_capture =
        |event: &Event<'_>| event.kind().is_call() && kinds[event.name_id().index()].0 == Call::Capture;
    capture_times(trace.events().filter(is_capture))
}
