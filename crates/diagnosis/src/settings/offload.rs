//! Which settings configure offloading in each framework?

use busbound_whatif::Range;
use busbound_whatif::plan::offload::{Engine, EngineLayers, EngineSettings, engine_settings};

use super::{Proposal, Target, Value};

/// What an offloaded run should do: one recommendation, which each framework's settings follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offloading {
    /// Layers to copy ahead of the one that runs.
    pub(crate) depth: u32,
    /// Share that stays on the GPU, 0 to 1.
    pub(crate) resident: f64,
    /// Bytes of one layer, if known.
    pub(crate) layer_bytes: Option<f64>,
}

/// The engines whose settings choose layers.
pub(crate) const ENGINES: [(Target, Engine); 2] =
    [(Target::Sglang, Engine::Sglang), (Target::Vllm, Engine::Vllm)];

/// Any number that many groups divide; the chosen settings say in which groups.
const USUAL_LAYERS: u32 = 60;
/// DeepSpeed counts weights, not bytes.
const BYTES_PER_WEIGHT: f64 = 2.0;

impl Offloading {
    /// The settings with which this engine comes nearest, without knowing the layers: copies that take as long as
    /// compute hides with this resident share.
    fn of_engine(self, engine: Engine) -> Option<EngineSettings> {
        let copied = (1.0 - self.resident).max(0.01);
        let layers = EngineLayers { count: USUAL_LAYERS, compute_ms: Range::one(1.0), copy_ms: 1.0 / copied };
        let resident = (self.resident * f64::from(layers.count)).round() as u32;
        // One more than the plan's ring: SGLang always needs it, and groups rarely meet a share exactly.
        let most_on_gpu = resident + self.depth + 2;
        engine_settings(engine, layers, most_on_gpu).map(|step| step.settings)
    }
}

/// Prefetching, where the number of layers is not known.
pub(crate) fn prefetching(offloading: Offloading) -> Vec<Proposal> {
    let of_engine = |(target, engine)| Some(engine_proposals(target, offloading.of_engine(engine)?));
    let mut list: Vec<Proposal> = ENGINES.into_iter().filter_map(of_engine).flatten().collect();
    list.extend(ahead(offloading));
    list
}

pub(crate) fn engine_proposals(target: Target, settings: EngineSettings) -> [Proposal; 3] {
    [
        Proposal::new(target, "offload_group_size", settings.group_size),
        Proposal::new(target, "offload_num_in_group", settings.num_in_group),
        Proposal::new(target, "offload_prefetch_step", settings.prefetch_step),
    ]
}

/// A copy stream, pinned memory, and how far ahead: in the frameworks that do not choose layers.
pub(crate) fn ahead(offloading: Offloading) -> Vec<Proposal> {
    let depth = offloading.depth.max(1);
    let mut list = Vec::new();
    list.push(Proposal::new(Target::SglangDiffusion, "dit_layerwise_offload", true));
    list.push(Proposal::new(Target::SglangDiffusion, "dit_offload_prefetch_size", depth));
    list.push(Proposal::new(Target::SglangDiffusion, "pin_cpu_memory", true));
    if offloading.resident > 0.0 {
        let share = Value::Share(offloading.resident);
        list.push(Proposal::new(Target::SglangDiffusion, "dit_layerwise_resident_layers", share));
        list.push(Proposal::new(Target::SglangDiffusion, "dit_layerwise_residency_policy", "strided"));
    }
    list.extend(pinned());
    list.push(Proposal::new(Target::Fsdp2, "set_modules_to_forward_prefetch", depth));
    if let Some(bytes) = offloading.layer_bytes {
        let weights = (f64::from(depth) * bytes / BYTES_PER_WEIGHT) as u64;
        list.push(Proposal::new(Target::DeepSpeed, "zero_optimization.stage3_prefetch_bucket_size", weights));
    }
    list
}

