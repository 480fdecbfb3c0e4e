//! Does communication between GPUs run with no compute at the same time?

use std::collections::BTreeMap;

use busbound_trace::EventKind;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Communication with no compute beside it",
    precondition: "There is compute that does not need the result; and all ranks arrive together, which one rank's trace cannot show.",
    basis: "bound: exposed communication that fits behind compute",
    candidate: Candidate::None(
        "No change reorders collectives: which compute needs their result, and when other ranks arrive, is not in one \
         rank's trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Collectives run while no compute kernel does. A collective that waits for a slower rank looks the \
                  same, and one rank's trace cannot tell them apart; `busbound merge` of all ranks can.",
        computed: "Evidence: communication not overlapped with compute for 10% of the time or more. Saving: nothing at \
                   least; at most as much of it as there is compute that runs without communication.",
        fix: "Start collectives earlier or less often: DDP buckets (`bucket_cap_mb`), gradient accumulation with \
              `no_sync()`, prefetched all-gathers (FSDP), asynchronous collectives (`async_op=True`).",
        code: &[CODE],
        assumes: "Some compute does not need the result, and all ranks arrive together.",
    },
};

const CODE: &str = "\
model = DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)
with model.no_sync():    # all but the last micro-batch
    loss(model(batch)).backward()";

/// Number and milliseconds of each communication kernel, by name.
fn kernels<'a>(facts: &Facts<'a>) -> BTreeMap<&'a str, (u64, f64)> {
    let mut kernels: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for event in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        if facts.communication.contains(event.name_id()) {
            let sum = kernels.entry(event.name()).or_default();
            sum.0 += 1;
            sum.1 += event.duration().as_millis();
        }
    }
    kernels
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let exposed = facts.time.exposed_comm_ms;
    if exposed < 0.1 * facts.time.span_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let longest = kernels(facts).into_iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let named = longest.map_or(String::new(), |(name, (n, ms))| {
        let short = name.split(['(', '<']).next().unwrap_or(name);
        format!(" Most of it: {short}, {:.0} a {unit}, {}.", n as f64 / steps, milliseconds(ms / steps))
    });
    let room = (facts.time.compute_ms - facts.overlap.comm_compute_ms).max(0.0);
    Some(Draft {
        title: None,
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
        saves: Saving { low: 0.0, high: exposed.min(room) / steps },
        fix: Fix::new(
            "Let it start earlier or less often: DDP buckets (bucket_cap_mb), gradient accumulation with no_sync(), prefetching all-gathers (FSDP), \
             asynchronous collectives (async_op=True).",
        )
        .code(CODE),
        at: facts
            .timelines
            .iter()
            .flat_map(|t| t.communication.difference(&t.compute).iter().collect::<Vec<_>>())
            .collect(),
    })
}
