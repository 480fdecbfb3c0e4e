//! Which nodes does the graph have? Device work per stream and calls per thread, joined by correlation id; then each pass adds
//! its edges.

use std::collections::BTreeMap;

use busbound_trace::{
    Call, Direction, Event, EventId, EventKind, Interval, MemoryKind, Place, Timestamp, Track, TrackId,
};

use super::builder::Builder;
use super::{
    Activity, Awaited, CallAction, CallId, CallNode, Graph, HostTime, HostWait, NodeId, Part, SeveralId,
    StepMarks, Stream, Thread, WaitId, Waits, WorkId, WorkKind, WorkNode, host_waits, shapes_streams,
    silent_waits, stream_waits, thread_waits, timing,
};
use crate::Time;
use crate::few::Few;
use crate::host::{Host, HostUse};
use crate::host_memory::HostMemory;
use crate::matrix::is_matrix_kernel;
use crate::rocm::{has_copies_of_others, is_rocm};
use crate::search::first_after_near;

/// A call, and work that it issued.
type Issued = (EventId, NodeId);

pub(super) fn build(activity: Activity<'_>, steps: &StepMarks) -> Graph {
    let mut builder = Builder {
        activity,
        graph: Graph::default(),
        starts: steps.starts.iter().map(|at| at.as_nanos()).collect(),
        streams: BTreeMap::new(),
        syncs: Vec::new(),
        wait_calls: Vec::new(),
        mark_calls: Vec::new(),
        is_matrix: vec![None; activity.trace.names().len()],
        near: 0,
        host_memory: HostMemory::of(activity.trace),
    };
    let issued = builder.add_work();
    builder.add_calls(&issued, steps);
    drop(issued);
    builder.graph.calls.shrink_to_fit();
    thread_waits::link_threads(&mut builder);
    stream_waits::between_streams(&mut builder);
    timing::explain_late_starts(&mut builder);
    host_waits::resolve(&mut builder);
    silent_waits::find(&mut builder);
    builder.graph.host_memory = builder.host_memory;
    builder.graph
}

