//! Which settings configure offloading in each framework?

use super::{Proposal, Target};

/// What an offloaded run should do.
pub(crate) struct Offloading {
    /// Groups to prefetch.
    pub(crate) depth: u32,
    /// Share that stays on the GPU, 0 to 1.
    pub(crate) resident: f64,
    /// Total number of layers, if known.
    pub(crate) layers: Option<u32>,
}

/// Prefetching: a copy stream, pinned memory, and the prefetch depth.
pub(crate) fn prefetching(offloading: &Offloading) -> Vec<Proposal> {
    let depth = offloading.depth.max(1);
    let copied = 1.0 - offloading.resident;
    let (group, of_group) = match offloading.layers {
        Some(layers) => of_layers(layers, copied),
        None => share(copied),
    };
    let mut list = Vec::new();
    for target in [Target::Sglang, Target::Vllm] {
        list.push(Proposal::new(target, "offload_group_size", group));
        list.push(Proposal::new(target, "offload_num_in_group", of_group));
        list.push(Proposal::new(target, "offload_prefetch_step", depth));
    }
    list.push(Proposal::new(Target::SglangDiffusion, "dit_layerwise_offload", "true"));
    list.push(Proposal::new(Target::SglangDiffusion, "dit_offload_prefetch_size", depth));
    list.push(Proposal::new(Target::SglangDiffusion, "pin_cpu_memory", "true"));
    if offloading.resident > 0.0 {
        let share = format!("{:.2}", offloading.resident);
        list.push(Proposal::new(Target::SglangDiffusion, "dit_layerwise_resident_layers", share));
    }
    list.push(Proposal::new(Target::Diffusers, "offload_type", "block_level"));
    list.push(Proposal::new(Target::Diffusers, "num_blocks_per_group", 1));
    list.push(Proposal::new(Target::Diffusers, "use_stream", "true"));
    list.push(Proposal::new(Target::Diffusers, "non_blocking", "true"));
    list.push(Proposal::new(Target::Diffusers, "record_stream", "true"));
    list.extend(pinned());
    list
}

/// Pinned host memory, for frameworks that do not use it by default.
pub(crate) fn pinned() -> Vec<Proposal> {
    vec![
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_param.pin_memory", "true"),
        Proposal::new(Target::DeepSpeed, "zero_optimization.offload_optimizer.pin_memory", "true"),
        Proposal::new(Target::Fsdp2, "offload_policy", "CPUOffloadPolicy(pin_memory=True)"),
        Proposal::new(Target::SglangDiffusion, "pin_cpu_memory", "true"),
    ]
}

/// Group size and copied layers per group, in the smallest equal groups.
fn of_layers(layers: u32, copied: f64) -> (u32, u32) {
    let copied = (f64::from(layers) * copied).round().clamp(1.0, f64::from(layers)) as u32;
    let (mut a, mut b) = (layers, copied);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (layers / a, copied / a)
}

/// A share as a fraction of a small group: the nearest that does not exceed the wanted share, because copies beyond it
/// cannot be hidden.
fn share(wanted: f64) -> (u32, u32) {
    let mut best = (10, 1);
    let mut nearest = f64::INFINITY;
    for group in 1..=10u32 {
        let of_group = (wanted * f64::from(group) + 0.01).floor();
        let off = wanted - of_group / f64::from(group);
        if of_group >= 1.0 && off < nearest - 1e-9 {
            nearest = off;
            best = (group, of_group as u32);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::{of_layers, share};

    #[test]
    fn groups_are_the_smallest_equal_ones() {
        assert_eq!(of_layers(12, 0.5), (2, 1));
        assert_eq!(of_layers(12, 5.0 / 12.0), (12, 5));
        assert_eq!(of_layers(40, 1.0), (1, 1));
        assert_eq!(of_layers(100, 0.09), (100, 9));
    }

    #[test]
    fn shares_are_fractions_of_a_small_group() {
        for (wanted, expected) in [
            (1.0, (1, 1)),
            (0.5, (2, 1)),
            (0.25, (4, 1)),
            (0.67, (3, 2)),
            (0.9, (10, 9)),
            (0.49, (9, 4)),
            (0.01, (10, 1)),
        ] {
            assert_eq!(share(wanted), expected, "{wanted}");
        }
    }
}
