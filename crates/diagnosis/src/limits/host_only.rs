//! What does a trace without GPU events not show?

use super::Scope;
use crate::analysis::cpu_copies::CpuCopyClass;
use crate::answers::survey::other_profiler::other_profiler;
use crate::quantity::{plural, printable};

/// Whether only host events were recorded. If GPU events were lost, another limitation says so instead.
fn is_host_only(scope: &Scope<'_>) -> bool {
    scope.facts.timelines.is_empty() && !scope.is_incomplete
}

pub(super) fn no_gpu(scope: &Scope<'_>) -> Option<String> {
    let next_time = scope.facts.trace.origin().format.record_gpu;
    is_host_only(scope).then(|| {
        if let Some((what, remedy)) = other_profiler(scope.facts.trace) {
            return format!("Its GPU activity cannot be read: the file is {what}. What to do: {remedy}.");
        }
        if scope.facts.on_cpu().is_some() {
            return format!(
                "If a GPU should compute this, move the model and its inputs to it. If the program also uses a GPU, record with {next_time}."
            );
        }
        if let Some(why) = scope.facts.trace.origin().why_no_gpu() {
            return format!("The profiler could not record the GPU. It says: \"{}\"", printable(why));
        }
        format!(
            "Without GPU events, the direction of copies, device time, overlap and idle time are unknown. Record with \
             {next_time}."
        )
    })
}

pub(super) fn asynchronous(scope: &Scope<'_>) -> Option<String> {
    let mut copies = scope.cpu_copies.iter();
    (is_host_only(scope) && copies.any(|sum| sum.class == CpuCopyClass::AsynchronousLaunch)).then(|| {
        "Only the launch cost of asynchronous copies is visible; their bandwidth is unknown.".to_owned()
    })
}

pub(super) fn undecided(scope: &Scope<'_>) -> Option<String> {
    let undecided = scope.cpu_copies.iter().find(|sum| sum.class == CpuCopyClass::Undecided)?;
    is_host_only(scope).then(|| {
        format!(
            "{} may or may not have crossed the bus: too short, or at a rate that both the bus and the GPU can reach.",
            plural(undecided.count, "copy operator", "copy operators")
        )
    })
}

pub(super) fn no_shapes(scope: &Scope<'_>) -> Option<String> {
    let has_shapes = scope.facts.trace.stats().shapes_seen;
    let has_copies = scope.facts.trace.names().iter().any(|name| name == "aten::copy_");
    (is_host_only(scope)
        && has_copies
        && scope.cpu_copies.is_empty()
        && !has_shapes
        && scope.facts.on_cpu().is_none())
    .then(|| "Copy operators have no shapes, so their size in bytes is unknown.".to_owned())
}
