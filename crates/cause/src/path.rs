//! What is on the critical path of a step?
//!
//! Walks from the step's last event back to its first, always along the edge that was satisfied last: the previous work on the
//! stream, work on another stream, or the call that launched it; for the host, the work or the thread that it waited for.
//!
//! The path has no gaps: every moment of the step belongs to one segment, so the path is as long as the step. Shortening a
//! segment shortens the step until another path is longer.

use std::collections::BTreeMap;

use busbound_trace::{Call, EventId, Interval, IntervalSet, TrackId};
use serde::Serialize;

use crate::graph::{CallId, Graph, Rule, Thread, WorkId, WorkKind, waited_for_thread};
use crate::host::{Host, HostUse};
use crate::thresholds::{CONTENDED_SHARE, LAUNCH_LATENCY, SEARCH_DEPTH, SHORT_WAIT, STEP_ENDS_WITH_WORK};
use crate::{Time, interval};

/// What happens in a segment of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PathClass {
    Compute,
    Communication,
    /// A copy in any direction.
    Copy,
    Memset,
    /// The host inside a copy call before the copy starts: usually staging pageable memory.
    Staging,
    /// Launch calls, the short host work between them, and launch latency.
    Launch,
    /// The host's own work: operators on the CPU, allocation, Python, or something that is not recorded.
    Host,
    /// The host waiting for the next batch.
    Input,
    /// A host sync with nothing left to wait for, or the return from a host sync.
    Synchronization,
    /// Work that was ready to start while work on other streams occupied the device.
    Contended,
    /// The gap between kernels that depend on each other.
    KernelGap,
    /// The cause is not visible in the trace.
    Unexplained,
}

impl PathClass {
    /// In the order of the declaration, so that each is at its own index.
    pub const ALL: &'static [Self] = &[
        Self::Compute,
        Self::Communication,
        Self::Copy,
        Self::Memset,
        Self::Staging,
        Self::Launch,
        Self::Host,
        Self::Input,
        Self::Synchronization,
        Self::Contended,
        Self::KernelGap,
        Self::Unexplained,
    ];

    /// Whether nothing on the path runs: something waits.
    pub fn is_wait(self) -> bool {
        matches!(
            self,
            Self::Input | Self::Synchronization | Self::Contended | Self::KernelGap | Self::Unexplained
        )
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Copy => "copies",
            Self::Memset => "memsets",
            Self::Staging => "inside copy calls",
            Self::Launch => "launches",
            Self::Host => "host work",
            Self::Input => "input",
            Self::Synchronization => "host syncs",
            Self::Contended => "waiting for other streams",
            Self::KernelGap => "gaps between kernels",
            Self::Unexplained => "unexplained",
        }
    }
}

/// One segment of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSegment {
    pub class: PathClass,
    pub interval: Interval,
    /// The work or call of the segment, or the next one after it; `None` at the end of the step.
    pub event: Option<EventId>,
    /// The thread of host time.
    pub thread: Option<TrackId>,
}

/// Edges that the walked paths use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgesWalked {
    pub stream_order: u64,
    pub launch: u64,
    pub recorded_waits: u64,
    pub inferred_waits: u64,
}

impl EdgesWalked {
    fn count(&mut self, rule: Rule) {
        match rule {
            Rule::StreamOrder => self.stream_order += 1,
            Rule::Correlation => self.launch += 1,
            rule if rule.is_recorded() => self.recorded_waits += 1,
            _ => self.inferred_waits += 1,
        }
    }
}

/// When kernels and copies occupied a device.
#[derive(Debug, Clone, Copy)]
pub struct Occupied<'a> {
    pub device: i32,
    pub kernels: &'a IntervalSet,
    pub copies: &'a IntervalSet,
}

/// The position of the walk: everything after `at` is explained.
enum Position {
    /// In this device work.
    Work(WorkId),
    /// On this thread, before this call or before the end of the step.
    Thread(TrackId, Option<EventId>),
}

/// Where an edge leads back to.
#[derive(Clone, Copy)]
enum Source {
    Work(WorkId),
    Call(CallId),
}

