//! Which nodes does the graph have? Device work per stream and calls per thread, joined by correlation id; then each pass adds
//! its edges.

use std::collections::BTreeMap;

use busbound_trace::{Call, Event, EventKind, MemoryKind, Place, Timestamp};

use super::builder::Builder;
use super::{
    Activity, Awaited, CallNode, Graph, HostAction, Stream, Thread, WorkId, WorkKind, WorkNode, host_waits,
    shapes_streams, stream_waits, thread_waits, timing,
};

pub(super) fn build(activity: Activity<'_>, starts: &[Timestamp]) -> Graph {
    let mut builder = Builder {
        activity,
        graph: Graph::default(),
        starts: starts.iter().map(|at| at.as_nanos()).collect(),
        streams: BTreeMap::new(),
        syncs: Vec::new(),
        wait_calls: Vec::new(),
        mark_calls: Vec::new(),
    };
    let issued = builder.add_work();
    builder.add_calls(&issued);
    thread_waits::link_threads(&mut builder);
    stream_waits::between_streams(&mut builder);
    timing::explain_late_starts(&mut builder);
    host_waits::resolve(&mut builder);
    builder.graph
}

impl Builder<'_> {
    /// Adds device work; returns pairs of a call's event number and the work that it issued.
    fn add_work(&mut self) -> Vec<(u32, WorkId)> {
        let trace = self.activity.trace;
        let mut issued: Vec<(u32, WorkId)> = Vec::new();
        for track in trace.streams() {
            let Place::Stream { device, stream: number } = track.place() else { continue };
            let stream = self.graph.streams.len();
            self.streams.insert((device, number), stream);
            let mut order = Vec::new();
            for event in track.events() {
                if event.kind() == EventKind::Synchronization {
                    self.syncs.push(event.id());
                }
                if !event.kind().is_gpu_work() {
                    continue;
                }
                let id = self.graph.work.len();
                self.graph.work.push(WorkNode {
                    event: event.id(),
                    kind: self.kind_of(&event),
                    stream,
                    position: order.len(),
                    start: event.start().as_nanos(),
                    end: event.end().as_nanos(),
                    call: None,
                    waits: Vec::new(),
                    unexplained: 0,
                });
                if let Some(call) = self.activity.host.call_behind(&event) {
                    issued.push((call.id().index() as u32, id));
                }
                order.push(id);
            }
            self.graph.streams.push(Stream { track: track.id(), device, work: order });
        }
        self.syncs.sort_unstable();
        issued.sort_unstable();
        issued
    }

    fn kind_of(&self, event: &Event<'_>) -> WorkKind {
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
            EventKind::Kernel => WorkKind::Kernel { heavy: is_matrix_kernel(event.name()) },
            _ => WorkKind::Memset,
        }
    }

    /// Adds calls that issue work or wait, per thread.
    fn add_calls(&mut self, issued: &[(u32, WorkId)]) {
        let trace = self.activity.trace;
        for track in trace.threads() {
            let thread = self.graph.threads.len();
            let mut order = Vec::new();
            for event in track.events() {
                let kind = self.activity.host.call_kind(&event);
                if !matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall) {
                    continue;
                }
                if shapes_streams(kind) {
                    self.note_event_call(thread, &event, kind);
                    continue;
                }
                let Some(action) = self.action_of(&event, kind, issued) else { continue };
                let id = self.graph.calls.len();
                for &work in action.issued() {
                    self.graph.work[work].call = Some(id);
                }
                self.graph.calls.push(CallNode {
                    event: event.id(),
                    thread,
                    position: order.len(),
                    start: event.start().as_nanos(),
                    end: event.end().as_nanos(),
                    action,
                    released_by: None,
                    after: None,
                });
                order.push(id);
            }
            self.graph.threads.push(Thread { track: track.id(), calls: order });
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
    fn action_of(&self, event: &Event<'_>, kind: Call, issued: &[(u32, WorkId)]) -> Option<HostAction> {
        if kind == Call::Synchronize {
            return Some(HostAction::Wait { awaited: Awaited::None, copy: None });
        }
        let number = event.id().index() as u32;
        let first = issued.partition_point(|(call, _)| *call < number);
        let mine = issued[first..].iter().take_while(|(call, _)| *call == number);
        let work: Vec<WorkId> = mine.map(|(_, work)| *work).collect();
        match work[..] {
            [] => None,
            [copy] if kind == Call::Copy && self.blocks(copy, event) => Some(HostAction::IssueBlocking(copy)),
            _ => Some(HostAction::Issue(work)),
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

/// Substrings of the names of kernels that keep tensor cores busy.
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

/// Whether a kernel does matrix work, by its name.
pub fn is_matrix_kernel(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    MATRIX.iter().any(|part| name.contains(part))
}
