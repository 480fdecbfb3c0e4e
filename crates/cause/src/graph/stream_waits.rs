//! Which stream waited for which? Recorded if possible, else inferred from the calls that record events and wait for them.

use std::collections::BTreeMap;

use busbound_trace::{NameId, Place, SyncKind};

use super::builder::Builder;
use super::{Rule, WorkId};
use crate::Time;
use crate::search::first_after;
use crate::thresholds::{EVENT_PASSES, SHORT_SEARCH_DEPTH};

/// A wait that the profiler recorded in full.
struct Recorded {
    waiting: usize,
    /// When the host requested the wait.
    asked: Time,
    source: usize,
    /// When the host recorded the event on the source stream.
    marked: Time,
}

pub(super) fn between_streams(builder: &mut Builder<'_>) {
    let recorded = recorded(builder);
    builder.graph.records_waits = !recorded.is_empty();
    if recorded.is_empty() {
        return infer_from_calls(builder);
    }
    for wait in recorded {
        let graph = &builder.graph;
        let issued = |work: WorkId| graph.issued_at(work).unwrap_or(graph.work[work].start);
        let (waiting, source) = (&graph.streams[wait.waiting].work, &graph.streams[wait.source].work);
        let next = first_after(waiting, |work| issued(work) < wait.asked);
        let after = first_after(source, |work| issued(work) < wait.marked);
        if !waiting.contains(&next) || after == source.start {
            continue;
        }
        let last = after - 1;
        if graph.work[last].end <= graph.work[next].start + EVENT_PASSES {
            builder.graph.add_wait(next, last, Rule::RecordedStreamWait);
        }
    }
}

/// Waits between two different streams whose source and event record are both known.
fn recorded(builder: &Builder<'_>) -> Vec<Recorded> {
    let (trace, host) = (builder.activity.trace, builder.activity.host);
    let streams = &builder.streams;
    let syncs = builder.syncs.iter().map(|id| trace.event(*id));
    let waits = syncs.filter_map(|event| {
        let (sync, Place::Stream { device, stream }) = (event.synchronization()?, event.place()) else {
            return None;
        };
        if sync.kind != SyncKind::StreamWaitEvent {
            return None;
        }
        let called_at = |id: u64| host.call_with(id).map(|call| call.start().as_nanos());
        let wait = Recorded {
            waiting: *streams.get(&(device, stream))?,
            asked: called_at(event.correlation()?)?,
            source: *streams.get(&(device, sync.waits_on_stream?))?,
            marked: called_at(sync.waits_on_record?)?,
        };
        (wait.waiting != wait.source).then_some(wait)
    });
    waits.collect()
}

/// A call that makes a stream wait.
struct Asked {
    at: Time,
    /// The work that waits.
    work: WorkId,
    /// The work on another stream that ended last before it.
    likely: WorkId,
}

/// Events recorded on a stream in one step by calls with one name, in order: the time, and the work before.
type Marks = BTreeMap<(usize, usize, NameId), Vec<(Time, WorkId)>>;

/// A call that makes a stream wait shows that the next work of its thread waits for another stream, but not for which event.
/// Programs wait for events in the order in which they record them: if a step has as many records as waits, they are paired in
/// that order. Otherwise the source is the work that ended last before the wait.
fn infer_from_calls(builder: &mut Builder<'_>) {
    let asked: Vec<Asked> = std::mem::take(&mut builder.wait_calls)
        .into_iter()
        .filter_map(|(thread, at)| {
            let work = builder.issued_next(thread, at)?;
            Some(Asked { at, work, likely: ended_last_before(builder, work, at)? })
        })
        .collect();
    let marks = marks(builder);
    let mut by_pair: BTreeMap<(usize, usize, usize), Vec<&Asked>> = BTreeMap::new();
    for one in &asked {
        let (from, to) = (builder.graph.stream_of(one.likely), builder.graph.stream_of(one.work));
        by_pair.entry((from, to, builder.step(one.at))).or_default().push(one);
    }
    for ((from, _, step), waits) in by_pair {
        let fitting = marks
            .range((from, step, NameId::EMPTY)..)
            .take_while(|((stream, of, _), _)| (*stream, *of) == (from, step))
            .map(|(_, marked)| marked)
            .find(|marked| marked.len() == waits.len());
        for (nth, wait) in waits.into_iter().enumerate() {
            let paired = fitting.map(|marked| marked[nth]).filter(|(at, marked)| {
                let start = builder.graph.work[wait.work].start;
                *at <= wait.at && builder.graph.work[*marked].end <= start + EVENT_PASSES
            });
            match paired {
                Some((_, marked)) => builder.graph.add_wait(wait.work, marked, Rule::PairedEvents),
                None => builder.graph.add_wait(wait.work, wait.likely, Rule::EndedBeforeWait),
            };
        }
    }
}

fn marks(builder: &mut Builder<'_>) -> Marks {
    let mut marks = Marks::new();
    for (thread, at, name) in std::mem::take(&mut builder.mark_calls) {
        if let Some(work) = builder.issued_last(thread, at) {
            let key = (builder.graph.stream_of(work), builder.step(at), name);
            marks.entry(key).or_default().push((at, work));
        }
    }
    marks
}

/// On the other streams of the device: the work that ended last before this work started, and was issued by then.
pub(super) fn ended_last_before(builder: &Builder<'_>, work: WorkId, issued_before: Time) -> Option<WorkId> {
    let graph = &builder.graph;
    let (stream, start) = (&graph.streams[graph.stream_of(work)], graph.work[work].start);
    let is_issued = graph.is_issued_before(issued_before);
    graph.last_ended(Some(stream.device), start + EVENT_PASSES, SHORT_SEARCH_DEPTH, |other| {
        !stream.work.contains(&other) && graph.work[other].start < start && is_issued(other)
    })
}
