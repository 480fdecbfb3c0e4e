//! Did a thread wait for the device without a record of it?
//!
//! A profiler that records no synchronization, or a program that waits in its own way, leaves a long stretch without any event on
//! the thread while the device works. Host work that is as long is possible, but it costs nothing while the device is busy.

use busbound_trace::IntervalSet;

use super::builder::Builder;
use super::{CallId, NodeId, WorkId};
use crate::host::HostUse;
use crate::thresholds::{BUSY_MEANWHILE, HOST_STRETCH, SEARCH_DEPTH, SILENT_SHARE};
use crate::{Time, interval};

pub(super) fn find(builder: &mut Builder<'_>) {
    let busy =
        IntervalSet::from_unsorted(builder.graph.work.iter().map(|work| interval(work.start, work.end)));
    for call in 0..builder.graph.calls.len() {
        let Some(work) = awaited(builder, call, &busy) else { continue };
        let ended = builder.graph.work[work].end;
        let node = &mut builder.graph.calls[call];
        // Only what comes after the work is the host's own time.
        node.since.set_total((node.start - ended).max(0));
        builder.graph.after_work.push((NodeId::of(call), NodeId::of(work)));
    }
}

/// The work that ended last before the call, if nothing is recorded on the thread meanwhile and the device was busy.
fn awaited(builder: &Builder<'_>, call: CallId, busy: &IntervalSet) -> Option<WorkId> {
    let graph = &builder.graph;
    let node = &graph.calls[call];
    let gap = node.since.total();
    if gap < HOST_STRETCH || graph.after(call).is_some() {
        return None;
    }
    let silent: Time =
        node.since.uses.iter().filter(|(what, _)| *what == HostUse::Python).map(|(_, time)| time).sum();
    let window = interval(node.start - gap, node.start);
    let worked = busy.length_within(window).get();
    let is_silent = silent as f64 > SILENT_SHARE * gap as f64 && worked as f64 > BUSY_MEANWHILE * gap as f64;
    // Python frames show what the thread did.
    if !is_silent || node.since.frames > 0 {
        return None;
    }
    let issued = graph.is_issued_before(node.start - gap + 1);
    let ended = graph.last_ended(None, node.start, SEARCH_DEPTH, issued);
    ended.filter(|work| graph.work[*work].end > node.start - gap)
}
