//! Can the host not launch as fast as the device works?

use serde_json::json;

use super::{Draft, Saving, gaps_of};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::{call_times, idle_beside_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};

/// Nanoseconds; an ordinary launch takes some microseconds.
const LONG_CALL: i64 = 1_000_000;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let Some(cause) = facts.idle.iter().find(|idle| idle.cause == GapCause::Launch) else {
        return Vec::new();
    };
    // Before small copies it is their number that costs, and memory taken meanwhile costs by itself: other
    // findings say so.
    let (idle, longest) = (cause.ms - cause.before_copies_ms - facts.allocating_idle_ms, cause.longest_ms);
    if idle < 0.1 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit, launches) = (facts.steps(), facts.unit(), &facts.launches);
    let operators: Vec<_> =
        launches.operators.iter().map(|o| format!("{} {:.0} %", o.operator, 100.0 * o.share)).collect();
    let by =
        if operators.is_empty() { String::new() } else { format!(" Launched by {}.", operators.join(", ")) };
    // What happens once is no property of the step: kernels loaded at their first use, a long gap.
    let long = facts.host.launches().filter(|call| call.duration().get() > LONG_CALL);
    let loading = idle_beside_ms(&facts.gaps, GapCause::Launch, &call_times(long)).min(idle);
    let (once, first_use) = if loading > 0.3 * idle {
        let text = format!(
            " {} of it lies around launch calls of more than 1 ms, which may be loading kernels at their first use: warm up before recording.",
            milliseconds(loading / steps),
        );
        (loading, text)
    } else if longest > 0.3 * idle && longest < idle {
        let place = cause.longest_place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        (longest, format!(" A single gap takes {} of it{place}.", milliseconds(longest)))
    } else {
        (0.0, String::new())
    };
    vec![Draft {
        at: gaps_of(facts, GapCause::Launch),
        id: "launch_bound",
        title: "The host launches too slowly".to_owned(),
        seen: format!(
            "{} kernels a {unit} of {:.1} µs (median), {:.1} µs of host time in each launch call (median): the queue runs empty for {} a {unit}.{first_use}{by}",
            count((launches.kernels as f64 / steps).round() as u64),
            launches.median_kernel_us,
            launches.median_call_us,
            milliseconds(idle / steps),
        ),
        evidence: json!({
            "kernels_per_step": launches.kernels as f64 / steps,
            "median_kernel_us": launches.median_kernel_us,
            "median_launch_call_us": launches.median_call_us,
            "long_calls": launches.long_calls,
            "long_calls_ms_per_step": launches.long_calls_ms / steps,
            "graph_launches": launches.graph_launches,
            "idle_ms_per_step": idle / steps,
            "longest_gap_ms": longest,
            "operators": operators,
        }),
        precondition: "Shapes and control flow repeat. The profiler itself slows launching: check the step without it first.",
        saves: Saving { low: 0.3 * (idle - once).max(0.0) / steps, high: idle / steps },
        basis: "bound: idle time with an empty queue; part of it is the profiler's own cost",
        fix: "Launch less: torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph, fused optimisers (fused=True), larger batches."
            .to_owned(),
    }]
}
