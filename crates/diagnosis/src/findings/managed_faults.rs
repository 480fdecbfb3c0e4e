//! Do kernels wait for pages of managed memory?

use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::bytes_moved;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::activity::managed::{WORTH_IT, is_on_demand, migration_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds, plural};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Managed memory page faults",
    doing: "prefetching managed pages",
    precondition: "The memory that a kernel accesses is known before the kernel starts.",
    basis: "bound: kernel time during page faults; the low end is the extra time of these kernels compared with runs without \
            faults, minus the time to prefetch the same bytes",
    candidate: Candidate::None(
        "No what-if change prefetches pages: the trace does not show how long a kernel waits for its pages.",
    ),
    effort: Effort::OneLine,
    unless: &[],
    relieves: &[],
    check,
    document: Document {
        meaning: "Kernels wait for pages of managed memory that are not on the GPU. In all other figures that time counts as \
                  compute, and a limitation says so. In the verdict, the extra time of these kernels counts as waiting for \
                  transfers. The program does not issue migrations itself, so the findings about copies exclude them, and \
                  `whatif` does not change them.",
        computed: "Evidence: kernels run during GPU page faults for at least 2% of the time. If faults were not recorded \
                   (`--cuda-um-gpu-page-faults=true`), on-demand migrations count instead, with the time between two that are less than 300 µs apart, in which the driver serves the next fault. A trace does not show how long \
                   a kernel is stalled. Saving: at most all of that time. The low end is the extra time of these kernels \
                   compared with the same kernels without faults in the same run, minus the time to prefetch the bytes; \
                   zero if no such kernel ran.",
        fix: "Prefetch pages before the kernel (`cudaMemPrefetchAsync` on a stream: the pages of the next step while this \
              step computes), set the preferred location (`cudaMemAdvise` with `SetPreferredLocation`), or use \
              `cudaMalloc` and a pinned copy.",
        code: &[],
        assumes: "The memory that a kernel accesses is known before the kernel starts.",
    },
};

/// Migrations to the GPU on demand; over all steps.
struct Inbound {
    migrations: usize,
    bytes: u64,
    ms: f64,
    /// Time to prefetch the same bytes at the link's rate.
    prefetched_ms: f64,
}

impl Inbound {
    fn of(facts: &Facts<'_>) -> Self {
        let is = |copy: &&Copy<'_>| is_on_demand(copy) && copy.transfer.direction == Direction::HostToDevice;
        let inbound: Vec<&Copy<'_>> = facts.managed.migrations(&facts.copies).filter(is).collect();
        Self {
            migrations: inbound.len(),
            bytes: bytes_moved(&inbound, Direction::HostToDevice),
            ms: migration_ms(&inbound),
            prefetched_ms: inbound.iter().map(|copy| expected_ns(copy, &facts.links)).sum::<f64>() / 1e6,
        }
    }

    fn sentence(&self, steps: f64) -> String {
        if self.bytes == 0 || self.ms <= 0.0 {
            return String::new();
        }
        format!(
            " {} migrate on demand, in {} at {:.1} GB/s.",
            bytes((self.bytes as f64 / steps) as u64),
            plural((self.migrations as f64 / steps).round().max(1.0) as u64, "migration", "migrations"),
            self.bytes as f64 / 1e6 / self.ms,
        )
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let managed = &facts.managed;
    let waiting = managed.waiting_ms();
    if waiting < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let per = unit.per();
    let inbound = Inbound::of(facts);
    let kernels: usize = managed.waits.iter().map(|wait| wait.kernels).sum();
    let excess = managed.excess_ms();
    let recorded = match managed.gpu_faults {
        0 => "On-demand migrations".to_owned(),
        faults => plural((faults as f64 / steps).round() as u64, "GPU page fault", "GPU page faults"),
    };
    let compared = match excess {
        Some(excess) => {
            format!(" Without faults, the same kernels take {}{per} less.", milliseconds(excess / steps))
        }
        None => String::new(),
    };
    Some(Draft {
        title: None,
        seen: format!(
            "{recorded} per {unit} overlap with kernels: {} of kernel time, in {}.{}{compared}",
            milliseconds(waiting / steps),
            plural((kernels as f64 / steps).round().max(1.0) as u64, "kernel", "kernels"),
            inbound.sentence(steps),
        ),
        evidence: json!({
            "gpu_page_faults_per_step": managed.gpu_faults as f64 / steps,
            "kernel_ms_beside_faults_per_step": waiting / steps,
            "kernels_per_step": kernels as f64 / steps,
            "on_demand_bytes_per_step": inbound.bytes as f64 / steps,
            "on_demand_migrations_per_step": inbound.migrations as f64 / steps,
            "on_demand_ms_per_step": inbound.ms / steps,
            "prefetched_ms_per_step": inbound.prefetched_ms / steps,
            "excess_ms_per_step": excess.map(|excess| excess / steps),
        }),
        saves: Saving {
            low: excess.map_or(0.0, |excess| (excess - inbound.prefetched_ms).max(0.0)) / facts.gpu_steps(),
            high: waiting / facts.gpu_steps(),
        },
        fix: Fix::new(
            "Prefetch pages before the kernel (cudaMemPrefetchAsync on a stream: the pages of the next step while this step \
             computes), set the preferred location (cudaMemAdvise with SetPreferredLocation), or use cudaMalloc and a \
             pinned copy.",
        ),
        at: managed.waits.iter().flat_map(|wait| wait.times.iter()).collect(),
    })
}
