//! Is the GPU idle while the host allocates or frees memory?

use busbound_cause::Resource;
use serde_json::json;

use super::common::host_idle::number_and_ms;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
use crate::findings::FindingId;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::settings::Target;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Memory allocation within the step",
    doing: "allocating once, before the loop",
    precondition: "Allocation continues after the warm-up. Memory allocated once, during the warm-up, stays in the caching allocator.",
    basis: "bound: idle time inside allocation calls",
    candidate: Candidate::None(
        "No what-if change removes allocation calls: the trace does not show which of them a cached block could serve.",
    ),
    effort: Effort::FewLines,
    unless: &[FindingId::FrameworkHooks, FindingId::PinningInLoop],
    relieves: &[Resource::Host, Resource::Launch, Resource::Sync],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread is inside calls that allocate or free memory \
                  (`cudaMalloc`, `cudaFree`, `cudaHostAlloc`, `cuMemMap` and similar).",
        computed: "Evidence: GPU idle time inside such calls is 5% or more of the time. Not reported if \
                   `framework_hooks` or `pinning_in_loop` is reported. Saving: 50% to 100% of that idle \
                   time.",
        fix: "Keep shapes constant, or allocate for the largest shape at the start. Do not call `empty_cache()` in the loop. \
              Pin host buffers once. Try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
        code: &[],
        assumes: "Allocation continues after the first steps. During the warm-up, allocations are normal.",
    },
};

fn fix(facts: &Facts<'_>) -> Fix {
    let (again, doing) = match facts.unit() {
        Unit::Trace => ("", "allocating once"),
        Unit::Step | Unit::Iteration => ("Do not call empty_cache() in the loop. ", RULE.doing),
    };
    if facts.program == Program::Cuda {
        let is_pooled = facts.host.allocations().any(|call| takes_from_pool(call.name()));
        let text = match is_pooled {
            true => {
                "The pool gives its memory back at each sync: let it keep it (cudaMemPoolSetAttribute, cudaMemPoolAttrReleaseThreshold), or allocate once."
            }
            false => {
                "Allocate for the largest size at the start and reuse the memory, or take it from a pool (cudaMallocAsync)."
            }
        };
        return Fix::new(text).doing(doing);
    }
    if let Some(variable) = without_caching(facts) {
        let text = format!(
            "PyTorch's caching allocator is off ({variable} is set): each tensor is a cudaMalloc and a cudaFree, which waits for the GPU. Unset it; it is for finding memory errors."
        );
        return Fix::new(text).doing("using the caching allocator");
    }
    Fix::new(format!(
        "Keep shapes constant, or allocate for the largest shape at the start. {again}Pin host buffers once. Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ))
    .doing(doing)
    .setting(Target::Environment, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
}

/// `cudaMallocAsync`, `cudaMallocFromPoolAsync` and `cuMemAllocAsync` take memory from a pool.
fn takes_from_pool(call: &str) -> bool {
    call.contains("FromPool") || call.contains("llocAsync")
}

/// The variable that turned the caching allocator off, if it is recorded.
fn without_caching(facts: &Facts<'_>) -> Option<&'static str> {
    const OFF: [&str; 2] = ["PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING"];
    let variables = facts.trace.origin().environment().variables?;
    OFF.into_iter().find(|name| variables.contains_key(*name))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = facts.allocating_idle_ms;
    if idle < 0.05 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let calls = || facts.host.allocations();
    let longest = calls().max_by_key(|call| (call.duration(), std::cmp::Reverse(call.id())))?;
    let (number, host) = number_and_ms(calls());
    // Without steps, one call that takes most of the time initializes CUDA: that is not in a loop.
    if facts.unit() == Unit::Trace && longest.duration().as_millis() > 0.5 * host {
        return None;
    }
    let place = facts.host.around(&longest).clause();
    Some(Draft {
        title: Some(format!("Memory allocation within the {unit}")),
        seen: format!(
            "{} per {unit} take {} of host time, and the GPU is idle for {} of it; the longest is {}, {}{place}.",
            plural((number as f64 / steps).round().max(1.0) as u64, "allocation call", "allocation calls"),
            milliseconds(host / steps),
            milliseconds(idle / steps),
            longest.name(),
            milliseconds(longest.duration().as_millis()),
        ),
        evidence: json!({
            "calls_per_step": number as f64 / steps,
            "host_ms_per_step": host / steps,
            "idle_ms_per_step": idle / steps,
            "longest_call": longest.name(),
            "longest_ms": longest.duration().as_millis(),
        }),
        saves: Saving { low: 0.5 * idle / facts.gpu_steps(), high: idle / facts.gpu_steps() },
        fix: fix(facts),
        at: calls().map(|call| call.interval()).collect(),
    })
}
