//! Is the GPU idle while the host pins memory?

use busbound_cause::Resource;
use busbound_trace::Event;
use serde_json::json;

use super::common::host_idle::number_and_ms;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::gaps::{call_times, idle_inside_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Pinning memory within the step",
    doing: "pinning buffers once",
    precondition: "The steps reuse buffers of the same sizes, which fit in pinned memory.",
    basis: "bound: idle time inside calls that pin memory",
    candidate: Candidate::None(
        "No what-if change removes calls that pin memory: the trace does not show which buffers could be reused.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Host, Resource::Launch],
    check,
    document: Document {
        meaning: "Calls that pin host memory (`cudaHostAlloc`, `cudaHostRegister`) run within the steps, and the GPU is idle \
                  meanwhile. Pinning fresh memory takes 0.5 to 0.7 s per GB (one H200's host, fixtures/machines/raw/pinned.json), longer \
                  than copying it from pageable memory.",
        computed: "Evidence: GPU idle time inside such calls is 3% or more of the time. Saving: 50% to 100% of that idle time.",
        fix: "Allocate pinned buffers once, before the loop, and copy into them. PyTorch reuses pinned blocks that were freed, but rounds \
              their size up to a power of two: buffers of slightly different sizes may still be new.",
        code: &[CODE],
        assumes: "The steps reuse buffers of the same sizes, which fit in pinned memory.",
    },
};

const CODE: &str = "\
buffers = [torch.empty(largest, pin_memory=True) for _ in range(2)]    # once
copied = [torch.cuda.Event() for _ in range(2)]
for step, batch in enumerate(batches):
    copied[step % 2].synchronize()                                     # this buffer is free again
    part = buffers[step % 2][: batch.numel()].view_as(batch).copy_(batch)
    x = part.to(device, non_blocking=True)
    copied[step % 2].record()";

/// Share of the time that the GPU must wait.
const LEAST: f64 = 0.03;

fn pins(call: &Event<'_>) -> bool {
    ["HostAlloc", "HostRegister", "MallocHost", "MemAllocHost"].iter().any(|part| call.name().contains(part))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    // Without steps, a buffer that is pinned once looks like one that is pinned in a loop.
    if facts.unit() == Unit::Trace {
        return None;
    }
    let calls = || facts.host.allocations().filter(pins);
    let idle = idle_inside_ms(&facts.gaps, &call_times(calls()));
    if idle < LEAST * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let (number, host) = number_and_ms(calls());
    Some(Draft {
        title: Some(format!("Pinning memory within the {unit}")),
        seen: format!(
            "{} per {unit} that pin host memory take {}, and the GPU is idle for {} of it.",
            plural((number as f64 / steps).round().max(1.0) as u64, "call", "calls"),
            milliseconds(host / steps),
            milliseconds(idle / steps),
        ),
        evidence: json!({
            "calls_per_step": number as f64 / steps,
            "host_ms_per_step": host / steps,
            "idle_ms_per_step": idle / steps,
        }),
        saves: Saving { low: 0.5 * idle / facts.gpu_steps(), high: idle / facts.gpu_steps() },
        fix: Fix::new("Allocate pinned buffers once, before the loop, and copy into them. Pinning takes longer than copying.").code(CODE),
        at: calls().map(|call| call.interval()).collect(),
    })
}
