//! Did a thread wait for the device without a record of it?
//!
//! A profiler that records no synchronization, or a program that waits in its own way, leaves a long stretch without any event on
//! the thread while the device works. Host work that is as long is possible, but it costs nothing while the device is busy.

use std::cell::OnceCell;

use busbound_trace::IntervalSet;

use super::builder::Builder;
use super::{CallId, Graph, NodeId, WorkId};
use crate::host::HostUse;
use crate::thresholds::{BUSY_MEANWHILE, HOST_STRETCH, SEARCH_DEPTH, SILENT_SHARE};
use crate::{Time, interval};

pub(super) fn find(builder: &mut Builder<'_>) {
    // Most traces have no silent time.
    let busy = OnceCell::new();
    for call in 0..builder.graph.calls.len() {
        let Some(work) = awaited(builder, call, &busy) else { continue };
        let ended = builder.graph.work[work].end;
        let node = &mut builder.graph.calls[call];
        // Only what comes after the work is the host's own time.
        let mut since = node.since();
        since.set_total((node.start - ended).max(0));
        node.uses = since.uses;
        builder.graph.after_work.push((NodeId::of(call), NodeId::of(work)));
    }
}

fn times_of_work(graph: &Graph) -> IntervalSet {
    IntervalSet::from_unsorted(graph.work.iter().map(|work| interval(work.start, work.end)))
}

/// The work that ended last before the call, if nothing is recorded on the thread meanwhile and the device was busy.
fn awaited(builder: &Builder<'_>, call: CallId, busy: &OnceCell<IntervalSet>) -> Option<WorkId> {
    let graph = &builder.graph;
    let node = &graph.calls[call];
    let gap = node.uses.iter().map(|(_, time)| time).sum::<Time>();
    if gap < HOST_STRETCH || graph.after(call).is_some() {
        return None;
    }
    let silent: Time =
        node.uses.iter().filter(|(what, _)| *what == HostUse::Python).map(|(_, time)| time).sum();
    // Python frames show what the thread did.
    if silent as f64 <= SILENT_SHARE * gap as f64 || node.frames > 0 {
        return None;
    }
    let window = interval(node.start - gap, node.start);
    let worked = busy.get_or_init(|| times_of_work(graph)).length_within(window).get();
    if worked as f64 <= BUSY_MEANWHILE * gap as f64 {
        return None;
    }
    let issued = graph.is_issued_before(node.start - gap + 1);
    let ended = graph.last_ended(None, node.start, SEARCH_DEPTH, issued);
    ended.filter(|work| graph.work[*work].end > node.start - gap)
}