/// Walks steps back along the edges of a graph.
#[derive(Debug)]
pub struct Walk<'f, 'a> {
    graph: &'f Graph,
    host: &'f Host<'a>,
    occupied: &'f [Occupied<'f>],
    /// Per thread, in order: calls that return only after the device has finished some work.
    blocking: BTreeMap<TrackId, Vec<CallId>>,
    from: Time,
    at: Time,
    /// Those of the step that nobody took yet. The last one may still be extended.
    segments: Vec<PathSegment>,
    edges: EdgesWalked,
}

impl<'f, 'a> Walk<'f, 'a> {
    pub fn new(graph: &'f Graph, host: &'f Host<'a>, occupied: &'f [Occupied<'f>]) -> Self {
        let blocking = |thread: &Thread| {
            let blocks = |call: &CallId| {
                graph.calls[*call].blocks()
                    || graph.silent_wait(*call).is_some()
                    || graph.blocked_by(*call).is_some()
            };
            (thread.track, thread.calls.clone().filter(blocks).collect())
        };
        let blocking = graph.threads.iter().map(blocking).collect();
        let edges = EdgesWalked::default();
        Self { graph, host, occupied, blocking, from: 0, at: 0, segments: Vec::new(), edges }
    }

    /// The edges of all steps walked so far.
    pub fn edges(&self) -> EdgesWalked {
        self.edges
    }

    /// The path of one step, from its end to its start.
    pub fn step(&mut self, step: Interval) -> Vec<PathSegment> {
        let mut segments = Vec::new();
        self.each_segment(step, |segment| segments.push(segment));
        segments
    }

    /// Calls back with the segments of the path of one step, from its end to its start. A path may have as many as events.
    pub fn each_segment(&mut self, step: Interval, mut take: impl FnMut(PathSegment)) {
        (self.from, self.at) = (step.start.as_nanos(), step.end.as_nanos());
        let mut position = self.last_of_step();
        if let Some(Position::Work(last)) = position {
            // The time after the last known work.
            self.cover(PathClass::Unexplained, self.graph.work[last].end, Some(self.graph.work[last].event));
        }
        // Each iteration goes back in time, or along one of finitely many waits at the same time.
        let mut iterations_without_progress = 0;
        while let Some(here) = position {
            let before = self.at;
            position = match here {
                Position::Work(work) => self.back_from_work(work),
                Position::Thread(thread, goal) => self.back_on_thread(thread, goal),
            };
            let done = self.segments.len().saturating_sub(1);
            self.segments.drain(..done).for_each(&mut take);
            iterations_without_progress = if self.at < before { 0 } else { iterations_without_progress + 1 };
            if self.at <= self.from || iterations_without_progress > 100 {
                break;
            }
        }
        if self.at > self.from {
            let goal = self.segments.last().and_then(|segment| segment.event);
            self.cover(PathClass::Unexplained, self.from, goal);
        }
        self.segments.drain(..).for_each(take);
    }

    /// The work or the thread that ends the step.
    fn last_of_step(&self) -> Option<Position> {
        let graph = self.graph;
        let last = graph.last_ended(None, self.at, SEARCH_DEPTH, |_| true)?;
        if self.at - graph.work[last].end < STEP_ENDS_WITH_WORK {
            return Some(Position::Work(last));
        }
        // The host continues after the last device work, on the thread that launched it.
        let call = graph.work[last].call();
        Some(call.map_or(Position::Work(last), |call| Position::Thread(self.thread_of(call), None)))
    }

    fn thread_of(&self, call: CallId) -> TrackId {
        self.graph.threads[self.graph.thread_of(call)].track
    }

    /// Adds a segment from `since` to the position of the walk.
    fn cover(&mut self, class: PathClass, since: Time, event: Option<EventId>) {
        let since = since.max(self.from);
        if since < self.at {
            let interval = interval(since, self.at);
            self.segments.push(PathSegment { class, interval, event, thread: None });
            self.at = since;
        }
    }

    fn back_from_work(&mut self, work: WorkId) -> Option<Position> {
        let node = &self.graph.work[work];
        // The time after the end of the work is already covered.
        self.cover(class_of(node.kind), node.start, Some(node.event));
        let Some((at, source, rule)) = self.last_satisfied(work) else {
            self.cover(PathClass::Unexplained, self.from, Some(node.event));
            return None;
        };
        self.edges.count(rule);
        match source {
            Source::Work(source) => {
                let class = self.class_of_wait(work, at);
                self.cover_wait(class, at, work);
                Some(Position::Work(source))
            }
            Source::Call(id) => {
                let call = &self.graph.calls[id];
                let is_copy = self.host.call_kind(&self.host.trace().event(call.event)) == Call::Copy;
                let class = if is_copy { PathClass::Staging } else { PathClass::Launch };
                self.cover_wait(PathClass::Launch, call.end.min(node.start), work);
                self.cover(class, self.graph.begun(id), Some(call.event));
                let holder = self.holder_of(id);
                Some(holder.unwrap_or_else(|| Position::Thread(self.thread_of(id), Some(call.event))))
            }
        }
    }

    /// The thread that blocked a call, at the end of its own call.
    fn holder_of(&mut self, call: CallId) -> Option<Position> {
        let other = self.graph.blocked_by(call)?;
        self.edges.count(Rule::ThreadWait);
        Some(Position::Thread(self.thread_of(other), Some(self.graph.calls[other].event)))
    }

    /// The edge into the work that was satisfied last.
    fn last_satisfied(&self, work: WorkId) -> Option<(Time, Source, Rule)> {
        let (graph, node) = (self.graph, &self.graph.work[work]);
        let earlier = (graph.streams[graph.stream_of(work)].work.start..work).rev();
        let before = earlier.take(SEARCH_DEPTH).find(|before| graph.work[*before].end <= node.start);
        let mut best = before.map(|before| (graph.work[before].end, Source::Work(before), Rule::StreamOrder));
        let mut take = |at: Time, source: Source, rule: Rule| {
            if best.is_none_or(|(known, ..)| at > known) {
                best = Some((at, source, rule));
            }
        };
        if let Some(id) = node.call() {
            let call = &graph.calls[id];
            // A call that is still running when its work starts may have issued it at any time since its start.
            let at = if call.end <= node.start { call.end } else { graph.begun(id) };
            take(at, Source::Call(id), Rule::Correlation);
        }
        for wait in graph.waits_of(work) {
            take(graph.work[wait.on()].end.min(node.start), Source::Work(wait.on()), wait.rule);
        }
        best
    }

    /// A wait longer than the launch latency was for its own call, if that was still staging, or for something that is not
    /// visible in the trace.
    fn class_of_wait(&self, work: WorkId, since: Time) -> PathClass {
        let node = &self.graph.work[work];
        if node.start - since <= LAUNCH_LATENCY {
            return PathClass::KernelGap;
        }
        let call = node.call().map(|call| &self.graph.calls[call]).filter(|call| call.end > node.start);
        let is_staging =
            call.is_some_and(|call| self.host.call_kind(&self.host.trace().event(call.event)) == Call::Copy);
        if is_staging { PathClass::Staging } else { PathClass::Unexplained }
    }

    /// Adds the time between the end of a predecessor and the start of the work. If other work of the same kind occupied the
    /// device in that time, the work waited for it.
    fn cover_wait(&mut self, class: PathClass, since: Time, work: WorkId) {
        let node = &self.graph.work[work];
        // A launch takes this long without other delays.
        let usual = if class == PathClass::Launch { LAUNCH_LATENCY } else { SHORT_WAIT };
        let device = self.graph.device_of(work);
        if self.at - since > usual
            && let Some(occupied) = self.occupied.iter().find(|occupied| occupied.device == device)
        {
            let busy = if node.kind.is_copy() { occupied.copies } else { occupied.kernels };
            let window = interval(since, self.at);
            if busy.length_within(window).get() as f64 > CONTENDED_SHARE * window.length().get() as f64 {
                return self.cover(PathClass::Contended, since, Some(node.event));
            }
        }
        self.cover(class, since, Some(node.event));
    }

    /// Goes back to what the thread last waited for: the device or another thread.
    fn back_on_thread(&mut self, thread: TrackId, goal: Option<EventId>) -> Option<Position> {
        let last = self.last_blocking(thread);
        let returned = |call: CallId| {
            // A thread that waited without a record of it continued when the work ended.
            let silent = self.graph.silent_wait(call);
            silent.map_or(self.graph.calls[call].end, |work| self.graph.work[work].end)
        };
        let since = last.map_or(self.from, returned).min(self.at).max(self.from);
        if let Some((other, left)) = waited_for_thread(self.host, thread, interval(since, self.at)) {
            self.edges.count(Rule::ThreadWait);
            self.cover_host(thread, left.as_nanos(), goal);
            return Some(Position::Thread(other, goal));
        }
        self.cover_host(thread, since, goal);
        let id = last?;
        let call = &self.graph.calls[id];
        if let Some(work) = self.graph.silent_wait(id) {
            self.edges.count(Rule::SilentWait);
            return Some(Position::Work(work));
        }
        if self.graph.blocked_by(id).is_some() {
            self.cover(PathClass::Launch, self.graph.begun(id), Some(call.event));
            return self.holder_of(id);
        }
        // The call waited only for work that ended after the call started.
        match self.graph.released_by(id).filter(|wait| self.graph.work[wait.on()].end > call.start) {
            Some(wait) => {
                self.edges.count(wait.rule);
                self.cover(PathClass::Synchronization, self.graph.work[wait.on()].end, Some(call.event));
                Some(Position::Work(wait.on()))
            }
            None => {
                self.cover(PathClass::Synchronization, call.start, Some(call.event));
                Some(Position::Thread(thread, Some(call.event)))
            }
        }
    }

    /// The thread's last call at or before this position that returned, or began, only after the device had finished some work.
    fn last_blocking(&self, thread: TrackId) -> Option<CallId> {
        let calls = self.blocking.get(&thread)?;
        let upto = calls.partition_point(|call| {
            let start = self.graph.calls[*call].start;
            start < self.at || start == self.at && self.graph.silent_wait(*call).is_some()
        });
        let last = calls[upto.checked_sub(1)?];
        (self.graph.calls[last].end > self.from).then_some(last)
    }

    /// Adds host time back to `since`, split into calls, waits for input and the rest; each part refers to the next call.
    fn cover_host(&mut self, thread: TrackId, since: Time, goal: Option<EventId>) {
        let since = since.max(self.from);
        if since >= self.at {
            return;
        }
        let mut goal = goal;
        for used in self.host.uses_and_launches(thread, interval(since, self.at)).into_iter().rev() {
            let class = match used.what {
                HostUse::Launching => PathClass::Launch,
                HostUse::CopyCall => PathClass::Staging,
                HostUse::Synchronizing => PathClass::Synchronization,
                HostUse::Input => PathClass::Input,
                _ => PathClass::Host,
            };
            if used.is_issuing {
                goal = used.event;
            }
            self.cover_host_segment(class, used.interval.start.as_nanos(), goal, thread);
        }
    }

    /// Adds host time, or extends the previous segment if it is of the same kind.
    fn cover_host_segment(&mut self, class: PathClass, since: Time, goal: Option<EventId>, thread: TrackId) {
        let of_host = (class == PathClass::Host).then_some(thread);
        if let Some(last) = self.segments.last_mut()
            && (last.class, last.event, last.thread) == (class, goal, of_host)
            && last.interval.start.as_nanos() == self.at
        {
            last.interval = interval(since, last.interval.end.as_nanos());
            self.at = since;
            return;
        }
        self.cover(class, since, goal);
        if let Some(last) = self.segments.last_mut() {
            last.thread = of_host;
        }
    }
}

fn class_of(kind: WorkKind) -> PathClass {
    match kind {
        WorkKind::Copy { .. } | WorkKind::OtherCopy => PathClass::Copy,
        WorkKind::Memset => PathClass::Memset,
        WorkKind::Collective => PathClass::Communication,
        WorkKind::Kernel { .. } => PathClass::Compute,
    }
}
