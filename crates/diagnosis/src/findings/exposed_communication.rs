//! Does communication between GPUs run without compute at the same time?

use busbound_cause::Resource;
use std::collections::BTreeMap;

use busbound_trace::EventKind;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::analysis::program::only_infers;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::Target;
use crate::settings::ddp::SeenDdp;

pub(super) static RULE: Rule = Rule {
    title: "Exposed communication",
    doing: "overlapping communication with compute",
    precondition: "Some compute does not need the result, and all ranks arrive at the same time, which one rank's trace cannot show.",
    basis: "bound: exposed communication that can overlap with compute",
    candidate: Candidate::None(
        "No what-if change reorders collectives: one rank's trace does not show which compute needs their result, or when \
         other ranks arrive.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::Collectives],
    check,
    document: Document {
        meaning: "Collectives run while no compute kernel runs. A collective that waits for a slower rank looks the same, and \
                  one rank's trace cannot distinguish the two. `busbound merge` of all ranks can.",
        computed: "Evidence: communication is not overlapped with compute for at least 10% of the time. Saving: between zero \
                   and the exposed communication, limited to the compute time that runs without communication.",
        fix: "Start collectives earlier or less often: DDP buckets (`bucket_cap_mb`), gradient accumulation with \
              `no_sync()`, prefetched all-gathers (FSDP), asynchronous collectives (`async_op=True`). In inference \
              each layer needs its result at once: two half batches by turns (expert parallelism), or fewer GPUs per copy of the model \
              and a faster all-reduce (tensor parallelism).",
        code: &[CODE],
        assumes: "Some compute does not need the result, and all ranks arrive at the same time.",
    },
};

const CODE: &str = "\
model = DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)
with model.no_sync():    # all but the last micro-batch
    loss(model(batch)).backward()";

/// Count and total milliseconds of each communication kernel, by name.
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
    if exposed < 0.1 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let per = unit.per();
    let longest = kernels(facts).into_iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let named = longest.map_or(String::new(), |(name, (n, ms))| {
        let short = name.split(['(', '<']).next().unwrap_or(name);
        format!(" Most of it is {short}: {:.0} per {unit}, {}.", n as f64 / steps, milliseconds(ms / steps))
    });
    let room = (facts.time.compute_ms - facts.overlap.comm_compute_ms).max(0.0);
    let ddp = SeenDdp::of(facts.trace);
    Some(Draft {
        title: None,
        seen: format!(
            "Collectives take {}{per}, {} of it not overlapped with compute.{named} {} of compute is left to overlap it with. A collective that waits for a slower rank looks the same: pass the traces of all ranks.{}",
            milliseconds(facts.time.comm_ms / steps),
            milliseconds(exposed / steps),
            milliseconds(room / steps),
            ddp.map_or("", SeenDdp::clause),
        ),
        evidence: json!({
            "comm_ms_per_step": facts.time.comm_ms / steps,
            "exposed_ms_per_step": exposed / steps,
            "compute_without_comm_ms_per_step": room / steps,
            "kernel": longest.map(|(name, _)| name),
        }),
        saves: Saving { low: 0.0, high: exposed.min(room) / facts.gpu_steps() },
        fix: fix(facts, ddp),
        at: facts
            .timelines
            .iter()
            .flat_map(|t| t.communication.difference(&t.compute).iter().collect::<Vec<_>>())
            .collect(),
    })
}

fn fix(facts: &Facts<'_>, ddp: Option<SeenDdp>) -> Fix {
    if only_infers(facts.trace) {
        return Fix::new(
            "Each layer needs its result at once. Expert parallelism: two half batches by turns (vLLM: --enable-dbo). Tensor parallelism: fewer GPUs per copy of the model, \
             or a faster all-reduce (NVLS; the engine's custom all-reduce, which is off without peer access).",
        );
    }
    Fix::new(
        "Start collectives earlier or less often: DDP buckets (bucket_cap_mb), gradient accumulation with no_sync(), prefetched all-gathers (FSDP), \
         asynchronous collectives (async_op=True).",
    )
    .code(CODE)
    .settings(ddp.map(SeenDdp::proposals).unwrap_or_default())
    .setting(Target::DeepSpeed, "zero_optimization.overlap_comm", true)
}
