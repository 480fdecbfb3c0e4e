//! Does the GPU wait for the hooks of an offloading framework?

use busbound_cause::Resource;
use busbound_cause::idle::GapCause;
use busbound_trace::{Call, Event, EventKind, Interval, IntervalSet, Nanos, Timestamp, Track, TrackId};
use busbound_whatif::replay::Stream;
use serde_json::json;

use super::common::host_idle::WORTH_IT;
use super::common::prefetch::OFFLOAD_CODE;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
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
                   annotations and Python frames. accelerate is also recognized by its operators: each weight goes up \
                   before its module and is replaced by an empty one after it. Without any of these there is no finding. Saving: what \
                   the replay with `stream` gives, for accelerate and diffusers; else 30% to 100% of that idle time.",
        fix: "Use the framework's own setting. accelerate: pass a pinned state dict to `cpu_offload`, or keep more layers on the GPU \
              with `dispatch_model`. diffusers: `enable_group_offload` at leaf level with `use_stream` and `record_stream`. \
              FSDP2: `CPUOffloadPolicy(pin_memory=True)`, and prefetch the next module. On one GPU, \
              `busbound.offload(model, gpu_memory=…)` instead of the hooks streams the weights; `--apply stream` predicts it.",
        code: &[CODE_ACCELERATE, CODE_DIFFUSERS, CODE_FSDP, OFFLOAD_CODE],
        assumes: "The version of the framework has this setting.",
    },
};

const CODE_ACCELERATE: &str = "\
pinned = {name: t.pin_memory() for name, t in model.state_dict().items()}
cpu_offload(model, execution_device=device, state_dict=pinned)
# or, if only some layers do not fit, keep the rest on the GPU:
device_map = infer_auto_device_map(model, max_memory={0: \"60GiB\", \"cpu\": \"200GiB\"})
dispatch_model(model, device_map, state_dict=pinned)";

const CODE_DIFFUSERS: &str = "\
pipe.transformer.enable_group_offload(onload_device=torch.device(\"cuda\"), offload_device=torch.device(\"cpu\"),
                                      offload_type=\"leaf_level\", use_stream=True, record_stream=True)";

const CODE_FSDP: &str = "\
policy = CPUOffloadPolicy(pin_memory=True)
for block in model.blocks:
    fully_shard(block, offload_policy=policy)
fully_shard(model, offload_policy=policy)
for block, following in zip(model.blocks, model.blocks[1:]):
    block.set_modules_to_forward_prefetch([following])";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framework {
    Accelerate,
    Diffusers,
    Fsdp,
}

impl Framework {
    const ALL: [Self; 3] = [Self::Accelerate, Self::Diffusers, Self::Fsdp];

    fn name(self) -> &'static str {
        match self {
            Self::Accelerate => "accelerate",
            Self::Diffusers => "diffusers",
            Self::Fsdp => "FSDP",
        }
    }

    /// Whether this annotation or frame is one of its hooks. A frame around the module's own forward is not.
    fn is_hook(self, name: &str) -> bool {
        let is_one = match self {
            Self::Accelerate => name.contains("accelerate/hooks.py") || name.contains("AlignDevicesHook"),
            Self::Diffusers => name.contains("diffusers/hooks/") || name.contains("GroupOffloadingHook"),
            Self::Fsdp => {
                name.starts_with("FSDP::")
                    || name.starts_with("FullyShardedDataParallel.")
                    || name.contains("torch/distributed/fsdp/_fully_shard/_fsdp_state.py")
            }
        };
        is_one && !name.ends_with(".forward") && !name.ends_with("new_forward")
    }

    fn fix(self) -> Fix {
        match self {
            Self::Accelerate => Fix::new(
                "Stream the weights instead: busbound.offload(model, gpu_memory=\"8GB\"). Or pass a pinned state dict: \
                 cpu_offload(model, state_dict=pinned). Or keep more layers on the GPU: dispatch_model(model, device_map).",
            )
            .doing("streaming the weights")
            .code(CODE_ACCELERATE)
            .replayed_as(vec![Stream.into()]),
            Self::Diffusers => Fix::new(
                "Stream the weights instead: busbound.offload(model, gpu_memory=\"8GB\"). Or use \
                 enable_group_offload(offload_type=\"leaf_level\", use_stream=True, record_stream=True).",
            )
            .doing("streaming the weights")
            .code(CODE_DIFFUSERS)
            .replayed_as(vec![Stream.into()])
            .settings(group_offloading()),
            Self::Fsdp => Fix::new(
                "Use CPUOffloadPolicy(pin_memory=True), and prefetch the next module with set_modules_to_forward_prefetch.",
            )
            .doing("pinning and prefetching offloaded modules")
            .code(CODE_FSDP)
            .settings([fsdp_policy("CPUOffloadPolicy(pin_memory=True)")])
            .setting(Target::Fsdp2, "set_modules_to_forward_prefetch", 1_u32),
        }
    }
}

/// When the hooks of a framework ran.
struct Hooks {
    framework: Framework,
    times: IntervalSet,
    /// Inferred from operators, not recorded.
    inferred: bool,
}

impl Hooks {
    fn of(facts: &Facts<'_>) -> Option<Self> {
        let recorded = Framework::ALL.into_iter().filter_map(|framework| Self::recorded(facts, framework));
        recorded.max_by_key(|hooks| hooks.times.length()).or_else(|| Self::inferred(facts))
    }

