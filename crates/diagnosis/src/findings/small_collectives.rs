//! Are there many collectives that are too small to use the link?

use busbound_cause::Resource;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::collectives::CollectiveGroup;
use crate::analysis::facts::Facts;
use crate::analysis::program::only_infers;
use crate::quantity::{bytes, count, milliseconds};
use crate::saving::Saving;
use crate::settings::ddp::SeenDdp;
use crate::settings::{Proposal, Target};

pub(super) static RULE: Rule = Rule {
    title: "Many small collectives",
    doing: "merging small collectives",
    precondition: "Several of them can wait for each other and be sent as one.",
    basis: "bound: the exposed time of all but one per kind",
    candidate: Candidate::None(
        "No what-if change merges collectives: one rank's trace does not show which results are needed at once.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::Collectives],
    check,
    document: Document {
        meaning: "Collectives below 1 MiB mostly take their latency, whatever their size: many small ones take much longer than \
                  one with the same bytes.",
        computed: "Evidence: at least eight collectives below 1 MiB per step, whose exposed time without waiting is at least \
                   2% of the time. Saving: at most that time, except for one collective of each operation and group.",
        fix: "Merge them: larger DDP buckets (`bucket_cap_mb`), FSDP units of whole layers, one flat tensor instead of one per \
              parameter, `torch.distributed._coalescing_manager`. In tensor-parallel inference, where each layer needs its \
              result, an all-reduce for small messages.",
        code: &[CODE],
        assumes: "Several of them can wait for each other and be sent as one.",
    },
};

const CODE: &str = "\
flat = torch._utils._flatten_dense_tensors(grads)
dist.all_reduce(flat)    # one collective instead of one per tensor
for grad, new in zip(grads, torch._utils._unflatten_dense_tensors(flat, grads)):
    grad.copy_(new)";

/// Below this size, latency takes most of the time: NCCL's 15 to 30 µs are 1 MiB at 35 to 70 GB/s.
const SMALL: u64 = 1 << 20;
const MANY_PER_STEP: f64 = 8.0;
/// The default of DDP: far above what is small here.
const DEFAULT_BUCKET_MIB: u32 = 25;

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let is_small = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes < SMALL);
    let small: Vec<&CollectiveGroup> =
        facts.collective_groups.iter().filter(|group| is_small(group.bytes)).collect();
    let (steps, unit) = (facts.steps(), facts.unit());
    let number: u64 = small.iter().map(|group| group.count).sum();
    let each_step = number as f64 / steps;
    let exposed: f64 =
        small.iter().map(|group| group.exposed_ms - group.exposed_waiting_ms.unwrap_or(0.0)).sum();
    if each_step < MANY_PER_STEP || exposed < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    let mut kinds: Vec<_> = small.iter().map(|group| (group.op, &group.group)).collect();
    kinds.sort();
    kinds.dedup();
    let moved: f64 = small.iter().map(|group| group.bytes.unwrap_or(0) as f64 * group.count as f64).sum();
    let kept = (kinds.len() as f64 / each_step).min(1.0);
    Some(Draft {
        title: None,
        seen: format!(
            "{} collectives per {unit} are smaller than 1 MiB ({} in total): {} not overlapped with compute, without waiting for other ranks.",
            count(each_step.round() as u64),
            bytes((moved / steps) as u64),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "collectives_per_step": each_step,
            "bytes_per_step": moved / steps,
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving { low: 0.0, high: exposed * (1.0 - kept) / facts.gpu_steps() },
        fix: fix(facts),
        at: facts
            .collectives
            .iter()
            .filter(|run| is_small(run.bytes))
            .map(|run| run.event.interval())
            .collect(),
    })
}

fn fix(facts: &Facts<'_>) -> Fix {
    if only_infers(facts.trace) {
        return Fix::new(
            "If each layer needs its result at once (tensor parallelism), they cannot be merged: use an all-reduce for small messages (the engine's custom all-reduce, \
             NVLS), larger batches, or fewer GPUs per copy of the model.",
        );
    }
    let ddp = SeenDdp::of(facts.trace);
    Fix::new(
        "Merge them: larger DDP buckets (bucket_cap_mb), FSDP units of whole layers, or one flat tensor instead of one per parameter.",
    )
    .code(CODE)
    .settings(ddp.map(|_| Proposal::new(Target::Ddp, "bucket_cap_mb", DEFAULT_BUCKET_MIB)))
}
