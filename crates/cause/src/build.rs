//! How does a trace become a graph? Calls by correlation, streams by order, waits as recorded or as the times tell.

use busbound_trace::{
    Call, Direction, Event, EventId, EventKind, MemoryKind, NameId, Place, Timestamp, Trace, TrackId,
};
use hashbrown::HashMap;

use crate::model::{Awaited, HostAction, HostCall, Model, Stretch, Time, Work, WorkId, WorkKind};
use crate::simulate::rate;

/// Work that begins this much after all that is known to precede it waited for something else.
const UNEXPLAINED: Time = 20_000;
/// What it waited for ended this shortly before.
const CLOSE: Time = 60_000;
/// A thread without a call for this long may have waited for another one.
const IDLE_THREAD: Time = 50_000;
/// What work waits after the work before it, where the trace shows no better.
const TURNAROUND: Time = 1_500;
/// How far back a stream is searched for what had been issued by a moment.
const MOST_LOOKED_AT: usize = 4096;
/// An unhurried copy call, where the trace shows none.
const COPY_CALL: Time = 10_000;
/// How long an event between streams takes to pass.
pub const EVENT_PASSES: Time = 2_000;

pub fn build(trace: &Trace, stretch: &Stretch, duplex: f64) -> Model {
    let mut builder = Builder::new(trace, stretch);
    builder.device_work();
    builder.calls();
    builder.link_threads();
    builder.waits_between_streams();
    builder.delays();
    builder.host_waits();
    builder.alone(duplex);
    builder.graph
}

struct Builder<'a> {
    trace: &'a Trace,
    begin: Timestamp,
    starts: Vec<Time>,
    until: Time,
    graph: Model,
    kinds: Vec<Call>,
    /// Work by the correlation of its call.
    by_correlation: HashMap<u64, Vec<WorkId>>,
    /// Calls that make a stream wait, with their thread and when.
    wait_calls: Vec<(usize, Time)>,
    /// Calls that mark a stream, by thread, with their name.
    mark_calls: Vec<(usize, Time, NameId)>,
    /// Each call's event, by item.
    calls: Vec<EventId>,
    tracks: HashMap<TrackId, usize>,
}

impl<'a> Builder<'a> {
    fn new(trace: &'a Trace, stretch: &Stretch) -> Self {
        let begin = stretch.starts.first().copied().unwrap_or_default();
        let since = |at: Timestamp| (at - begin).get();
        Self {
            trace,
            begin,
            starts: stretch.starts.iter().map(|at| since(*at)).collect(),
            until: since(stretch.end),
            graph: Model { steps: stretch.starts.len(), ..Model::default() },
            kinds: trace.names().iter().map(Call::of).collect(),
            by_correlation: HashMap::new(),
            wait_calls: Vec::new(),
            mark_calls: Vec::new(),
            calls: Vec::new(),
            tracks: HashMap::new(),
        }
    }

    fn since(&self, at: Timestamp) -> Time {
        (at - self.begin).get()
    }

    fn step(&self, at: Time) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// The device's work of the stretch, stream by stream.
    fn device_work(&mut self) {
        let trace = self.trace;
        for track in trace.streams() {
            let Place::Stream { device, .. } = track.place() else { continue };
            let stream = self.graph.streams.len();
            let mut order = Vec::new();
            for event in track.events().filter(|event| event.kind().is_gpu_work()) {
                let (start, end) = (self.since(event.start()), self.since(event.end()));
                if start < 0 || end > self.until {
                    continue;
                }
                let op = self.graph.work.len();
                self.graph.work.push(Work {
                    kind: work_of(&event),
                    event: event.id(),
                    stream,
                    call: None,
                    alone: (end - start) as f64,
                    after_call: 0,
                    after_work: 0,
                    waits: Vec::new(),
                    step: 0,
                    start,
                    end,
                    dropped: false,
                });
                if let Some(correlation) = event.correlation() {
                    self.by_correlation.entry(correlation).or_default().push(op);
                }
                order.push(op);
            }
            self.tracks.insert(track.id(), stream);
            self.graph.streams.push(order);
            self.graph.stream_device.push(device);
        }
    }

