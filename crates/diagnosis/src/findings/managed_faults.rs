//! Do kernels wait for pages of managed memory?

use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::bytes_moved;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::activity::managed::{WORTH_IT, is_on_demand, migration_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, count, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Kernels wait for pages of managed memory",
    precondition: "What a kernel touches is known before it starts.",
    basis: "bound: kernel time beside page faults; at least what these kernels took longer than without them, less the \
            time to bring the same bytes in ahead",
    candidate: Candidate::None(
        "No change serves page faults ahead of time: how much of a kernel waits for its pages is not in the trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Kernels run while pages of managed memory that they need are elsewhere. In every other figure that \
                  time counts as compute, and a limitation says so; in the verdict, what these kernels took longer counts \
                  as waiting for transfers. Migrations are copies that nobody called for: the findings about copies \
                  leave them out, and `whatif` leaves them as they are.",
        computed: "Evidence: kernels run while page faults of the GPU are served, or, where faults were not recorded \
                   (`--cuda-um-gpu-page-faults=true`), while pages come in on demand, for 2% of the time. A trace does \
                   not show how much of a kernel is stalled. Saving: all of that time at most. At least what these \
                   kernels took longer than the same ones without faults in the same run, less the time to bring the \
                   bytes in ahead; nothing where there is no such kernel.",
        fix: "Bring pages in before the kernel (`cudaMemPrefetchAsync` on a stream, the pages of the next step while this \
              one computes), state where memory lives (`cudaMemAdvise` with `SetPreferredLocation`), or use `cudaMalloc` \
              and a pinned copy.",
        code: &[],
        assumes: "What a kernel touches is known before it starts.",
    },
};

/// What came in on demand; of all steps.
struct Inbound {
    migrations: usize,
    bytes: u64,
    ms: f64,
    /// What the same bytes would take, brought in ahead at the link's rate.
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
            prefetched_ms: inbound.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6,
        }
    }

    fn sentence(&self, steps: f64) -> String {
        if self.bytes == 0 || self.ms <= 0.0 {
            return String::new();
        }
        format!(
            " {} come in on demand, in {} pieces at {:.1} GB/s.",
            bytes((self.bytes as f64 / steps) as u64),
            count((self.migrations as f64 / steps).round().max(1.0) as u64),
            self.bytes as f64 / 1e6 / self.ms,
        )
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let managed = &facts.managed;
    let waiting = managed.waiting_ms();
    if waiting < WORTH_IT * facts.time.span_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let inbound = Inbound::of(facts);
    let kernels: usize = managed.waits.iter().map(|wait| wait.kernels).sum();
    let excess = managed.excess_ms();
    let recorded = match managed.gpu_faults {
        0 => "pages come in".to_owned(),
        faults => {
            format!("{} page faults of the GPU are served", count((faults as f64 / steps).round() as u64))
        }
    };
    let compared = match excess {
        Some(excess) => {
            format!(" Without faults the same kernels take {} a {unit} less.", milliseconds(excess / steps))
        }
        None => String::new(),
    };
    Some(Draft {
        title: None,
        seen: format!(
            "{recorded} a {unit} while kernels run: {} of their time in {} of them.{}{compared}",
            milliseconds(waiting / steps),
            count((kernels as f64 / steps).round().max(1.0) as u64),
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
            low: excess.map_or(0.0, |excess| (excess - inbound.prefetched_ms).max(0.0)) / steps,
            high: waiting / steps,
        },
        fix: Fix::new(
            "Bring it in before the kernel (cudaMemPrefetchAsync on a stream, the pages of the next step while this one \
             computes), say where it lives (cudaMemAdvise with SetPreferredLocation), or use cudaMalloc and a pinned copy.",
        ),
        at: managed.waits.iter().flat_map(|wait| wait.times.iter()).collect(),
    })
}
