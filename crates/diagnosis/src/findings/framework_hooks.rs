//! Does the GPU wait for the hooks of an offloading framework?

use busbound_cause::Resource;
use busbound_cause::idle::GapCause;
use busbound_trace::{Direction, Interval, MemoryKind, Nanos};
use busbound_whatif::replay::Stream;
use serde_json::json;

use super::common::frameworks::{
    ACCELERATE_CODE, ACCELERATE_DISPATCH_CODE, DIFFUSERS_CODE, FSDP_CODE, FSDP_PREFETCH_CODE, Framework,
    Hooks,
};
use super::common::host_idle::WORTH_IT;
use super::common::prefetch::OFFLOAD_CODE;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::Target;
use crate::settings::offload::{fsdp_policy, group_offloading};

pub(super) static RULE: Rule = Rule {
    title: "Waiting for the hooks of a framework",
    doing: "offloading without the framework's hooks",
    precondition: "The version of the framework has this setting. The profiler itself slows Python down, so check the step time without it first.",
    basis: "bound: idle time in the framework's hooks",
    candidate: Candidate::None(
        "What the framework's other settings cost is not in the trace. For accelerate and diffusers, `stream` predicts `busbound.offload` instead of the hooks.",
    ),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h, Resource::Host, Resource::Launch],
    check,
    document: Document {
        meaning: "A framework moves weights in hooks before and after each module (accelerate's `cpu_offload`, diffusers' group \
                  offloading, FSDP2's `CPUOffloadPolicy`). The GPU is idle while the hooks run Python and allocate memory.",
        computed: "Evidence: GPU idle time in the hooks, without idle time inside copy and sync calls, is 3% or more of the time. Hooks are recognized by \
                   annotations and Python frames, and large copies to the GPU must be issued in them. accelerate is also recognized by its operators: each weight goes up \
                   before its module and is replaced by an empty one after it. Without any of these there is no finding. Saving: what \
                   the replay with `stream` gives, for accelerate and diffusers; else 30% to 100% of that idle time.",
        fix: "Use the framework's own setting. accelerate: pass a pinned state dict to `cpu_offload` unless the copies are pinned already, or keep more layers on the GPU \
              with `dispatch_model`. diffusers: `enable_group_offload` at leaf level with `use_stream` and `record_stream`. \
              FSDP2: `CPUOffloadPolicy(pin_memory=True)`, and prefetch the next module. On one GPU, \
              `busbound.offload(model, gpu_memory=…)` instead of the hooks streams the weights; `--apply stream` predicts it.",
        code: &[
            ACCELERATE_CODE,
            ACCELERATE_DISPATCH_CODE,
            DIFFUSERS_CODE,
            FSDP_CODE,
            FSDP_PREFETCH_CODE,
            OFFLOAD_CODE,
        ],
        assumes: "The version of the framework has this setting.",
    },
};

fn fix(framework: Framework, is_pinned: bool) -> Fix {
    match (framework, is_pinned) {
        (Framework::Accelerate, is_pinned) => {
            let (pin, code) = match is_pinned {
                true => ("", ACCELERATE_DISPATCH_CODE),
                false => (" Or pass a pinned state dict: cpu_offload(model, state_dict=pinned).", ACCELERATE_CODE),
            };
            Fix::new(format!(
                "Stream the weights with the Python package instead: busbound.offload(model, gpu_memory=…).{pin} Or keep more layers on the GPU: \
                 dispatch_model(model, device_map)."
            ))
            .doing("streaming the weights")
            .code(code)
            .replayed_as(vec![Stream.into()])
        }
        (Framework::Diffusers, _) => Fix::new(
            "Stream the weights with the Python package instead: busbound.offload(model, gpu_memory=…). Or use \
             enable_group_offload(offload_type=\"leaf_level\", use_stream=True, record_stream=True).",
        )
        .doing("streaming the weights")
        .code(DIFFUSERS_CODE)
        .replayed_as(vec![Stream.into()])
        .settings(group_offloading()),
        (Framework::Fsdp, true) => Fix::new("Prefetch the next module with set_modules_to_forward_prefetch.")
            .doing("prefetching offloaded modules")
            .code(FSDP_PREFETCH_CODE)
            .setting(Target::Fsdp2, "set_modules_to_forward_prefetch", 1_u32),
        (Framework::Fsdp, false) => Fix::new(
            "Use CPUOffloadPolicy(pin_memory=True), and prefetch the next module with set_modules_to_forward_prefetch.",
        )
        .doing("pinning and prefetching offloaded modules")
        .code(FSDP_CODE)
        .settings([fsdp_policy("CPUOffloadPolicy(pin_memory=True)")])
        .setting(Target::Fsdp2, "set_modules_to_forward_prefetch", 1_u32),
    }
}

/// Whether all large H2D copies read pinned memory.
fn is_pinned(facts: &Facts<'_>) -> bool {
    let is_inbound = |copy: &&Copy<'_>| copy.transfer.direction == Direction::HostToDevice && copy.is_large();
    let mut copies = facts.issued_copies().filter(is_inbound).peekable();
    copies.peek().is_some() && copies.all(|copy| copy.host_memory() == Some(MemoryKind::Pinned))
}

/// Idle time in the hooks, per step. Idle time in copies and syncs has its own findings.
fn idle_in(hooks: &Hooks, facts: &Facts<'_>) -> (f64, Vec<Interval>) {
    let pieces = facts.gaps.pieces();
    let in_hooks = pieces.filter(|piece| matches!(piece.cause, GapCause::Host | GapCause::Launch));
    let gaps: Vec<Interval> = in_hooks.map(|gap| gap.interval).collect();
    let idle: Nanos = gaps.iter().map(|gap| hooks.times.length_within(*gap)).sum();
    let at = gaps.into_iter().filter(|gap| hooks.times.length_within(*gap).get() > 0).collect();
    (facts.breakdown.averaged(idle.as_millis()).unwrap_or(0.0), at)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let hooks = Hooks::of(facts).filter(|hooks| hooks.move_weights(facts))?;
    let (idle, at) = idle_in(&hooks, facts);
    if idle < WORTH_IT * facts.step_ms() {
        return None;
    }
    let (name, per) = (hooks.framework.name(), facts.unit().per());
    let how = if hooks.inferred { "The operators look like accelerate's CPU offload. " } else { "" };
    let allocating = facts.breakdown.averaged(facts.allocating_idle_ms)?;
    let allocation = match allocating > 0.0 {
        true => format!(" It is idle inside allocation calls for {}.", milliseconds(allocating)),
        false => String::new(),
    };
    Some(Draft {
        title: Some(format!("Waiting for the hooks of {name}")),
        seen: format!(
            "{how}The GPU is idle for {}{per} while hooks of {name} move weights before and after each module, not counting the copies.{allocation}",
            milliseconds(idle),
        ),
        evidence: json!({
            "framework": name,
            "inferred": hooks.inferred,
            "idle_in_hooks_ms_per_step": idle,
            "idle_allocating_ms_per_step": allocating,
        }),
        saves: Saving { low: 0.3 * idle, high: idle },
        fix: fix(hooks.framework, is_pinned(facts)),
        at,
    })
}
