//! Do large collectives reach what the links between the GPUs allow?

use busbound_cause::Resource;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::collectives::CollectiveGroup;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Collectives slower than the link",
    doing: "making NCCL use the links between the GPUs",
    precondition: "The fastest collective of its size did not wait for another rank, which one rank's trace cannot show.",
    basis: "bound: the exposed transfer time, if the link reached 80% of its peak",
    candidate: Candidate::None(
        "No what-if change replaces the transport of a collective: the trace does not show which one NCCL chose.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::Collectives],
    check,
    document: Document {
        meaning: "Even the fastest of several equal collectives reaches only a small part of the bandwidth between the GPUs. \
                  NCCL may use another transport than you expect: shared host memory (SHM) or PCIe instead of NVLink, or \
                  few channels. A rank that always arrives early looks the same; `busbound merge` of all ranks tells them apart.",
        computed: "Evidence: at least three collectives with the same message of 32 MB or more, all ranks in one machine, \
                   and the bus bandwidth of the fastest (nccl-tests' definition) below 40% of the peak of the links \
                   between the GPUs. Saving: at most the exposed transfer time that 80% of the peak would save.",
        fix: "Run with `NCCL_DEBUG=INFO` and look for `via P2P`, `via SHM` and `via NET`. Unset `NCCL_P2P_DISABLE` and \
              `NCCL_SHM_DISABLE`, and check `nvidia-smi topo -m` and `busbound topo`. `busbound bench --suite allreduce` \
              measures what this machine reaches.",
        code: &[],
        assumes: "The fastest collective of its size did not wait for another rank.",
    },
};

/// Smaller messages are bound by latency.
const LARGE: u64 = 32_000_000;
/// NCCL's rings reach about 80% of the peak; below half of that, something else limits them.
const SLOW: f64 = 0.4;
const REACHED: f64 = 0.8;
/// Fewer may all have waited.
const FEWEST: u64 = 3;

/// Another collective of these ranks that is this much faster shows that the links are not what is slow: they wait.
const FASTER: f64 = 1.5;

fn is_slow(group: &&CollectiveGroup) -> bool {
    group.count >= FEWEST
        && group.bytes.is_some_and(|bytes| bytes >= LARGE)
        && group.share_of_link.is_some_and(|share| share < SLOW)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let all = &facts.collective_groups;
    let is_refuted = |group: &&CollectiveGroup| {
        all.iter().any(|other| {
            other.group == group.group
                && other.ranks == group.ranks
                && other.busbw_gbps > group.busbw_gbps.map(|busbw| FASTER * busbw)
        })
    };
    let slow: Vec<&CollectiveGroup> = all.iter().filter(is_slow).filter(|group| !is_refuted(group)).collect();
    let worst = slow.first()?;
    // Of the exposed transfer, what a faster link would save.
    let saved = |group: &&CollectiveGroup| {
        let exposed = group.exposed_ms - group.exposed_waiting_ms.unwrap_or(0.0);
        exposed * (1.0 - group.share_of_link.unwrap_or(REACHED) / REACHED)
    };
    let high: f64 = slow.iter().map(saved).sum();
    if high < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, per) = (facts.steps(), facts.unit().per());
    let (busbw, share) = (worst.busbw_gbps?, worst.share_of_link?);
    Some(Draft {
        title: None,
        seen: format!(
            "The fastest {} of {} over {} ranks takes {}: bus bandwidth {busbw:.1} GB/s, {:.0}% of the {} ({:.0} GB/s). These collectives take {}{per}.",
            worst.op.label(),
            bytes(worst.bytes.unwrap_or(0)),
            worst.ranks.unwrap_or(0),
            milliseconds(worst.fastest_ms),
            100.0 * share,
            worst.link.as_deref().unwrap_or("link"),
            busbw / share,
            milliseconds(slow.iter().map(|group| group.ms).sum::<f64>() / steps),
        ),
        evidence: json!({
            "busbw_gbps": busbw,
            "share_of_link": share,
            "bytes": worst.bytes,
            "ms_per_step": slow.iter().map(|group| group.ms).sum::<f64>() / steps,
        }),
        saves: Saving { low: 0.0, high: high / facts.gpu_steps() },
        fix: Fix::new(
            "Run with NCCL_DEBUG=INFO and look for via P2P, via SHM and via NET: NCCL may not use the links between the GPUs. Compare with busbound bench --suite allreduce.",
        ),
        at: facts
            .collectives
            .iter()
            .filter(|run| run.bytes.is_some_and(|bytes| bytes >= LARGE))
            .map(|run| run.event.interval())
            .collect(),
    })
}
