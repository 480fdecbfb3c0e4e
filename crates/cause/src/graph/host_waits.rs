//! What did each host sync wait for, and which work let it return?

use std::collections::BTreeMap;

use busbound_trace::{Event, EventId, EventKind, Place, SyncKind};

use super::builder::Builder;
use super::{Awaited, CallAction, CallId, Graph, HostWait, Rule, Wait, WaitId, WorkId};
use crate::Time;
use crate::thresholds::{SEARCH_DEPTH, SHORT_SEARCH_DEPTH, WAIT_FOLLOWS_COPY};

/// What the profiler recorded about a call that waits.
#[derive(Debug, Clone, Copy)]
enum Recorded {
    /// Waits for the work that was issued to a stream before `until`.
    Stream {
        stream: usize,
        until: Time,
    },
    Device(i32),
}

pub(super) fn resolve(builder: &mut Builder<'_>) {
    let recorded = recorded(builder);
    for call in 0..builder.graph.calls.len() {
        match builder.graph.calls[call].action {
            CallAction::Wait(WaitId(wait)) => {
                let (awaited, copy, rule) = awaited(builder, call, &recorded);
                let on = last_awaited(&builder.graph, call, awaited, &recorded);
                let released_by = on.map(|on| Wait::new(on, rule));
                builder.graph.awaited[wait as usize] = HostWait { awaited, copy, released_by };
            }
            CallAction::IssueBlocking { .. }
            | CallAction::Issue { .. }
            | CallAction::IssueSeveral { .. }
            | CallAction::EndStep => {}
        }
    }
}

type ByCall = BTreeMap<EventId, Recorded>;

fn recorded(builder: &Builder<'_>) -> ByCall {
    let (trace, host) = (builder.activity.trace, builder.activity.host);
    let streams = &builder.streams;
    let of_event = |event: Event<'_>| {
        let (sync, Place::Stream { device, stream }) = (event.synchronization()?, event.place()) else {
            return None;
        };
        let call = host.call_with(event.correlation()?)?;
        let source = sync.waits_on_stream.and_then(|stream| streams.get(&(device, stream)).copied());
        let marked =
            sync.waits_on_record.and_then(|id| host.call_with(id)).map(|call| call.start().as_nanos());
        let wait = match sync.kind {
            SyncKind::StreamWaitEvent => return None,
            // If the event record is not in the trace, the wait is inferred like any other.
            SyncKind::EventSync => Recorded::Stream { stream: source?, until: marked? },
            SyncKind::StreamSync => Recorded::Stream {
                stream: source.or_else(|| streams.get(&(device, stream)).copied())?,
                until: call.start().as_nanos(),
            },
            SyncKind::ContextSync | SyncKind::Unknown => Recorded::Device(device),
        };
        Some((call.id(), wait))
    };
    builder.syncs.iter().filter_map(|id| of_event(trace.event(*id))).collect()
}

/// What a call waited for, the copy that the wait belongs to, and the rule behind it.
fn awaited(builder: &Builder<'_>, call: CallId, recorded: &ByCall) -> (Awaited, Option<WorkId>, Rule) {
    let graph = &builder.graph;
    let copy = copy_before(builder, call);
    match recorded.get(&graph.calls[call].event) {
        Some(Recorded::Stream { stream, until }) if *until >= graph.calls[call].start => {
            return (Awaited::Stream(*stream), copy, Rule::RecordedHostWait);
        }
        Some(Recorded::Stream { stream, until }) => {
            let work = graph.given_before(*stream, *until, graph.calls[call].end, SEARCH_DEPTH);
            return (work.map_or(Awaited::None, Awaited::Work), copy, Rule::RecordedHostWait);
        }
        Some(Recorded::Device(device)) => {
            return (Awaited::Device(*device), copy, Rule::RecordedHostWait);
        }
        None => {}
    }
    if let Some(copy) = copy {
        return (Awaited::Stream(graph.stream_of(copy)), Some(copy), Rule::CopyOperator);
    }
    let name = builder.activity.trace.event(graph.calls[call].event).name();
    if name.contains("DeviceSynchronize") || name.contains("CtxSynchronize") {
        let device = device_before(graph, call).or_else(|| graph.streams.first().map(|stream| stream.device));
        return (device.map_or(Awaited::None, Awaited::Device), None, Rule::DeviceSync);
    }
    let is_stream = name.contains("StreamSynchronize");
    let awaited = match ended_while_waiting(graph, call) {
        // Nothing was left to wait for, but there may be once the work takes another time.
        None if is_stream => stream_before(graph, call).map_or(Awaited::None, Awaited::Stream),
        None => Awaited::None,
        Some(last) if is_stream => Awaited::Stream(graph.stream_of(last)),
        Some(last) => Awaited::Work(last),
    };
    (awaited, None, Rule::EndedDuringWait)
}

/// The work whose end let the call return; `None` if it ended before the call started.
fn last_awaited(graph: &Graph, call: CallId, awaited: Awaited, recorded: &ByCall) -> Option<WorkId> {
    let node = &graph.calls[call];
    let until = match recorded.get(&node.event) {
        Some(Recorded::Stream { until, .. }) => *until,
        _ => node.start,
    };
    let last = match awaited {
        Awaited::None => None,
        Awaited::Work(work) => Some(work),
        Awaited::Stream(stream) => graph.given_before(stream, until + 1, node.end, SEARCH_DEPTH),
        Awaited::Device(device) => {
            graph.last_ended(Some(device), node.end, SEARCH_DEPTH, graph.is_issued_before(until + 1))
        }
    };
    last.filter(|work| graph.work[*work].end > node.start)
}

/// The copy right before the wait in the same operator: a blocking `.to()`.
fn copy_before(builder: &Builder<'_>, call: CallId) -> Option<WorkId> {
    let graph = &builder.graph;
    let node = &graph.calls[call];
    let before = graph.call_before(call)?;
    let copy = match graph.calls[before].action {
        CallAction::IssueBlocking { copy, .. } => copy.get(),
        CallAction::Issue { work, .. } if graph.work[work.get()].kind.bus().is_some() => work.get(),
        _ => return None,
    };
    let (copying, waiting) = (&graph.calls[before], node);
    let track = builder.activity.trace.track(graph.threads[graph.thread_of(call)].track);
    let around = |call: EventId| {
        let at = builder.activity.trace.event(call).start();
        track.enclosing(at, |event| event.kind() == EventKind::Operator).map(|event| event.id())
    };
    let same_operator = match (around(copying.event), around(waiting.event)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => waiting.start - copying.end < WAIT_FOLLOWS_COPY,
        _ => false,
    };
    same_operator.then_some(copy)
}

/// The device that the previous call issued work to.
fn device_before(graph: &Graph, call: CallId) -> Option<i32> {
    graph.issued_by(graph.call_before(call)?).next().map(|work| graph.device_of(work))
}

/// The stream that the previous call issued work to, if it was idle when this call returned.
fn stream_before(graph: &Graph, call: CallId) -> Option<usize> {
    let last = graph.issued_by(graph.call_before(call)?).next_back()?;
    (graph.work[last].end <= graph.calls[call].end).then(|| graph.stream_of(last))
}

/// The previously issued work that ended last while the host waited.
fn ended_while_waiting(graph: &Graph, call: CallId) -> Option<WorkId> {
    let node = &graph.calls[call];
    let issued = |work: WorkId| {
        graph.work[work].call().is_none_or(|other| (graph.calls[other].start, other) < (node.start, call))
    };
    let last = graph.last_ended(None, node.end, SHORT_SEARCH_DEPTH, issued)?;
    (graph.work[last].end > node.start).then_some(last)
}