impl Builder<'_> {
    /// Adds device work; returns the calls that issued it, in order.
    fn add_work(&mut self) -> Vec<Issued> {
        let trace = self.activity.trace;
        let work = |track: Track<'_>| track.events().filter(|event| event.kind().is_gpu_work()).count();
        let count = trace.streams().map(work).sum();
        self.graph.work.reserve_exact(count);
        let mut issued: Vec<Issued> = Vec::with_capacity(count);
        let is_rocm = is_rocm(trace);
        for track in trace.streams() {
            let Place::Stream { device, stream: number } = track.place() else { continue };
            self.streams.insert((device, number), self.graph.streams.len());
            let is_sync = |event: &Event<'_>| event.kind() == EventKind::Synchronization;
            self.syncs.extend(track.events().filter(is_sync).map(|event| event.id()));
            if is_rocm && has_copies_of_others(track) {
                let is_copy = |event: &Event<'_>| event.kind() == EventKind::Copy;
                self.add_stream(track, device, &mut issued, |event| !is_copy(event));
                self.add_stream(track, device, &mut issued, is_copy);
            } else {
                self.add_stream(track, device, &mut issued, |_| true);
            }
        }
        self.syncs.sort_unstable();
        issued.sort_unstable_by_key(|(call, work)| (*call, work.get()));
        issued
    }

    /// Work of one track that runs in order.
    fn add_stream(
        &mut self,
        track: Track<'_>,
        device: i32,
        issued: &mut Vec<Issued>,
        is_part: impl Fn(&Event<'_>) -> bool,
    ) {
        let first = self.graph.work.len();
        for event in track.events().filter(|event| event.kind().is_gpu_work() && is_part(event)) {
            let id = self.graph.work.len();
            let kind = self.kind_of(&event);
            self.graph.work.push(WorkNode {
                event: event.id(),
                kind,
                start: event.start().as_nanos(),
                end: event.end().as_nanos(),
                waits: Waits::None,
                call: None,
            });
            if let Some(call) = self.activity.host.call_behind(&event) {
                issued.push((call.id(), NodeId::of(id)));
            }
        }
        let work = first..self.graph.work.len();
        self.graph.streams.push(Stream { track: track.id(), device, work });
    }

    fn kind_of(&mut self, event: &Event<'_>) -> WorkKind {
        match event.kind() {
            EventKind::Copy => match event.transfer() {
                // The driver migrates managed memory on demand; no call issued it.
                Some(transfer) if event.migration().is_none() => WorkKind::Copy {
                    direction: transfer.direction,
                    pageable: [transfer.src, transfer.dst].contains(&MemoryKind::Pageable),
                    bytes: transfer.bytes.map_or(0, |bytes| bytes.get()),
                },
                _ => WorkKind::OtherCopy,
            },
            EventKind::Kernel if self.activity.collectives.contains(event.name_id()) => WorkKind::Collective,
            EventKind::Kernel => {
                let is_matrix = &mut self.is_matrix[event.name_id().index()];
                WorkKind::Kernel { heavy: *is_matrix.get_or_insert_with(|| is_matrix_kernel(event.name())) }
            }
            _ => WorkKind::Memset,
        }
    }

    /// Adds calls that issue work or wait, per thread, and the ends of steps.
    fn add_calls(&mut self, issued: &[Issued], steps: &StepMarks) {
        let waits = self.activity.host.synchronizations().len();
        self.graph.calls.reserve_exact(issued.len() + waits + steps.starts.len());
        for track in self.activity.trace.threads() {
            // A thread that only marks steps does not say what it waits for.
            let launches = self.activity.host.thread(track.id()).is_some_and(|times| times.launches);
            let marks = match &steps.ends {
                Some((thread, ends)) if *thread == track.id() && launches => ends.as_slice(),
                _ => &[],
            };
            let mut nodes = ThreadNodes::new(&self.graph, track.id(), marks);
            for event in track.events() {
                nodes.end_steps(self, event.start());
                nodes.since.count(event.kind());
                if !matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall) {
                    continue;
                }
                let kind = self.activity.host.call_kind(&event);
                if shapes_streams(kind) {
                    self.note_event_call(nodes.thread, &event, kind);
                    continue;
                }
                let Some(action) = self.action_of(&event, kind, issued) else { continue };
                nodes.add(self, event.id(), event.interval(), action);
            }
            nodes.end_steps(self, Timestamp::from_nanos(Time::MAX));
            let calls = nodes.first..self.graph.calls.len();
            self.graph.threads.push(Thread { track: track.id(), calls });
        }
    }

    fn note_event_call(&mut self, thread: usize, event: &Event<'_>, kind: Call) {
        let at = event.start().as_nanos();
        match kind {
            Call::WaitEvent => self.wait_calls.push((thread, at)),
            _ => self.mark_calls.push((thread, at, event.name_id())),
        }
    }

    /// `None` for calls that neither issue work nor wait.
    fn action_of(&mut self, event: &Event<'_>, kind: Call, issued: &[Issued]) -> Option<CallAction> {
        if kind == Call::Synchronize {
            let wait = WaitId(self.graph.awaited.len() as u32);
            self.graph.awaited.push(HostWait { awaited: Awaited::None, copy: None, released_by: None });
            return Some(CallAction::Wait(wait));
        }
        self.near = first_after_near(&(0..issued.len()), self.near, |place| issued[place].0 < event.id());
        let rest = &issued[self.near..];
        let mine = rest.iter().take_while(|(call, _)| *call == event.id()).count();
        match rest[..mine] {
            [] => None,
            [(_, copy)] if kind == Call::Copy && self.blocks(copy.get(), event) => {
                let is_synchronous = !event.name().contains("Async");
                let is_unpacking = is_unpacking(self, copy.get(), event);
                Some(CallAction::IssueBlocking { copy, is_synchronous, is_unpacking })
            }
            [(_, work)] => {
                Some(CallAction::Issue { work, is_unpacking: is_unpacking(self, work.get(), event) })
            }
            ref all => {
                let is_unpacking = all.iter().any(|(_, copy)| is_unpacking(self, copy.get(), event));
                let work = SeveralId(self.graph.several.len() as u32);
                self.graph.several.push(Part::next(self.graph.issued.len(), all.len()));
                self.graph.issued.extend(all.iter().map(|(_, work)| *work));
                Some(CallAction::IssueSeveral { work, is_unpacking })
            }
        }
    }

    /// Whether a copy call waited for its copy. A call that copies from pageable memory may return just before the copy ends.
    fn blocks(&self, copy: WorkId, call: &Event<'_>) -> bool {
        let work = &self.graph.work[copy];
        let (start, end) = (call.start().as_nanos(), call.end().as_nanos());
        let staged =
            matches!(work.kind, WorkKind::Copy { pageable: true, .. }) && end > work.start.midpoint(work.end);
        work.end > start && (work.end <= end || staged)
    }
}