    fn recorded(facts: &Facts<'_>, framework: Framework) -> Option<Self> {
        let is_hook: Vec<bool> = facts.trace.names().iter().map(|name| framework.is_hook(name)).collect();
        if !is_hook.contains(&true) {
            return None;
        }
        let is_range =
            |event: &Event<'_>| matches!(event.kind(), EventKind::Annotation | EventKind::PythonFrame);
        let events = facts.trace.threads().flat_map(|track| track.events());
        let these = events.filter(|event| is_range(event) && is_hook[event.name_id().index()]);
        let times = IntervalSet::from_unsorted(these.map(|event| event.interval()));
        (!times.is_empty()).then_some(Self { framework, times, inferred: false })
    }

    /// accelerate: from the operator that replaces a weight after its module to the next kernel launch.
    fn inferred(facts: &Facts<'_>) -> Option<Self> {
        let of_thread = |(track, _): (TrackId, _)| replaced_weights(facts, &facts.trace.track(track));
        let times = IntervalSet::from_unsorted(facts.host.launching_threads().flat_map(of_thread));
        (!times.is_empty()).then_some(Self { framework: Framework::Accelerate, times, inferred: true })
    }

    /// Idle time in the hooks, per step. Idle time in copies and syncs has its own findings.
    fn idle(&self, facts: &Facts<'_>) -> (f64, Vec<Interval>) {
        let pieces = facts.gaps.pieces();
        let in_hooks = pieces.filter(|piece| matches!(piece.cause, GapCause::Host | GapCause::Launch));
        let gaps: Vec<Interval> = in_hooks.map(|gap| gap.interval).collect();
        let idle: Nanos = gaps.iter().map(|gap| self.times.length_within(*gap)).sum();
        let at = gaps.into_iter().filter(|gap| self.times.length_within(*gap).get() > 0).collect();
        (facts.breakdown.averaged(idle.as_millis()).unwrap_or(0.0), at)
    }
}

/// A pattern needs this many weights per step.
const FEWEST_WEIGHTS: f64 = 8.0;
/// accelerate replaces every weight that it uploads. Share of the uploads.
const REPLACED: f64 = 0.8;

/// The times in which accelerate's hooks ran on a thread; empty if its operators do not look like accelerate.
fn replaced_weights(facts: &Facts<'_>, track: &Track<'_>) -> Vec<Interval> {
    let mut uploads = 0u64;
    let mut since: Option<Timestamp> = None;
    let (mut replaced, mut hooks) = (0u64, Vec::new());
    for event in track.events() {
        match event.kind() {
            EventKind::Operator if event.name() == "aten::_to_copy" => match moved_by(facts, track, &event) {
                Moved::Up => uploads += 1,
                Moved::Nothing if is_wrapped(track, &event) => {
                    replaced += 1;
                    since = since.or(Some(event.start()));
                }
                _ => {}
            },
            _ if facts.host.call_kind(&event) == Call::Launch => {
                hooks.extend(since.take().map(|since| Interval::new(since, event.start())));
            }
            _ => {}
        }
    }
    let is_accelerate =
        uploads as f64 >= FEWEST_WEIGHTS * facts.steps() && replaced as f64 >= REPLACED * uploads as f64;
    if is_accelerate { hooks } else { Vec::new() }
}

/// What a cast or copy operator did.
enum Moved {
    Up,
    /// No call inside: it made an empty tensor on the meta device, or worked on the CPU.
    Nothing,
    Otherwise,
}

fn moved_by(facts: &Facts<'_>, track: &Track<'_>, operator: &Event<'_>) -> Moved {
    let mut inside = track
        .events_between(operator.start(), operator.end())
        .filter(|event| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall))
        .peekable();
    if inside.peek().is_none() {
        return Moved::Nothing;
    }
    if inside.any(|call| facts.host.call_kind(&call) == Call::Copy) { Moved::Up } else { Moved::Otherwise }
}

/// Whether the next operator makes a parameter of the result.
fn is_wrapped(track: &Track<'_>, operator: &Event<'_>) -> bool {
    let mut after = track.events_from(track.position(operator.end()));
    after.find(|event| event.kind() == EventKind::Operator).is_some_and(|next| next.name() == "aten::detach")
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let hooks = Hooks::of(facts)?;
    let (idle, at) = hooks.idle(facts);
    if idle < WORTH_IT * facts.step_ms() {
        return None;
    }
    let (name, per) = (hooks.framework.name(), facts.unit().per());
    let how = if hooks.inferred { "The operators look like accelerate's CPU offload. " } else { "" };
    let allocating = facts.breakdown.averaged(facts.allocating_idle_ms)?;
    Some(Draft {
        title: Some(format!("Waiting for the hooks of {name}")),
        seen: format!(
            "{how}The GPU is idle for {}{per} while hooks of {name} move weights before and after each module, not counting the copies. It is idle inside allocation calls for {}.",
            milliseconds(idle),
            milliseconds(allocating),
        ),
        evidence: json!({
            "framework": name,
            "inferred": hooks.inferred,
            "idle_in_hooks_ms_per_step": idle,
            "idle_allocating_ms_per_step": allocating,
        }),
        saves: Saving { low: 0.3 * idle, high: idle },
        fix: hooks.framework.fix(),
        at,
    })
}
