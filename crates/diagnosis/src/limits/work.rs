//! What do the device and host events not show?

use super::Scope;
use crate::activity::managed;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::incomplete;
use crate::analysis::slow_operands::SlowOperands;
use crate::flight;
use crate::quantity::{bytes, milliseconds};
use busbound_cause::idle::GapCause;

/// If compute shares differ by more than this, a verdict for all devices says little about each of them.
const DIFFERENT: f64 = 0.25;

pub(super) fn unlike_gpus(scope: &Scope<'_>) -> Option<String> {
    let busy = scope.facts.timelines.iter().map(compute_share);
    let (lowest, highest) =
        busy.fold((1.0f64, 0.0f64), |(lowest, highest), share| (lowest.min(share), highest.max(share)));
    (highest - lowest > DIFFERENT).then(|| {
        format!(
            "The GPUs do different work (compute takes {:.0}% to {:.0}% of their time). The verdict is for all of them combined; --format json lists each.",
            100.0 * lowest,
            100.0 * highest
        )
    })
}

fn compute_share(timeline: &DeviceTimeline) -> f64 {
    let span = timeline.hull().map_or(0, |hull| hull.length().get());
    if span == 0 { 0.0 } else { timeline.compute.length().get() as f64 / span as f64 }
}

pub(super) fn flight_recorder(scope: &Scope<'_>) -> Vec<String> {
    let Some(dumps) = &scope.options.flight_recorder else { return Vec::new() };
    let rank = scope.survey.rank.as_ref().map(|ranked| ranked.rank);
    let sizes = scope.facts.collectives.iter().any(|run| run.bytes.is_none());
    flight::beside_trace(dumps, rank, sizes)
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
    (waiting > managed::WORTH_IT * facts.time.analyzed_ms).then(|| {
        format!(
            "Kernels run for {}/{} while pages of managed memory migrate. In the table, that time counts as compute.",
            milliseconds(waiting / facts.steps()),
            facts.unit()
        )
    })
}

/// Kernels that may read host memory, which looks like compute.
pub(super) fn host_memory(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let slow = SlowOperands::of(facts)?;
    Some(format!(
        "Kernels read their operands at {:.0} GB/s, about as fast as {} and far slower than the GPU's own memory, for {}/{} (mostly {}, {} each). \
         If they read host memory (UVA, zero-copy), they wait for the link and do not compute. A recording by `busbound record` has the link's counters and shows it.",
        slow.gbps,
        facts.link.name,
        milliseconds(slow.ms / facts.steps()),
        facts.unit(),
        facts.trace.names().get(slow.mostly),
        bytes(slow.bytes),
    ))
}

/// Share of the time. If the device waits less than this for the host, the profiler's overhead matters little.
const HOST_MATTERS: f64 = 0.1;

pub(super) fn profiler_cost(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let host = facts.idle_ms(GapCause::Launch) + facts.idle_ms(GapCause::Synchronization);
    let is_estimated = facts.unprofiled().is_some();
    (host > HOST_MATTERS * facts.time.analyzed_ms && !is_estimated)
        .then(|| "The profiler slows down the host. Time a step without it first: part of the wait for launches may not exist then.".to_owned())
}

pub(super) fn one_rank(scope: &Scope<'_>) -> Option<String> {
    let world = scope.survey.rank.as_ref().and_then(|rank| rank.world_size);
    world.is_some_and(|world| world > 1).then(|| {
        "This is one rank of several. The reason for a slow collective may be in another rank, which has its own clock."
            .to_owned()
    })
}
