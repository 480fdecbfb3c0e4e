//! Is the device idle while the host allocates or frees memory?

use busbound_trace::Call;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};
use crate::saving::Saving;
use crate::settings::Target;

pub(super) static RULE: Rule = Rule {
    title: "The host allocates memory within the step",
    precondition: "It goes on after the first steps: memory taken once, in warm-up, stays with the allocator.",
    basis: "bound: idle time inside allocation calls",
    candidate: Candidate::None(
        "No change removes allocation calls: which of them a cached block would serve is not in the trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread is inside calls that allocate or free memory \
                  (`cudaMalloc`, `cudaFree`, `cudaHostAlloc`, `cuMemMap` and similar).",
        computed: "Evidence: idle time of 5% or more inside such calls. Saving: that idle time at most, half of it at \
                   least.",
        fix: "Keep shapes constant or allocate for the largest at the start, do not call `empty_cache()` in the loop, pin \
              host buffers once; try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
        code: &[],
        assumes: "It goes on after the first steps: during warm-up, allocations are normal.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = facts.allocating_idle_ms;
    if idle < 0.05 * facts.time.span_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let calls = || facts.host.rare_calls().filter(|call| facts.host.call_kind(call) == Call::Allocate);
    let longest = calls().max_by_key(|call| (call.duration(), std::cmp::Reverse(call.id())))?;
    let (number, held) = calls().fold((0u64, 0.0), |(n, ms), call| (n + 1, ms + call.duration().as_millis()));
    let place = facts.host.around(&longest).clause();
    Some(Draft {
        title: Some(format!("The host allocates memory within the {unit}")),
        seen: format!(
            "{} allocation calls a {unit} take {} of host time, and the GPU stands still for {} of it; the longest is {} of {}{place}.",
            count((number as f64 / steps).round().max(1.0) as u64),
            milliseconds(held / steps),
            milliseconds(idle / steps),
            longest.name(),
            milliseconds(longest.duration().as_millis()),
        ),
        evidence: json!({
            "calls_per_step": number as f64 / steps,
            "host_ms_per_step": held / steps,
            "idle_ms_per_step": idle / steps,
            "longest_call": longest.name(),
            "longest_ms": longest.duration().as_millis(),
        }),
        saves: Saving { low: 0.5 * idle / steps, high: idle / steps },
        fix: Fix::new(
            "Keep shapes steady or allocate for the largest at the start, do not call empty_cache() in the loop, pin host buffers once; try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        )
        .setting(Target::Environment, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
        at: calls().map(|call| call.interval()).collect(),
    })
}
