//! Can the host not launch as fast as the device works?

use serde_json::json;

use super::{Draft, Saving};
use crate::facts::Facts;
use crate::gaps::GapCause;
use crate::quantity::{count, milliseconds};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let Some(cause) = facts.idle.iter().find(|idle| idle.cause == GapCause::Launch) else {
        return Vec::new();
    };
    // Before small copies it is their number that costs, which is another finding.
    let (idle, longest) = (cause.ms - cause.before_copies_ms, cause.longest_ms);
    if idle < 0.1 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit, launches) = (facts.steps(), facts.unit(), &facts.launches);
    let operators: Vec<_> =
        launches.operators.iter().map(|o| format!("{} {:.0} %", o.operator, 100.0 * o.share)).collect();
    let by =
        if operators.is_empty() { String::new() } else { format!(" Launched by {}.", operators.join(", ")) };
    // Loading kernels at their first use is no property of the step.
    let once = launches.long_calls_ms.min(idle);
    let first_use = if once > 0.3 * idle {
        format!(
            " {} of it lies in {} calls of more than 1 ms, which load kernels at their first use: warm up before recording.",
            milliseconds(once / steps),
            launches.long_calls
        )
    } else if longest > 0.3 * idle {
        let place = cause.places.first().map(|place| format!(" ({})", place.place)).unwrap_or_default();
        format!(
            " One gap alone is {}{place}: start-up, not the steady state; record after warm-up.",
            milliseconds(longest)
        )
    } else {
        String::new()
    };
    let once = if longest > 0.3 * idle { once.max(longest) } else { once };
    vec![Draft {
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
        saves: Saving { low: 0.3 * (idle - once) / steps, high: idle / steps },
        basis: "bound: idle time with an empty queue; part of it is the profiler's own cost",
        fix: "Launch less: torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph, fused optimisers (fused=True), larger batches."
            .to_owned(),
    }]
}
