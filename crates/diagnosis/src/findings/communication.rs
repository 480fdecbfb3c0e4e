//! Does communication between GPUs run with nothing beside it?

use std::collections::BTreeMap;

use busbound_trace::EventKind;
use serde_json::json;

use super::{Draft, Saving};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let exposed = facts.time.exposed_comm_ms;
    if exposed < 0.1 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let mut kernels: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for event in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        if facts.communication.contains(event.name_id()) {
            let sum = kernels.entry(event.name()).or_default();
            sum.0 += 1;
            sum.1 += event.duration().as_millis();
        }
    }
    let longest = kernels.iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let named = longest.map_or(String::new(), |(name, (n, ms))| {
        let short = name.split(['(', '<']).next().unwrap_or(name);
        format!(" Most of it: {short}, {:.0} a {unit}, {}.", *n as f64 / steps, milliseconds(ms / steps))
    });
    let room = (facts.time.compute_ms - facts.overlap.comm_compute_ms).max(0.0);
    vec![Draft {
        at: facts.timelines.iter().flat_map(|t| t.communication.difference(&t.compute).iter().collect::<Vec<_>>()).collect(),
        id: "exposed_communication",
        title: "Communication with no compute beside it".to_owned(),
        seen: format!(
            "Collectives take {} a {unit}, {} of it with no compute kernel running.{named} A collective that waits for a slower rank looks the same.",
            milliseconds(facts.time.comm_ms / steps),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "comm_ms_per_step": facts.time.comm_ms / steps,
            "exposed_ms_per_step": exposed / steps,
            "compute_without_comm_ms_per_step": room / steps,
            "kernel": longest.map(|(name, _)| name),
        }),
        precondition: "There is compute that does not need the result; and all ranks arrive together, which one rank's trace cannot show.",
        saves: Saving { low: 0.0, high: exposed.min(room) / steps },
        basis: "bound: exposed communication that fits behind compute",
        fix: "Let it start earlier or less often: DDP buckets (bucket_cap_mb), gradient accumulation with no_sync(), prefetching all-gathers (FSDP), \
              asynchronous collectives (async_op=True)."
            .to_owned(),
    }]
}
