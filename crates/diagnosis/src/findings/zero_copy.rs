//! Do kernels read or write host memory over the link?

use busbound_cause::{HostMemoryKernel, Resource};
use busbound_trace::{Direction, Interval};
use busbound_whatif::replay::Copied;
use serde_json::json;

use super::common::prefetch::{OFFLOAD_CODE, PREFETCH_CODE};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Kernels read host memory",
    doing: "copying ahead what kernels read from host memory",
    precondition: "What a kernel reads is known before it starts.",
    basis: "bound: the time of kernels that wait for the link",
    candidate: Candidate::Changes(|| vec![Copied.into()]),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Kernels read or write host memory directly (UVA, zero-copy): weights that an engine offloads without copies, \
                  blocks of a key-value cache, pinned tensors used as operands. No copy is recorded, and the time looks like \
                  compute, but the kernels wait for the link. Nothing else can use it better meanwhile: a copy is faster than a \
                  kernel that reads over the link, and can run ahead.",
        computed: "Evidence: the link's byte counters, which `busbound record` reads about 200 times a second. Bytes that no copy \
                   explains are attributed to kernels: bytes per launch of each kind of kernel, fitted to all readings by least \
                   squares, at most what the link carries in the time of the kernel. Reported from 2% of the time on. Saving: the \
                   trace replayed with `copied`. Traces without counters (torch.profiler, Nsight) cannot show it; the limitation `host_memory` names kernels in them that \
                   read their operands as slowly as the link carries them, where shapes are recorded.",
        fix: "Copy what the kernel reads into a buffer on the GPU, one layer or block ahead, on a second stream. If these are the \
              weights of a PyTorch model, `busbound.offload(model, gpu_memory=…)` does this. In vLLM, use the offloading backend \
              that prefetches instead of UVA.",
        code: &[PREFETCH_CODE, OFFLOAD_CODE],
        assumes: "Kernels read each byte once, except matrix products where the sizes of pinned allocations show that they read their \
                  weights once per row of tiles, and packets carry 128 bytes (counted bytes are divided by 1.17).",
    },
};

/// A smaller share of the time is not reported.
const WORTH_IT: f64 = 0.02;

/// The direction in words: what kernels do with host memory.
fn doing(direction: Direction) -> &'static str {
    if direction == Direction::DeviceToHost { "write" } else { "read" }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let moving = &facts.graph.host_memory;
    let waiting = facts.link_waits_ms();
    if waiting < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let largest = moving.kernels.iter().max_by_key(|kernel| kernel.bytes.get() * kernel.launches as u64)?;
    let moved: f64 = moving.traffic.iter().map(|traffic| traffic.by_kernels).sum();
    let counted: f64 = moving.traffic.iter().map(|traffic| traffic.counted).sum();
    let explained =
        moving.traffic.iter().map(|traffic| traffic.by_kernels + traffic.by_copies).sum::<f64>() / counted;
    let per_launch = |kernel: &HostMemoryKernel| bytes(kernel.bytes.get());
    let (steps, unit) = (facts.steps(), facts.unit());
    let gbps = (largest.bytes.get() * largest.launches as u64) as f64 / largest.total.max(1) as f64;
    let name = facts.trace.names().get(largest.name);
    let certainty = if largest.is_certain {
        ""
    } else {
        " Other kernels that ran at the same times explain the traffic as well."
    };
    let again = again(largest);
    let title =
        (largest.direction == Direction::DeviceToHost).then(|| "Kernels write host memory".to_owned());
    Some(Draft {
        title,
        seen: format!(
            "{} of kernel time per {unit} waits for the link: kernels {} host memory at {gbps:.0} GB/s, mostly {}, {} per launch.{again}{certainty}",
            milliseconds(waiting / steps),
            doing(largest.direction),
            short(name),
            per_launch(largest),
        ),
        evidence: json!({
            "kernel": name,
            "direction": doing(largest.direction),
            "waiting_ms_per_step": waiting / steps,
            "bytes_per_launch": largest.bytes.get(),
            "different_bytes_per_launch": largest.once.likely,
            "gbps": gbps,
            "share_of_counted_bytes": moved / counted.max(1.0),
            "share_explained": explained,
        }),
        saves: Saving { low: 0.0, high: waiting / facts.gpu_steps() },
        fix: Fix::new(
            "Copy what these kernels read into a buffer on the GPU, one block ahead, on a second stream; the weights of a \
             PyTorch model: busbound.offload(model, gpu_memory=…).",
        )
        .code(PREFETCH_CODE),
        at: intervals(facts),
    })
}

/// That it reads the same data several times, which a copy moves once.
fn again(kernel: &HostMemoryKernel) -> String {
    let times = kernel.bytes.get() as f64 / kernel.once.likely.max(1) as f64;
    if times < 1.5 {
        return String::new();
    }
    format!(" It reads {} about {times:.0} times; a copy moves them once.", bytes(kernel.once.likely))
}

/// The name of a kernel without its template arguments.
fn short(name: &str) -> &str {
    name.trim_start_matches("void ").split(['<', '(']).next().unwrap_or(name)
}

fn intervals(facts: &Facts<'_>) -> Vec<Interval> {
    let moving = facts.graph.work.iter().filter(|work| facts.graph.host_bytes(work).is_some());
    moving.map(|work| facts.trace.event(work.event).interval()).collect()
}
