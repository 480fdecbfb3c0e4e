//! Copies have a stream of their own and compute still waits: are they too late, or is the bus too short?

use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::activity::copies::{Copy, expected_ns};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use busbound_trace::MemoryKind;

const SMALLEST: u64 = 1 << 20;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    // Pageable copies cannot be judged as prefetches: they have a finding of their own.
    let large: Vec<&Copy<'_>> = facts
        .issued_copies()
        .filter(|copy| copy.is_on_bus() && copy.host_memory() != Some(MemoryKind::Pageable))
        .filter(|copy| copy.bytes().is_some_and(|bytes| bytes >= SMALLEST))
        .collect();
    let own_stream: Vec<&Copy<'_>> = large
        .iter()
        .copied()
        .filter(|copy| !facts.kernels_on_stream.contains_key(&(copy.device, copy.stream)))
        // Before the first kernel recorded, the device may have been busy with one that was not.
        .filter(|copy| {
            let timeline = facts.timelines.iter().find(|timeline| timeline.device == copy.device);
            let kernels = timeline.and_then(|timeline| timeline.kernels.hull());
            kernels.is_some_and(|hull| copy.event.start() >= hull.start)
        })
        .collect();
    let mut drafts = Vec::new();
    drafts.extend(deficit(facts, &large));
    if drafts.is_empty() {
        drafts.extend(late(facts, &own_stream));
    }
    drafts
}

fn time_ms(copies: &[&Copy<'_>]) -> f64 {
    copies.iter().map(|copy| copy.event.duration().as_millis()).sum()
}

/// The bus needs longer for the bytes than the kernels take: no depth hides that.
fn deficit(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Option<Draft> {
    let inbound: Vec<_> = copies
        .iter()
        .copied()
        .filter(|copy| copy.transfer.direction == busbound_trace::Direction::HostToDevice)
        .collect();
    let (steps, unit) = (facts.steps(), facts.unit());
    let needed: f64 = inbound.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6;
    let exposed = facts.exposed_ms(inbound.iter().copied());
    let compute = facts.time.compute_ms;
    if inbound.is_empty()
        || compute <= 0.0
        || facts.is_faster_than_link()
        || needed <= 1.1 * compute
        || exposed < 0.1 * facts.time.span_ms
    {
        return None;
    }
    let moved: u64 = inbound.iter().filter_map(|copy| copy.bytes()).sum();
    let resident = 1.0 - compute / needed;
    // And the first copy of a step, which a resident group makes unneeded.
    let beyond = needed - compute + needed / inbound.len() as f64 * steps;
    let rate = facts.link.reachable_gbps();
    let wanted = moved as f64 / 1e6 / compute.max(1e-9);
    Some(Draft {
        at: times_of(&inbound),
        id: "bandwidth_deficit",
        title: "The bus is too short for the bytes: no prefetch hides them all".to_owned(),
        seen: format!(
            "{:.2} GB a {unit} need {} at the {rate:.0} GB/s that {} reaches, and the kernels take {}; hiding all would need {wanted:.0} GB/s.",
            moved as f64 / 1e9 / steps,
            milliseconds(needed / steps),
            facts.link.name,
            milliseconds(compute / steps),
        ),
        evidence: json!({
            "bytes_per_step": moved as f64 / steps,
            "bus_ms_per_step": needed / steps,
            "compute_ms_per_step": compute / steps,
            "exposed_ms_per_step": exposed / steps,
            "resident_share_needed": resident,
            "gbps_needed": wanted,
        }),
        precondition: "GPU memory for the resident share, or fewer bytes (smaller dtype, larger batch for the same weights).",
        saves: Saving {
            low: 0.6 * (needed - compute).min(exposed) / steps,
            high: beyond.min(exposed) / steps,
        },
        basis: "bound: what the bus needs beyond the kernels' time, if the resident share is kept on the GPU and the rest is prefetched",
        fix: format!(
            "Keep {:.0} % of what is copied on the GPU, or send it in a smaller dtype; more prefetch depth will not help.",
            100.0 * resident
        ),
    })
}

/// There is compute enough to hide them, and yet they are waited for.
fn late(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Option<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    let total = time_ms(copies);
    let exposed = facts.exposed_ms(copies.iter().copied());
    if copies.is_empty() || exposed < 0.05 * facts.time.span_ms {
        return None;
    }
    let per_step = copies.len() as f64 / steps;
    // Before a step's first kernel and after its last a copy has nothing of the step to hide behind.
    let high = facts.exposed_between_kernels_ms(copies);
    if high < 0.02 * facts.time.span_ms {
        return None;
    }
    Some(Draft {
        at: times_of(copies),
        id: "late_prefetch",
        title: "Prefetch comes too late or is too shallow".to_owned(),
        seen: format!(
            "{per_step:.0} copies a {unit} on a stream of their own take {} and kernels {}, yet {} of the copies run with no kernel beside them.",
            milliseconds(total / steps),
            milliseconds(facts.time.compute_ms / steps),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "copy_ms_per_step": total / steps,
            "compute_ms_per_step": facts.time.compute_ms / steps,
            "exposed_ms_per_step": exposed / steps,
        }),
        precondition: "GPU memory for one more group in flight.",
        saves: Saving { low: 0.3 * high / steps, high: high / steps },
        basis: "bound: exposed copy time between the first and the last kernel of each step",
        fix: "Start each copy one group earlier (depth 2), before the kernels of the group before it are launched.".to_owned(),
    })
}
