//! Is something fetched every step that would fit on the GPU?

use busbound_trace::{Direction, MemoryOwner};
use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::analysis::facts::Facts;
use crate::quantity::bytes;

/// Weights, not batches: at least this much a step.
const WORTH_IT: f64 = 100e6;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let steps = facts.steps();
    let inbound: Vec<_> =
        facts.issued_copies().filter(|copy| copy.transfer.direction == Direction::HostToDevice).collect();
    let moved = inbound.iter().filter_map(|copy| copy.bytes()).sum::<u64>() as f64 / steps;
    let Some(device) = inbound.first().map(|copy| copy.device) else { return Vec::new() };
    if moved < WORTH_IT || facts.window.steps.len() < 2 {
        return Vec::new();
    }
    // Only allocator samples say how full the GPU is; without them there is no evidence.
    let samples = facts.trace.memory().iter().filter(|sample| sample.owner == MemoryOwner::Device(device));
    let Some(reserved) = samples.map(|sample| sample.reserved).max().filter(|&reserved| reserved > 0) else {
        return Vec::new();
    };
    let total = facts.trace.origin().gpus.iter().find(|gpu| gpu.id == device).and_then(|gpu| gpu.memory);
    let Some(total) = total.map(|total| total.get()) else { return Vec::new() };
    let free = total.saturating_sub(reserved) as f64;
    let exposed = facts.exposed_ms(inbound.iter().copied());
    if moved > 0.9 * free || exposed < 0.02 * facts.time.span_ms {
        return Vec::new();
    }
    vec![Draft {
        at: times_of(&inbound),
        id: "unneeded_offload",
        title: "What is fetched every step would fit on the GPU".to_owned(),
        seen: format!(
            "{} are copied to the GPU every step; its allocator held at most {} of {}.",
            bytes(moved as u64),
            bytes(reserved),
            bytes(total),
        ),
        evidence: json!({
            "bytes_per_step": moved,
            "reserved_bytes": reserved,
            "total_bytes": total,
            "exposed_ms_per_step": exposed / steps,
        }),
        precondition: "It is the same data every step (weights), and nothing else on that GPU needs the memory.",
        saves: Saving { low: 0.7 * exposed / steps, high: exposed / steps },
        basis: "bound: exposed time of these copies",
        fix: "Keep it resident: move it once before the loop.".to_owned(),
    }]
}
