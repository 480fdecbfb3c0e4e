//! Limits of a trace without GPU events.

use super::Scope;
use crate::analysis::cpu_copies::CpuCopyClass;

/// Whether the answer rests on the host alone; where GPU events are lost, that is said instead.
fn is_host_only(scope: &Scope<'_>) -> bool {
    scope.facts.timelines.is_empty() && !scope.is_incomplete
}

pub(super) fn no_gpu(scope: &Scope<'_>) -> Option<String> {
    let next_time = scope.facts.trace.origin().format.record_gpu;
    is_host_only(scope).then(|| {
        format!(
            "Without GPU events: direction of copies, time on the device, overlap and idle time cannot be told. Record \
             with {next_time}."
        )
    })
}

pub(super) fn asynchronous(scope: &Scope<'_>) -> Option<String> {
    let mut copies = scope.cpu_copies.iter();
    (is_host_only(scope) && copies.any(|sum| sum.class == CpuCopyClass::AsynchronousLaunch))
        .then(|| "Asynchronous copies show their launch cost only; no bandwidth follows from it.".to_owned())
}

pub(super) fn undecided(scope: &Scope<'_>) -> Option<String> {
    let undecided = scope.cpu_copies.iter().find(|sum| sum.class == CpuCopyClass::Undecided)?;
    is_host_only(scope).then(|| {
        format!(
            "{} copy operators are undecided: too short, or of a rate that both the bus and the device could give.",
            undecided.count
        )
    })
}

pub(super) fn no_shapes(scope: &Scope<'_>) -> Option<String> {
    let has_shapes = scope.facts.trace.stats().shapes_seen;
    (is_host_only(scope) && scope.cpu_copies.is_empty() && !has_shapes)
        .then(|| "Copy operators have no shapes, so their bytes are not known.".to_owned())
}