/// The nodes of one thread, in order.
struct ThreadNodes<'s> {
    thread: usize,
    track: TrackId,
    /// Ends of steps that are not nodes yet.
    marks: &'s [(Timestamp, EventId)],
    first: CallId,
    /// When the last node ended.
    ended: Option<Timestamp>,
    /// What was recorded since.
    since: HostTime,
}

impl<'s> ThreadNodes<'s> {
    fn new(graph: &Graph, track: TrackId, marks: &'s [(Timestamp, EventId)]) -> Self {
        let (thread, first) = (graph.threads.len(), graph.calls.len());
        Self { thread, track, marks, first, ended: None, since: HostTime::default() }
    }

    /// Adds the ends of the steps that end by a given time.
    fn end_steps(&mut self, builder: &mut Builder<'_>, until: Timestamp) {
        while let Some((&(at, annotation), rest)) =
            self.marks.split_first().filter(|((at, _), _)| *at <= until)
        {
            self.marks = rest;
            self.add(builder, annotation, Interval::new(at, at), CallAction::EndStep);
        }
    }

    fn add(&mut self, builder: &mut Builder<'_>, event: EventId, interval: Interval, action: CallAction) {
        let HostTime { operators, calls, frames, .. } = std::mem::take(&mut self.since);
        builder.graph.calls.push(CallNode {
            event,
            start: interval.start.as_nanos(),
            end: interval.end.as_nanos(),
            action,
            uses: self.uses_until(builder.activity.host, interval.start),
            operators,
            calls,
            frames,
        });
        self.ended = self.ended.max(Some(interval.end));
        let graph = &mut builder.graph;
        let id = graph.calls.len() - 1;
        for work in graph.issued_by(id).collect::<Few<_>>().iter() {
            graph.work[*work].call = Some(NodeId::of(id));
        }
    }

    /// What the thread did from its last node until now.
    fn uses_until(&self, host: &Host<'_>, until: Timestamp) -> Few<(HostUse, Time)> {
        let Some(from) = self.ended.filter(|from| *from < until) else { return Few::default() };
        let between = Interval::new(from, until);
        if host.is_launching(self.track, between) {
            return Few::one((HostUse::Launching, between.length().get()));
        }
        host.time_by_use(self.track, between)
    }
}

/// Whether an H2D copy is issued by a node of autograd itself, as hooks for saved tensors do. Nodes that recompute a
/// forward pass run modules, whose copies are their own.
fn is_unpacking(builder: &Builder<'_>, copy: WorkId, call: &Event<'_>) -> bool {
    const COPIES: [&str; 3] = ["aten::to", "aten::_to_copy", "aten::copy_"];
    if builder.graph.work[copy].kind.bus() != Some(Direction::HostToDevice) {
        return false;
    }
    let trace = builder.activity.trace;
    let outer = trace.track(call.track_id()).enclosing(call.start(), |event| {
        event.kind() == EventKind::Operator && !COPIES.contains(&event.name())
    });
    outer.is_some_and(|node| is_autograd_node(node.name()))
}

fn is_autograd_node(name: &str) -> bool {
    let name = name.strip_prefix("autograd::engine::evaluate_function: ").unwrap_or(name);
    let node = name.trim_end_matches(|c: char| c.is_ascii_digit());
    node.ends_with("Backward") && !node.starts_with("Checkpoint")
}

impl HostTime {
    pub(crate) fn count(&mut self, kind: EventKind) {
        match kind {
            EventKind::Operator => self.operators += 1,
            EventKind::RuntimeCall | EventKind::DriverCall => self.calls += 1,
            EventKind::PythonFrame => self.frames += 1,
            _ => {}
        }
    }
}
