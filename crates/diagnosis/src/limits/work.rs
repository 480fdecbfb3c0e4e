//! Limits of what the devices' and the host's work shows.

use super::Scope;
use crate::activity::managed;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::incomplete;
use crate::quantity::milliseconds;
use busbound_cause::idle::GapCause;

/// Shares of compute that differ by more make a verdict for all devices say little of each.
const UNLIKE: f64 = 0.25;

pub(super) fn unlike_gpus(scope: &Scope<'_>) -> Option<String> {
    let busy = scope.facts.timelines.iter().map(compute_share);
    let (least, most) =
        busy.fold((1.0f64, 0.0f64), |(least, most), share| (least.min(share), most.max(share)));
    (most - least > UNLIKE).then(|| {
        format!(
            "The GPUs do not work alike (compute {:.0} to {:.0} % of their time): the verdict is for all together, --format json has each.",
            100.0 * least,
            100.0 * most
        )
    })
}

fn compute_share(timeline: &DeviceTimeline) -> f64 {
    let span = timeline.hull().map_or(0, |hull| hull.length().get());
    if span == 0 { 0.0 } else { timeline.compute.length().get() as f64 / span as f64 }
}

pub(super) fn no_kernels(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let has_kernels = facts.time.compute_ms > 0.0 || facts.time.comm_ms > 0.0;
    (!facts.copies.is_empty() && !has_kernels && incomplete::reason(facts.trace).is_none())
        .then(|| "No kernel was recorded, so all copies look exposed.".to_owned())
}

pub(super) fn managed_in_kernels(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let waiting = facts.managed.waiting_ms();
    (waiting > managed::WORTH_IT * facts.time.span_ms).then(|| {
        format!(
            "Kernels run for {} a {} while pages of managed memory are on their way; in the table that time counts as compute.",
            milliseconds(waiting / facts.steps()),
            facts.unit()
        )
    })
}

/// Of the time: where the device waits less for the host, the profiler's cost on the host decides little.
const HOST_MATTERS: f64 = 0.1;

pub(super) fn profiler_cost(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let host = facts.idle_ms(GapCause::Launch) + facts.idle_ms(GapCause::Synchronization);
    (host > HOST_MATTERS * facts.time.span_ms).then(|| {
        "The profiler slows the host: without it less of this time is spent waiting for launches.".to_owned()
    })
}

pub(super) fn one_rank(scope: &Scope<'_>) -> Option<String> {
    let world = scope.survey.rank.as_ref().and_then(|rank| rank.world_size);
    world.is_some_and(|world| world > 1).then(|| {
        "One rank of several: why a collective took long may lie in another rank, whose clock is not this one's."
            .to_owned()
    })
}
