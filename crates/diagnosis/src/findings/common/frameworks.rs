//! Which offloading framework moves the weights, and when do its hooks run?

use busbound_trace::{Call, Direction, Event, EventKind, Interval, IntervalSet, Timestamp, Track, TrackId};

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;

macro_rules! fsdp_pin {
    () => {
        "\
policy = CPUOffloadPolicy(pin_memory=True)
for block in model.blocks:
    fully_shard(block, offload_policy=policy)
fully_shard(model, offload_policy=policy)"
    };
}

macro_rules! fsdp_prefetch {
    () => {
        "\
for block, following in zip(model.blocks, model.blocks[1:]):
    block.set_modules_to_forward_prefetch([following])"
    };
}

macro_rules! accelerate_pin {
    () => {
        "\
pinned = {name: t.pin_memory() for name, t in model.state_dict().items()}
cpu_offload(model, execution_device=device, state_dict=pinned)"
    };
}

macro_rules! accelerate_dispatch {
    () => {
        "\
# if only some layers do not fit, keep the rest on the GPU (`pinned`: the pinned state dict)
device_map = infer_auto_device_map(model, max_memory={0: \"60GiB\", \"cpu\": \"200GiB\"})
dispatch_model(model, device_map, state_dict=pinned)"
    };
}

/// FSDP2 allocates and copies the buffers of offloaded modules itself.
pub(in crate::findings) const FSDP_PIN_CODE: &str = fsdp_pin!();
pub(in crate::findings) const FSDP_PREFETCH_CODE: &str = fsdp_prefetch!();
pub(in crate::findings) const FSDP_CODE: &str = concat!(fsdp_pin!(), "\n", fsdp_prefetch!());

/// A pinned state dict for accelerate's hooks.
pub(in crate::findings) const ACCELERATE_PIN_CODE: &str = accelerate_pin!();
pub(in crate::findings) const ACCELERATE_DISPATCH_CODE: &str = accelerate_dispatch!();
pub(in crate::findings) const ACCELERATE_CODE: &str =
    concat!(accelerate_pin!(), "\n", accelerate_dispatch!());

/// Group offloading of diffusers on a stream, which pins the weights.
pub(in crate::findings) const DIFFUSERS_CODE: &str = "\
pipe.transformer.enable_group_offload(onload_device=torch.device(\"cuda\"), offload_device=torch.device(\"cpu\"),
                                      offload_type=\"leaf_level\", use_stream=True, record_stream=True)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::findings) enum Framework {
    Accelerate,
    Diffusers,
    Fsdp,
}

impl Framework {
    const ALL: [Self; 3] = [Self::Accelerate, Self::Diffusers, Self::Fsdp];

    pub(in crate::findings) fn name(self) -> &'static str {
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
}

/// Functions of diffusers' group offloading that run in each pass where something is offloaded.
const MOVES: [&str; 6] =
    ["pre_forward", "post_forward", "onload_", "offload_", "_onload_from_memory", "_offload_to_memory"];

/// When the hooks of a framework ran.
pub(in crate::findings) struct Hooks {
    pub(in crate::findings) framework: Framework,
    pub(in crate::findings) times: IntervalSet,
    /// Inferred from operators, not recorded.
    pub(in crate::findings) inferred: bool,
}

impl Hooks {
    pub(in crate::findings) fn of(facts: &Facts<'_>) -> Option<Self> {
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

    /// Whether large uploads are issued in them. Hooks of frameworks also run where nothing is offloaded: those of FSDP gather shards, and
    /// every pipeline of diffusers asks its modules for theirs.
    pub(in crate::findings) fn move_weights(&self, facts: &Facts<'_>) -> bool {
        let is_upload =
            |copy: &&Copy<'_>| copy.transfer.direction == Direction::HostToDevice && copy.is_large();
        self.inferred || facts.issued_copies().filter(is_upload).any(|copy| self.issue(copy))
    }

    /// Whether they are there to move weights, and for nothing else.
    pub(in crate::findings) fn are_for_offloading(&self, facts: &Facts<'_>) -> bool {
        let moves = |name: &str| {
            let own = name.rsplit([' ', '.']).next().unwrap_or(name);
            name.contains("group_offloading") && MOVES.contains(&own) || name.contains("GroupOffloadingHook")
        };
        match self.framework {
            Framework::Accelerate => !self.inferred,
            // A pipeline asks for its hooks where nothing is offloaded, too.
            Framework::Diffusers => facts.trace.names().iter().any(moves),
            Framework::Fsdp => false,
        }
    }

    fn issue(&self, copy: &Copy<'_>) -> bool {
        copy.call.is_some_and(|call| self.times.covers(call.start()))
    }

    /// The framework whose recorded hooks issue most of the bytes of these copies.
    pub(in crate::findings) fn issuing(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Option<Framework> {
        let mut recorded =
            Framework::ALL.into_iter().filter_map(|framework| Self::recorded(facts, framework));
        recorded.find(|hooks| hooks.issue_most_of(copies)).map(|hooks| hooks.framework)
    }

    fn issue_most_of(&self, copies: &[&Copy<'_>]) -> bool {
        let (mut own, mut all) = (0u64, 0u64);
        for copy in copies {
            let bytes = copy.bytes().unwrap_or(0);
            all = all.saturating_add(bytes);
            own = own.saturating_add(if self.issue(copy) { bytes } else { 0 });
        }
        own > all / 2
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
