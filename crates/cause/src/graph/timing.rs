//! What did work wait for if it started later than its known edges explain?

use super::builder::Builder;
use super::stream_waits::ended_last_before;
use super::{Graph, NodeId, Rule, WorkId, WorkKind};
use crate::Time;
use crate::thresholds::{SOURCE_ENDED_WITHIN, UNEXPLAINED_START, USUAL_LATENCY};

pub(super) fn explain_late_starts(builder: &mut Builder<'_>) {
    let graph = &builder.graph;
    let latencies =
        (0..graph.work.len()).filter_map(|work| Some(graph.work[work].start - graph.issued_at(work)?));
    builder.graph.latency = latencies.filter(|latency| *latency >= 0).min().unwrap_or(0).min(USUAL_LATENCY);
    for work in 0..builder.graph.work.len() {
        let start = builder.graph.work[work].start;
        let Some(known) = known_by(builder, work).filter(|known| start - known > UNEXPLAINED_START) else {
            continue;
        };
        if is_being_staged(&builder.graph, work) {
            continue;
        }
        let source = ended_last_before(builder, work, start).filter(|source| {
            let ended = builder.graph.work[*source].end;
            ended > known && start - ended < SOURCE_ENDED_WITHIN
        });
        let explained =
            source.is_some_and(|source| builder.graph.add_wait(work, source, Rule::EndedJustBefore));
        if !explained && builder.graph.work[work].call().is_some() {
            builder.graph.unexplained.push((NodeId::of(work), start - known));
        }
    }
}

/// Whether a copy starts while its call still stages pageable memory: that is what it waited for.
fn is_being_staged(graph: &Graph, work: WorkId) -> bool {
    let node = &graph.work[work];
    matches!(node.kind, WorkKind::Copy { pageable: true, .. })
        && node.call().is_some_and(|call| graph.calls[call].end >= node.start)
}

/// When the last known edge was satisfied; `None` for work without known predecessors.
fn known_by(builder: &Builder<'_>, work: WorkId) -> Option<Time> {
    let graph = &builder.graph;
    let by_call = graph.issued_at(work).map(|at| at + graph.latency);
    let by_work = graph.before(work).map(|before| graph.work[before].end);
    let by_wait = graph.waits_of(work).iter().map(|wait| graph.work[wait.on()].end).max();
    by_call.max(by_work).max(by_wait)
}
