//! Which records of work and of calls are not there? By counting launches and what they launched.

use busbound_cause::{Counted, GraphLaunches};
use busbound_trace::EventKind;

use super::lacks::{BOTH_ACTIVITIES, FEWER, Lack, Scope};
use crate::quantity::plural;

/// Not one kernel, although some were launched: nobody drops all of them.
pub(super) fn kernels(scope: &Scope<'_>) -> Option<Lack> {
    has_no_kernels(scope).then(|| {
        launched_without_work(scope, "kernels were not recorded, or the file lost them", BOTH_ACTIVITIES)
    })?
}

pub(super) fn kernel_records(scope: &Scope<'_>) -> Option<Lack> {
    (!has_no_kernels(scope)).then(|| launched_without_work(scope, scope.dropped(), FEWER))?
}

fn has_no_kernels(scope: &Scope<'_>) -> bool {
    scope.records().kernels_are_missing() && scope.totals.count(EventKind::Kernel) == 0
}

fn launched_without_work(scope: &Scope<'_>, why: &str, remedy: &'static str) -> Option<Lack> {
    let records = scope.records();
    let clause = |is_missing: bool, counted: Counted, one: &str, several: &str| {
        let of = plural(counted.all as u64, one, several);
        is_missing.then(|| format!("{} of {of}", counted.alone))
    };
    let kernels = clause(records.kernels_are_missing(), records.launches, "kernel launch", "kernel launches");
    let copies = clause(records.copies_are_missing(), records.copies, "copy call", "copy calls");
    let work = match (&kernels, &copies) {
        (Some(_), None) => "kernel",
        (None, Some(_)) => "copy",
        (Some(_), Some(_)) => "work",
        (None, None) => return None,
    };
    let clauses: Vec<String> = [kernels, copies].into_iter().flatten().collect();
    Some(Lack {
        what: format!("{} have no {work} in the trace: {why}", clauses.join(" and ")),
        prevents: "knowing what the GPU did then: it looks idle",
        remedy,
    })
}

pub(super) fn graph_work(scope: &Scope<'_>) -> Option<Lack> {
    if !scope.survey.recorded.gpu_activity {
        return None;
    }
    let graphs = GraphLaunches::of(scope.trace);
    let all = plural(graphs.all as u64, "CUDA graph launch", "CUDA graph launches");
    let what = match () {
        // A truncated file has lost the work of its last launches; another check reports that.
        () if graphs.are_missing() && scope.trace.stats().is_complete() => {
            format!("{} of {all} left no GPU work in the trace", graphs.unseen.len())
        }
        () if graphs.are_uneven() => {
            format!(
                "{} of {all} have other numbers of kernels than the rest: {}",
                graphs.uneven,
                scope.dropped()
            )
        }
        () => return None,
    };
    Some(Lack { what, prevents: "knowing what the GPU did then: it looks idle", remedy: FEWER })
}

pub(super) fn call_records(scope: &Scope<'_>) -> Option<Lack> {
    let records = scope.records();
    // Without any calls, another check reports that.
    (scope.survey.recorded.runtime_calls && records.calls_are_missing()).then(|| Lack {
        what: format!(
            "{} of {} no launch call in the trace: {}",
            records.work.alone,
            plural(records.work.all as u64, "GPU event has", "GPU events have"),
            scope.dropped()
        ),
        prevents: "knowing why the GPU was idle before them",
        remedy: FEWER,
    })
}