    /// Calls that matter, thread by thread.
    fn calls(&mut self) {
        let trace = self.trace;
        for track in trace.threads() {
            let mut order: Vec<usize> = Vec::new();
            let thread = self.graph.threads.len();
            let is_call =
                |event: &Event<'_>| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall);
            for event in track.events().filter(is_call) {
                let (start, end) = (self.since(event.start()), self.since(event.end()));
                if start < 0 || start > self.until {
                    continue;
                }
                let kind = self.kinds[event.name_id().index()];
                let mut ops = event
                    .correlation()
                    .and_then(|id| self.by_correlation.get(&id))
                    .cloned()
                    .unwrap_or_default();
                // One call has issued it: an id that two processes share is believed once.
                ops.retain(|op| self.graph.work[*op].call.is_none());
                let action = match kind {
                    Call::WaitEvent => {
                        self.wait_calls.push((thread, start));
                        continue;
                    }
                    Call::RecordEvent => {
                        self.mark_calls.push((thread, start, event.name_id()));
                        continue;
                    }
                    Call::Synchronise => HostAction::Wait { awaited: Awaited::None, copy: None },
                    _ if ops.is_empty() => continue,
                    Call::Copy => match ops[..] {
                        [op] if self.holds(op, start, end) => HostAction::IssueBlocking(op),
                        _ => HostAction::Issue(ops),
                    },
                    _ => HostAction::Issue(ops),
                };
                let item = self.graph.calls.len();
                let step = self.step(start);
                let issued = match &action {
                    HostAction::Issue(ops) => ops.as_slice(),
                    HostAction::IssueBlocking(op) => std::slice::from_ref(op),
                    HostAction::Wait { .. } | HostAction::Nothing => &[],
                };
                for &op in issued {
                    self.graph.work[op].call = Some(item);
                    self.graph.work[op].step = step;
                }
                let gap = start - order.last().map_or(0, |before| self.graph.calls[*before].end);
                self.graph.calls.push(HostCall {
                    action,
                    // A call within another one has no gap before it.
                    gap: gap.max(0),
                    after: None,
                    cost: end - start,
                    step,
                    start,
                    end: end.min(self.until.max(start)),
                });
                self.calls.push(event.id());
                order.push(item);
            }
            if !order.is_empty() {
                self.graph.threads.push(order);
            }
        }
        for op in &mut self.graph.work {
            if op.call.is_none() {
                op.step = self.starts.partition_point(|start| *start <= op.start).saturating_sub(1);
                self.graph.edges.without_call += 1;
            }
        }
        let mut held: Vec<Time> = self.graph.calls.iter().filter(|item| matches!(&item.action, HostAction::Issue(ops) if ops.iter().any(|op| self.graph.work[*op].kind.bus().is_some()))).map(|item| item.cost).collect();
        held.sort_unstable();
        self.graph.copy_call = held.get(held.len() / 2).copied().unwrap_or(COPY_CALL).min(3 * COPY_CALL);
    }

    /// Whether a copy's call waited for it. One from pageable memory may return a moment before its last part
    /// is on the device.
    fn holds(&self, op: WorkId, start: Time, end: Time) -> bool {
        let work = &self.graph.work[op];
        let staged =
            matches!(work.kind, WorkKind::Copy { pageable: true, .. }) && end > work.start.midpoint(work.end);
        work.end > start && (work.end <= end || staged)
    }

