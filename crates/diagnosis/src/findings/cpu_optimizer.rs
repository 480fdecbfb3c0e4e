//! Does the GPU wait while the optimizer runs on the CPU?

use std::collections::BTreeMap;

use busbound_cause::training::is_backward;
use busbound_cause::{HostUse, Resource};
use busbound_trace::{EventKind, Interval, IntervalSet, Nanos, Place, Track, TrackId};
use busbound_whatif::replay::{Optimizer, Predicted};
use serde_json::json;

use super::common::host_idle::{HostIdle, WORTH_IT, host_gaps};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::cpu_optimizer::CpuOptimizer;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;
use crate::settings::Target;
use crate::settings::offload::pinned_optimizer;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Optimizer on the CPU",
    doing: "moving the optimizer off the critical path",
    precondition: "CPU cores are free during the backward pass, or the GPU has memory for the optimizer state.",
    basis: "bound: idle time in the optimizer, limited to the length of the backward pass",
    candidate: Candidate::None(
        "`optimizer=overlap` hides it only in the time in which the host waits. A program that runs it on another thread hides more, or less.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Host],
    check,
    document: Document {
        meaning: "The optimizer updates weights in host memory, and the GPU is idle until it is done.",
        computed: "Evidence: GPU idle time while the launching thread is in an optimizer step is 3% or more of the time, and \
                   operators on the CPU take most of it. Saving: at most that idle time, and at most the length of the \
                   backward pass that can hide it (all kernel time if operators are not recorded). At least nothing: an \
                   update in small parts can take longer than one of all weights.",
        fix: "Update each weight as soon as its gradient is complete, on another thread, while the backward pass computes the \
              next one; not if the optimizer already runs several times per step while the GPU copies or computes. If its \
              state fits, keep it on the GPU and use a fused optimizer: the fix says what a replay with `optimizer=gpu` \
              predicts.",
        code: &[CODE, GPU_CODE],
        assumes: "CPU cores are free during the backward pass, and no update needs all gradients first (as clipping by the \
                  global norm does).",
    },
};

const CODE: &str = "\
side, pool = torch.cuda.Stream(), concurrent.futures.ThreadPoolExecutor(1)
def arrived(p):                                  # the gradient of p is complete
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host[p].grad.copy_(p.grad, non_blocking=True)    # pinned
        done = side.record_event()
    p.grad.record_stream(side)
    pending.append(pool.submit(update, p, done))
def update(p, done):
    done.synchronize()
    optimizers[p].step()                         # one optimizer per weight or bucket, on host[p]
    with torch.cuda.stream(side):
        p.data.copy_(host[p], non_blocking=True)
for p in model.parameters():
    p.register_post_accumulate_grad_hook(arrived)
loss.backward()
for one in pending: one.result()                 # then: current_stream().wait_stream(side)

optimizer = torch.optim.AdamW(model.parameters(), fused=True)    # or on the GPU, if it fits";

const GPU_CODE: &str = "\
optimizer = torch.optim.AdamW(model.to(device).parameters(), fused=True)    # its state is where the weights are";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = HostIdle::of(facts, HostUse::Optimizer, WORTH_IT)?;
    // The Python code of an optimizer on the GPU is launch overhead.
    let in_operators: Nanos = host_gaps(facts, HostUse::Optimizer)
        .filter(|gap| gap.during.is_some_and(|id| facts.trace.event(id).kind() == EventKind::Operator))
        .map(|gap| gap.interval.length())
        .sum();
    let operators = facts.breakdown.averaged(in_operators.as_millis())?;
    if operators < 0.5 * idle.ms {
        return None;
    }
    let optimizer = CpuOptimizer::of(facts)?;
    let backward = backward_ms(facts);
    let beside = match optimizer.is_overlapped {
        true => format!("It runs in {:.0} parts, partly beside copies or kernels.", optimizer.runs),
        false => format!("The backward pass, which could hide it, takes {}.", milliseconds(backward)),
    };
    let saves = match optimizer.is_overlapped {
        true => Saving { low: 0.0, high: 0.0 },
        false => Saving { low: 0.0, high: idle.ms.min(backward) },
    };
    Some(Draft {
        title: None,
        seen: format!(
            "The GPU is idle while the CPU updates the weights: {}. {beside}",
            idle.describe(facts)
        ),
        evidence: json!({
            "idle_ms_per_step": idle.ms,
            "operators_ms_per_step": operators,
            "backward_ms_per_step": backward,
            "runs_per_step": optimizer.runs,
            "operators": idle.operators,
        }),
        saves,
        fix: fix(facts, &optimizer, saves),
        at: idle.at,
    })
}

