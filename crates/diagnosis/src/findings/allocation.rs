//! Does the device stand still while the host takes or gives back memory?

use serde_json::json;

use super::{Draft, Saving};
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};
use busbound_trace::Call;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let idle = facts.allocating_idle_ms;
    if idle < 0.05 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let calls = || facts.host.rare_calls().filter(|call| facts.host.call_kind(call) == Call::Allocate);
    let longest = calls().max_by_key(|call| (call.duration(), std::cmp::Reverse(call.id())));
    let Some(longest) = longest else { return Vec::new() };
    let (number, held) = calls().fold((0u64, 0.0), |(n, ms), call| (n + 1, ms + call.duration().as_millis()));
    let place = facts.host.around(&longest).clause();
    vec![Draft {
        at: calls().map(|call| call.interval()).collect(),
        id: "allocation_in_loop",
        title: format!("The host allocates memory within the {unit}"),
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
        precondition: "It goes on after the first steps: memory taken once, in warm-up, stays with the allocator.",
        saves: Saving { low: 0.5 * idle / steps, high: idle / steps },
        basis: "bound: idle time inside allocation calls",
        fix: "Keep shapes steady or allocate for the largest at the start, do not call empty_cache() in the loop, pin host buffers once; try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
            .to_owned(),
    }]
}