    /// A thread that was idle while another one worked had handed over to it: autograd's, most of all.
    fn link_threads(&mut self) {
        if self.graph.threads.len() < 2 {
            return;
        }
        let mut all: Vec<(Time, usize, usize)> = Vec::new();
        for (thread, order) in self.graph.threads.iter().enumerate() {
            all.extend(order.iter().map(|item| (self.graph.calls[*item].end, thread, *item)));
        }
        all.sort_unstable();
        for thread in 0..self.graph.threads.len() {
            for i in 0..self.graph.threads[thread].len() {
                let item = self.graph.threads[thread][i];
                if self.graph.calls[item].gap < IDLE_THREAD {
                    continue;
                }
                let start = self.graph.calls[item].start;
                let idle_since = start - self.graph.calls[item].gap;
                let before = all.partition_point(|(end, ..)| *end <= start);
                // Of calls of one moment none comes before the other.
                let earlier = |other: usize| self.graph.calls[other].start < start;
                let other =
                    all[..before].iter().rev().find(|(_, of, other)| *of != thread && earlier(*other));
                let Some(&(end, _, other)) = other.filter(|(end, ..)| *end > idle_since) else { continue };
                self.graph.calls[item].after = Some((other, start - end));
                // Its own thread no longer holds it back by more than a moment.
                self.graph.calls[item].gap = (start - end).min(self.graph.calls[item].gap);
                self.graph.edges.handed_over += 1;
            }
        }
    }