/// diffusers: leaf level, because its blocks are copied one tensor at a time too, and the host waits for each block.
pub(crate) fn group_offloading() -> Vec<Proposal> {
    vec![
        Proposal::new(Target::Diffusers, "offload_type", "leaf_level"),
        Proposal::new(Target::Diffusers, "use_stream", true),
        Proposal::new(Target::Diffusers, "non_blocking", true),
        // Without it, the host waits at the end of every group.
        Proposal::new(Target::Diffusers, "record_stream", true),
    ]
}

/// Pinned host memory.
pub(crate) fn pinned() -> Vec<Proposal> {
    let mut list = vec![Proposal::new(Target::SglangDiffusion, "pin_cpu_memory", true)];
    // Its stream pins the weights.
    list.extend(group_offloading());
    list.extend(sharded(true));
    list.extend([
        Proposal::new(Target::DeepSpeed, "zero_optimization.stage", 3_u32),
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_param.device", "cpu"),
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_param.pin_memory", true),
        fsdp_policy("CPUOffloadPolicy(pin_memory=True)"),
    ]);
    list
}

/// FSDP2's parameters in host memory or not.
pub(crate) fn fsdp_policy(policy: &'static str) -> Proposal {
    Proposal::new(Target::Fsdp2, "offload_policy", Value::Code(policy))
}

/// The optimizer's state stays in host memory, pinned.
pub(crate) fn pinned_optimizer() -> Vec<Proposal> {
    vec![
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_optimizer.device", "cpu"),
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_optimizer.pin_memory", true),
    ]
}

/// Everything stays on the GPU.
pub(crate) fn no_offloading() -> Vec<Proposal> {
    let mut list = vec![
        Proposal::new(Target::Vllm, "cpu_offload_gb", 0_u32),
        Proposal::new(Target::Sglang, "cpu_offload_gb", 0_u32),
        Proposal::new(Target::SglangDiffusion, "dit_layerwise_offload", false),
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_param.device", "none"),
        fsdp_policy("OffloadPolicy()"),
    ];
    list.extend(sharded(false));
    list
}

/// accelerate with FSDP2, which pins what it offloads.
fn sharded(offloads: bool) -> Vec<Proposal> {
    vec![
        Proposal::new(Target::Accelerate, "distributed_type", "FSDP"),
        Proposal::new(Target::Accelerate, "fsdp_config.fsdp_version", 2_u32),
        // Without it, the whole model is one unit, and nothing overlaps.
        Proposal::new(Target::Accelerate, "fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"),
        Proposal::new(Target::Accelerate, "fsdp_config.fsdp_offload_params", offloads),
    ]
}

#[cfg(test)]
mod tests {
    use busbound_whatif::plan::offload::{Engine, EngineSettings};

    use super::{Offloading, prefetching};
    use crate::settings::{Target, Value};

    #[test]
    fn two_buffers_are_the_least_that_overlaps() {
        let chosen = |resident: f64, depth: u32| {
            let EngineSettings { group_size, num_in_group, prefetch_step } =
                Offloading { depth, resident, layer_bytes: None }.of_engine(Engine::Vllm).unwrap();
            (group_size, num_in_group, prefetch_step)
        };
        assert_eq!(chosen(0.0, 1), (1, 1, 2));
        assert_eq!(chosen(0.5, 2), (2, 1, 2));
        assert_eq!(chosen(0.75, 2), (4, 1, 3));
    }

    #[test]
    fn frameworks_agree_on_the_depth() {
        let list = prefetching(Offloading { depth: 3, resident: 0.0, layer_bytes: None });
        let value = |target: Target, key: &str| {
            let found = list.iter().find(|proposal| proposal.target == target && proposal.key == key);
            found.unwrap_or_else(|| panic!("{key}")).value.clone()
        };
        assert_eq!(value(Target::Fsdp2, "set_modules_to_forward_prefetch"), Value::Count(3));
        assert_eq!(value(Target::SglangDiffusion, "dit_offload_prefetch_size"), Value::Count(3));
        assert_eq!(value(Target::Diffusers, "record_stream"), Value::Flag(true));
        assert_eq!(value(Target::Accelerate, "fsdp_config.fsdp_offload_params"), Value::Flag(true));
    }
}