/// A step on the GPU that takes less than this share of one with the optimizer beside backward is what to try first.
const FAR_BETTER: f64 = 0.8;

fn fix(facts: &Facts<'_>, optimizer: &CpuOptimizer, overlap: Saving) -> Fix {
    let beside_ms = facts.own_step_ms() - overlap.high;
    let is_far_better = |on_gpu: &Predicted| on_gpu.step_ms < FAR_BETTER * beside_ms;
    let moved = |text: String| {
        Fix::new(text)
            .doing("running the optimizer on the GPU")
            .replayed_as(vec![Optimizer::Gpu.into()])
            .setting(Target::DeepSpeed, "zero_optimization.offload_optimizer.device", "none")
    };
    match (optimizer.is_overlapped, optimizer.on_gpu) {
        (true, Some(on_gpu)) => moved(on_the_gpu("Run", &on_gpu, facts.unit())).code(GPU_CODE),
        (false, Some(on_gpu)) if is_far_better(&on_gpu) => {
            let text = on_the_gpu("If its state fits, run", &on_gpu, facts.unit());
            moved(format!("{text} Otherwise, let another thread {OVERLAP}")).code(CODE)
        }
        (true, None) => Fix::new("Give the optimizer more CPU threads (torch.set_num_threads).")
            .doing("giving the optimizer more CPU threads")
            .saving_known(false),
        (false, on_gpu) => {
            let or = on_gpu.map(|on_gpu| on_the_gpu(" Or run", &on_gpu, facts.unit()));
            let text = format!("Let another thread {OVERLAP}{}", or.unwrap_or_default());
            Fix::new(text).code(CODE).settings(pinned_optimizer())
        }
    }
}

/// `Or run the optimizer on the GPU (168 MB more GPU memory): 2.97 ms/step.`
fn on_the_gpu(run: &str, on_gpu: &Predicted, unit: Unit) -> String {
    let memory = match on_gpu.extra_bytes {
        0 => String::new(),
        more => format!(" ({} more GPU memory)", bytes(more)),
    };
    format!("{run} the optimizer on the GPU{memory}: {}{}.", milliseconds(on_gpu.step_ms), unit.per())
}

const OVERLAP: &str = "update each weight as soon as its gradient is complete (register_post_accumulate_grad_hook), while the backward pass continues.";

/// From the first to the last kernel that the backward pass launches; kernel time if operators do not show it.
fn backward_ms(facts: &Facts<'_>) -> f64 {
    let backward = backward_times(facts);
    let mut hulls: BTreeMap<(i32, Option<usize>), Interval> = BTreeMap::new();
    for stream in facts.trace.streams() {
        let Place::Stream { device, .. } = stream.place() else { continue };
        for kernel in stream.events().filter(|event| event.kind() == EventKind::Kernel) {
            let Some(call) = facts.host.call_behind(&kernel) else { continue };
            if backward.get(&call.track_id()).is_some_and(|times| times.covers(call.start())) {
                let own = kernel.interval();
                let hull = hulls.entry((device, facts.window.step_of_work(&kernel))).or_insert(own);
                *hull = hull.hull(own);
            }
        }
    }
    let total = match hulls.is_empty() {
        true => facts.time.compute_ms,
        false => hulls.values().map(|hull| hull.length()).sum::<Nanos>().as_millis(),
    };
    facts.breakdown.averaged(total).unwrap_or(0.0)
}

/// When each thread ran the backward pass.
fn backward_times(facts: &Facts<'_>) -> BTreeMap<TrackId, IntervalSet> {
    let backward: Vec<bool> = facts.trace.names().iter().map(is_backward).collect();
    let of_thread = |thread: Track<'_>| {
        let operators = thread.events().filter(|event| event.kind() == EventKind::Operator);
        let operators = operators.filter(|event| backward[event.name_id().index()]);
        (thread.id(), IntervalSet::from_unsorted(operators.map(|operator| operator.interval())))
    };
    facts.trace.threads().map(of_thread).collect()
}