    /// Events between streams: as recorded, else by who ended just before.
    fn waits_between_streams(&mut self) {
        let trace = self.trace;
        let mut recorded: Vec<(usize, Time, usize, Time)> = Vec::new();
        let mut call_at: HashMap<u64, Time> = HashMap::new();
        for event in trace.events() {
            if matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall)
                && let Some(id) = event.correlation()
            {
                call_at.insert(id, self.since(event.start()));
            }
        }
        let streams: HashMap<(i32, i64), usize> = trace
            .streams()
            .filter_map(|track| match track.place() {
                Place::Stream { device, stream } => Some(((device, stream), *self.tracks.get(&track.id())?)),
                Place::Thread { .. } => None,
            })
            .collect();
        for event in trace.events().filter(|event| event.kind() == EventKind::Synchronisation) {
            let (Some(sync), Place::Stream { device, stream }) = (event.synchronisation(), event.place())
            else {
                continue;
            };
            if trace.names().get(sync.what) != "Stream Wait Event" {
                continue;
            }
            let waiting = streams.get(&(device, stream)).copied();
            let source = sync.waits_on_stream.and_then(|stream| streams.get(&(device, stream)).copied());
            let asked = event.correlation().and_then(|id| call_at.get(&id).copied());
            let marked = sync.waits_on_record.and_then(|id| call_at.get(&id).copied());
            if let (Some(waiting), Some(source), Some(asked), Some(marked)) = (waiting, source, asked, marked)
                && waiting != source
            {
                recorded.push((waiting, asked, source, marked));
            }
        }
        let has_recorded = !recorded.is_empty();
        for (waiting, asked, source, marked) in recorded {
            let issued = |graph: &Model, op: WorkId| {
                graph.work[op].call.map_or(graph.work[op].start, |item| graph.calls[item].start)
            };
            let next = self.graph.streams[waiting].partition_point(|op| issued(&self.graph, *op) < asked);
            let last = self.graph.streams[source].partition_point(|op| issued(&self.graph, *op) < marked);
            let (Some(&next), Some(&last)) = (
                self.graph.streams[waiting].get(next),
                last.checked_sub(1).map(|i| &self.graph.streams[source][i]),
            ) else {
                continue;
            };
            if self.graph.work[last].end <= self.graph.work[next].start + EVENT_PASSES {
                self.wait(next, last);
                self.graph.edges.recorded += 1;
            }
        }
        if !has_recorded {
            self.infer_from_wait_calls();
        }
    }

    fn wait(&mut self, op: WorkId, awaited: WorkId) {
        // Nothing waits for what began with it or after it: waits must not go in a circle.
        if self.graph.work[awaited].start >= self.graph.work[op].start {
            return;
        }
        let between = (self.graph.work[op].start - self.graph.work[awaited].end).clamp(0, EVENT_PASSES);
        if !self.graph.work[op].waits.iter().any(|(known, _)| *known == awaited) {
            self.graph.work[op].waits.push((awaited, between));
        }
    }

    /// A call that makes a stream wait says that the next work of its thread waits for another stream. For
    /// which mark in it is not said. Programs wait for their marks in the order in which they set them: where
    /// a step has as many of the one as of the other, they belong together in that order. Else it is what
    /// had ended last by then.
    fn infer_from_wait_calls(&mut self) {
        let waits: Vec<(usize, Time, WorkId, WorkId)> = std::mem::take(&mut self.wait_calls)
            .into_iter()
            .filter_map(|(thread, asked)| {
                let op = self.issued_next(thread, asked)?;
                Some((thread, asked, op, self.ended_last_before(op, asked)?))
            })
            .collect();
        // What was marked: the work given last before, by its stream, step and the call's name.
        let mut marks: HashMap<(usize, usize, NameId), Vec<(Time, WorkId)>> = HashMap::new();
        for (thread, at, name) in std::mem::take(&mut self.mark_calls) {
            if let Some(op) = self.issued_last(thread, at) {
                marks.entry((self.graph.work[op].stream, self.step(at), name)).or_default().push((at, op));
            }
        }
        let mut by_pair: HashMap<(usize, usize, usize), Vec<usize>> = HashMap::new();
        for (i, &(_, asked, op, likely)) in waits.iter().enumerate() {
            let (from, to) = (self.graph.work[likely].stream, self.graph.work[op].stream);
            by_pair.entry((from, to, self.step(asked))).or_default().push(i);
        }
        for ((from, _, step), of_pair) in by_pair {
            let mut fitting = marks.iter().filter(|((stream, of, _), _)| *stream == from && *of == step);
            let marked =
                fitting.find(|(_, marked)| marked.len() == of_pair.len()).map(|(_, marked)| marked.clone());
            for (nth, &i) in of_pair.iter().enumerate() {
                let (_, asked, op, likely) = waits[i];
                let paired = marked.as_ref().map(|marked| marked[nth]).filter(|(at, marked)| {
                    *at <= asked && self.graph.work[*marked].end <= self.graph.work[op].start + EVENT_PASSES
                });
                self.wait(op, paired.map_or(likely, |(_, marked)| marked));
                self.graph.edges.inferred += 1;
            }
        }
    }

    /// The first work that a thread gave the device after a moment.
    fn issued_next(&self, thread: usize, after: Time) -> Option<WorkId> {
        let order = self.graph.threads.get(thread)?;
        let next = order.partition_point(|item| self.graph.calls[*item].start < after);
        order[next..].iter().find_map(|item| self.issues(*item))
    }

    /// The last work that it gave before.
    fn issued_last(&self, thread: usize, before: Time) -> Option<WorkId> {
        let order = self.graph.threads.get(thread)?;
        let next = order.partition_point(|item| self.graph.calls[*item].start < before);
        order[..next].iter().rev().find_map(|item| self.issues(*item))
    }

    fn issues(&self, item: usize) -> Option<WorkId> {
        match &self.graph.calls[item].action {
            HostAction::Issue(ops) => ops.last().copied(),
            HostAction::IssueBlocking(op) => Some(*op),
            _ => None,
        }
    }

    /// Of the other streams of the device: what ended last before this began, and had been issued by then.
    fn ended_last_before(&self, op: WorkId, issued_before: Time) -> Option<WorkId> {
        let graph = &self.graph;
        let (stream, start) = (graph.work[op].stream, graph.work[op].start);
        let device = graph.stream_device[stream];
        let others = (0..graph.streams.len())
            .filter(|other| *other != stream && graph.stream_device[*other] == device);
        let last = others.filter_map(|other| {
            let order = &graph.streams[other];
            let before = order.partition_point(|other| graph.work[*other].end <= start + EVENT_PASSES);
            order[..before]
                .iter()
                .rev()
                .take(64)
                .copied()
                .filter(|other| graph.work[*other].start < start)
                .find(|other| {
                    graph.work[*other].call.is_none_or(|item| graph.calls[item].start < issued_before)
                })
        });
        last.max_by_key(|other| graph.work[*other].end)
    }

    /// What lies between work and all that it is known to wait for.
    fn delays(&mut self) {
        let issued = |graph: &Model, op: WorkId| graph.work[op].call.map(|item| graph.calls[item].start);
        let latencies = (0..self.graph.work.len())
            .filter_map(|op| Some(self.graph.work[op].start - issued(&self.graph, op)?))
            .filter(|latency| *latency >= 0);
        self.graph.latency = latencies.min().unwrap_or(0);
        let latency = self.graph.latency;
        let (mut after_call, mut after_work) = (Vec::new(), Vec::new());
        let mut before: Vec<Option<WorkId>> = vec![None; self.graph.work.len()];
        for stream in &self.graph.streams {
            for pair in stream.windows(2) {
                before[pair[1]] = Some(pair[0]);
            }
        }
        // First those whose cause is plain, to know what is usual.
        for op in 0..self.graph.work.len() {
            let start = self.graph.work[op].start;
            let by_call = issued(&self.graph, op).map(|at| start - at - latency);
            let by_work = before[op].map(|before| start - self.graph.work[before].end);
            match (by_call, by_work) {
                (Some(call), Some(work)) if call < work && call >= 0 => after_call.push(call),
                (Some(call), None) if call >= 0 => after_call.push(call),
                (_, Some(work)) if work >= 0 => after_work.push(work),
                _ => {}
            }
        }
        let middle = |values: &mut Vec<Time>, else_: Time| {
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(else_).min(5 * TURNAROUND)
        };
        let (usual_call, usual_work) =
            (middle(&mut after_call, TURNAROUND), middle(&mut after_work, TURNAROUND));
        for op in 0..self.graph.work.len() {
            let start = self.graph.work[op].start;
            let by_call = issued(&self.graph, op).map(|at| at + latency);
            let by_work = before[op].map(|before| self.graph.work[before].end);
            let by_wait =
                self.graph.work[op].waits.iter().map(|(awaited, _)| self.graph.work[*awaited].end).max();
            let known = by_call.max(by_work).max(by_wait).unwrap_or(0);
            if start - known > UNEXPLAINED
                && let Some(awaited) = self.ended_last_before(op, start)
                && self.graph.work[awaited].end > known
                && start - self.graph.work[awaited].end < CLOSE
            {
                self.wait(op, awaited);
                let between = start - self.graph.work[awaited].end;
                if let Some(last) = self.graph.work[op].waits.last_mut() {
                    last.1 = between;
                }
                self.graph.edges.inferred += 1;
            } else if start - known > UNEXPLAINED && by_call.is_some() {
                self.graph.edges.unexplained += start - known;
            }
            let by_wait = self.graph.work[op]
                .waits
                .iter()
                .map(|(awaited, between)| self.graph.work[*awaited].end + between)
                .max();
            // The latest of these explains the start; the others must not come after it.
            let explained = by_call.max(by_work).max(by_wait).unwrap_or(0);
            let late = (start - explained).max(0);
            let is_calls = by_call == Some(explained);
            let room = |at: Option<Time>| at.map_or(0, |at| (start - at).max(0));
            let of = &mut self.graph.work[op];
            of.after_call =
                if is_calls || by_call.is_none() { late.max(0) } else { room(by_call).min(usual_call) };
            if by_call.is_none() {
                // Work whose call is not in the trace comes when it came.
                of.after_call = if by_work.is_none() && by_wait.is_none() { start } else { 0 };
            }
            of.after_work =
                if !is_calls && by_work == Some(explained) { late } else { room(by_work).min(usual_work) };
            if !is_calls && by_work != Some(explained) {
                for (_, between) in &mut of.waits {
                    *between += late;
                }
            }
        }
    }

    /// What each synchronisation waited for, and what it took beyond that.
    fn host_waits(&mut self) {
        for thread in 0..self.graph.threads.len() {
            for i in 0..self.graph.threads[thread].len() {
                let id = self.graph.threads[thread][i];
                let (start, end) = (self.graph.calls[id].start, self.graph.calls[id].end);
                match self.graph.calls[id].action {
                    HostAction::IssueBlocking(op) => {
                        self.graph.calls[id].cost = (end - self.graph.work[op].end).max(0)
                    }
                    HostAction::Wait { .. } => {
                        let before = i.checked_sub(1).map(|before| self.graph.threads[thread][before]);
                        let (awaited, copy) = self.awaited(id, before);
                        let waited_until = match awaited {
                            Awaited::None => start,
                            Awaited::Op(op) => self.graph.work[op].end,
                            Awaited::Stream(stream) => self.ended_by(stream, start, end),
                            Awaited::Device(device) => (0..self.graph.streams.len())
                                .filter(|stream| self.graph.stream_device[*stream] == device)
                                .map(|stream| self.ended_by(stream, start, end))
                                .max()
                                .unwrap_or(start),
                        };
                        self.graph.calls[id].action = HostAction::Wait { awaited, copy };
                        self.graph.calls[id].cost = (end - waited_until.max(start)).max(0);
                    }
                    _ => {}
                }
            }
        }
        let ends =
            self.graph.calls.iter().map(|item| item.end).chain(self.graph.work.iter().map(|op| op.end));
        self.graph.end = ends.max().unwrap_or(0);
    }

    /// When the work ended that a stream had been given before a call began.
    fn ended_by(&self, stream: usize, start: Time, end: Time) -> Time {
        let graph = &self.graph;
        let order = &graph.streams[stream];
        let upto = order.partition_point(|op| graph.work[*op].end <= end);
        let given = order[..upto].iter().rev().map(|op| &graph.work[*op]);
        let last =
            given.take(MOST_LOOKED_AT).find(|op| op.call.is_none_or(|item| graph.calls[item].start <= start));
        last.map_or(start, |op| op.end)
    }

    fn awaited(&self, wait: usize, before: Option<usize>) -> (Awaited, Option<WorkId>) {
        let graph = &self.graph;
        let event = self.trace.event(self.calls[wait]);
        let (start, end) = (graph.calls[wait].start, graph.calls[wait].end);
        // A wait right behind a copy in the same operator is the copy's own: `.to()` that blocks.
        if let Some(before) = before
            && let Some(op) = match &graph.calls[before].action {
                HostAction::IssueBlocking(op) => Some(*op),
                HostAction::Issue(ops) if ops.len() == 1 && graph.work[ops[0]].kind.bus().is_some() => {
                    Some(ops[0])
                }
                _ => None,
            }
            && self.same_operator(self.calls[before], self.calls[wait])
        {
            return (Awaited::Stream(graph.work[op].stream), Some(op));
        }
        let device = before.and_then(|before| match &graph.calls[before].action {
            HostAction::Issue(ops) => ops.first().map(|op| graph.stream_device[graph.work[*op].stream]),
            HostAction::IssueBlocking(op) => Some(graph.stream_device[graph.work[*op].stream]),
            _ => None,
        });
        let only = graph.stream_device.first().copied();
        if event.name().contains("DeviceSynchronize") || event.name().contains("CtxSynchronize") {
            return (device.or(only).map_or(Awaited::None, Awaited::Device), None);
        }
        // What ended last while it waited.
        let ended = (0..graph.streams.len()).filter_map(|stream| {
            let order = &graph.streams[stream];
            let upto = order.partition_point(|op| graph.work[*op].end <= end);
            let before = |item: usize| (graph.calls[item].start, item) < (start, wait);
            let issued = |op: &WorkId| graph.work[*op].call.is_none_or(before);
            let last = order[..upto].iter().rev().take(64).copied().find(issued)?;
            (graph.work[last].end > start).then_some(last)
        });
        let Some(last) = ended.max_by_key(|op| graph.work[*op].end) else { return (Awaited::None, None) };
        if event.name().contains("StreamSynchronize") {
            (Awaited::Stream(graph.work[last].stream), None)
        } else {
            (Awaited::Op(last), None)
        }
    }

    fn same_operator(&self, copy: EventId, wait: EventId) -> bool {
        let (copy, wait) = (self.trace.event(copy), self.trace.event(wait));
        let track = self.trace.track(copy.track_id());
        let around = |at: Timestamp| {
            track.enclosing(at, |event| event.kind() == EventKind::Operator).map(|event| event.id())
        };
        match (around(copy.start()), around(wait.start())) {
            (Some(a), Some(b)) => a == b,
            // Without operators, by nearness.
            (None, None) => (wait.start() - copy.end()).get() < IDLE_THREAD,
            _ => false,
        }
    }

    /// What work would have taken by itself: copies with the link, kernels with the device.
    fn alone(&mut self, duplex: f64) {
        for device in self.graph.devices() {
            self.alone_on(device, duplex);
        }
    }

    /// Goes through all starts and ends and adds up what each piece of work got done between them.
    fn alone_on(&mut self, device: i32, duplex: f64) {
        let graph = &mut self.graph;
        let mut marks: Vec<(Time, bool, WorkId)> = Vec::new();
        for (id, op) in graph.work.iter().enumerate() {
            let counts = op.kind.is_kernel() || op.kind.bus().is_some();
            if counts && graph.stream_device[op.stream] == device && op.end > op.start {
                marks.extend([(op.start, true, id), (op.end, false, id)]);
            }
        }
        // Ends before starts of the same moment.
        marks.sort_unstable();
        let mut active: Vec<WorkId> = Vec::new();
        let mut done: HashMap<WorkId, f64> = HashMap::new();
        let mut last = 0;
        for (time, starts, id) in marks {
            let count = |wanted: Option<Direction>| {
                active.iter().filter(|op| graph.work[**op].kind.bus() == wanted).count()
            };
            let (up, down) = (count(Some(Direction::HostToDevice)), count(Some(Direction::DeviceToHost)));
            let kernels = count(None);
            for op in &active {
                let share = match graph.work[*op].kind.bus() {
                    Some(Direction::HostToDevice) => rate(up, down, duplex),
                    Some(_) => rate(down, up, duplex),
                    None => 1.0 / kernels as f64,
                };
                *done.entry(*op).or_default() += (time - last) as f64 * share;
            }
            last = time;
            if starts {
                active.push(id);
            } else {
                active.retain(|op| *op != id);
            }
        }
        for (op, alone) in done {
            graph.work[op].alone = alone;
        }
    }
}

/// Names of kernels that keep tensor cores busy.
const MATRIX: [&str; 12] = [
    "gemm",
    "nvjet",
    "cutlass",
    "xmma",
    "wgmma",
    "conv",
    "flash",
    "attention",
    "fmha",
    "mma",
    "_sm80_",
    "sm90_",
];

fn work_of(event: &Event<'_>) -> WorkKind {
    match event.kind() {
        EventKind::Kernel => {
            let name = event.name().to_ascii_lowercase();
            WorkKind::Kernel { heavy: MATRIX.iter().any(|part| name.contains(part)) }
        }
        EventKind::Copy => match event.transfer() {
            // The driver moves managed memory when it sees fit; no change here is about that.
            Some(_) if event.migration().is_some() => WorkKind::Other,
            Some(transfer) => WorkKind::Copy {
                direction: transfer.direction,
                pageable: [transfer.src, transfer.dst].contains(&MemoryKind::Pageable),
                bytes: transfer.bytes.map_or(0, |bytes| bytes.get()),
            },
            None => WorkKind::Other,
        },
        _ => WorkKind::Other,
    }
}
