//! Can the host not launch as fast as the device works?

use serde_json::json;

use super::common::copies::gaps_of;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::{IdleCause, call_times, idle_beside_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};
use crate::saving::Saving;
use crate::settings::Target;

pub(super) static RULE: Rule = Rule {
    title: "The host launches too slowly",
    precondition: "Shapes and control flow repeat. The profiler itself slows launching: check the step without it first.",
    basis: "bound: idle time with an empty queue; part of it is the profiler's own cost",
    candidate: Candidate::None(
        "No change merges launches into a graph: what the host then still does per step is not in the trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "The GPU's queue runs empty because the host, busy with something other than waiting, launches work \
                  more slowly than the GPU finishes it.",
        computed: "Evidence: idle time with an empty queue of at least 10%, without what other findings explain: time \
                   before small copies and time inside allocation calls. Kernels loaded at their first use, and a \
                   single long gap, count for the high end only. Saving: that idle time at most, 30% of what repeats \
                   at least.",
        fix: "Launch less: `torch.compile(mode=\"reduce-overhead\")` or CUDA graphs, fused optimizers, larger batches.",
        code: &[CODE],
        assumes: "Shapes and control flow repeat. Part of the time is the profiler's own cost: check the step time \
                  without the profiler first.",
    },
};

const CODE: &str = "\
step = torch.compile(step, mode=\"reduce-overhead\")                 # CUDA graphs inside
optimizer = torch.optim.AdamW(model.parameters(), fused=True)";

/// Nanoseconds; an ordinary launch takes some microseconds.
const LONG_CALL: i64 = 1_000_000;

/// What happens once is no property of the step: kernels loaded at their first use, a long gap. How long it
/// took, and the sentence about it.
fn once(facts: &Facts<'_>, cause: &IdleCause, idle: f64) -> (f64, String) {
    let long = facts.host.launches().filter(|call| call.duration().get() > LONG_CALL);
    let loading = idle_beside_ms(&facts.gaps, GapCause::Launch, &call_times(long)).min(idle);
    let longest = cause.longest_ms;
    if loading > 0.3 * idle {
        let text = format!(
            " {} of it lies around launch calls of more than 1 ms, which may be loading kernels at their first use: warm up before recording.",
            milliseconds(loading / facts.steps()),
        );
        (loading, text)
    } else if longest > 0.3 * idle && longest < idle {
        let place = cause.longest_place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        (longest, format!(" A single gap takes {} of it{place}.", milliseconds(longest)))
    } else {
        (0.0, String::new())
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let cause = facts.idle.iter().find(|idle| idle.cause == GapCause::Launch)?;
    // Before small copies it is their number that costs, and memory taken meanwhile costs by itself: other
    // findings say so.
    let idle = cause.ms - cause.before_copies_ms - facts.allocating_idle_ms;
    if idle < 0.1 * facts.time.span_ms {
        return None;
    }
    let (steps, unit, launches) = (facts.steps(), facts.unit(), &facts.launches);
    let operators: Vec<_> =
        launches.operators.iter().map(|o| format!("{} {:.0} %", o.operator, 100.0 * o.share)).collect();
    let by =
        if operators.is_empty() { String::new() } else { format!(" Launched by {}.", operators.join(", ")) };
    let (once, first_use) = once(facts, cause, idle);
    Some(Draft {
        title: None,
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
            "longest_gap_ms": cause.longest_ms,
            "operators": operators,
        }),
        saves: Saving { low: 0.3 * (idle - once).max(0.0) / steps, high: idle / steps },
        fix: Fix::new(
            "Launch less: torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph, fused optimizers (fused=True), larger batches.",
        )
        .code(CODE)
        .setting(Target::Compile, "mode", "reduce-overhead")
        .setting(Target::Vllm, "enforce_eager", "false")
        .setting(Target::Sglang, "disable_cuda_graph", "false"),
        at: gaps_of(facts, GapCause::Launch),
    })
}
