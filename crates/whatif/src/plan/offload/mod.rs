//! Can prefetching hide weights that live in host memory?
//!
//! A discrete-event simulation of one step: a compute stream, a copy stream, and one direction of the link,
//! shared fairly with the all-to-all of each layer where there is one. Depth d means that the copy of layer
//! i begins when layer i − d does: d layers are under way beside the one that runs. Depth 0 is blocking: the
//! copy begins when the layer before has ended, and the host waits for it.
//!
//! Pageable memory changes the rate, not the pattern: a staged copy on a stream of its own holds the host, but
//! not the layer that was launched before it (`bench --suite offload` measures both).

mod step;

use busbound_machine::{HostMemory, LinkFacts};
use serde::Serialize;

use super::{BadInput, ensure};
use crate::Range;
use step::{Simulated, Step};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffloadInputs {
    pub layers: u32,
    pub layer_bytes: f64,
    pub compute_ms: Range,
    pub link: LinkFacts,
    /// Whether host memory is pinned; pageable copies are slower and hold the host.
    pub pinned: bool,
    pub depth: u32,
    /// Share of the layers that stays on the GPU, 0 to 1.
    pub resident: f64,
    /// Ranks whose copies share one link to the host.
    pub sharing: u32,
    /// Bytes that arrive over the same link during each layer, from other GPUs.
    pub all_to_all_bytes: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offload {
    pub inputs: OffloadInputs,
    /// What one copy reaches alone, and what is left of it for this rank.
    pub copy_gbps: f64,
    pub copy_ms: f64,
    pub offloaded_layers: u32,
    pub step_ms: Range,
    /// If every layer stayed on the GPU.
    pub resident_ms: Range,
    pub overhead_ms: Range,
    /// Waited before each layer, by the upper end of compute.
    pub exposed_ms: Vec<f64>,
    pub gpu_bytes: f64,
    /// The step at each depth, by the upper end of compute.
    pub depths: Vec<DepthStep>,
    /// Beyond it nothing improves.
    pub enough_depth: u32,
    /// Share of the layers that must stay for the rest to be hidden behind compute; 0 where all are.
    pub resident_that_hides: Range,
    pub hides: Hiding,
    /// GB/s that the bus lacks for hiding all; 0 where it does not.
    pub short_gbps: Range,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DepthStep {
    pub depth: u32,
    pub step_ms: f64,
    pub exposed_ms: f64,
    pub gpu_bytes: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Hiding {
    /// All but the first copy, which has nothing to hide behind.
    All,
    /// At this depth less than another one would hide.
    Partly,
    /// The bus is too short: no depth hides all.
    Cannot,
    /// Everything stays on the GPU.
    NothingToHide,
}

/// More layers than any model has; a plan answers at once.
const MOST_LAYERS: u32 = 5_000;
/// Depths that are listed from 0 on.
const LISTED_DEPTHS: u32 = 8;

impl Offload {
    /// # Errors
    /// If an input makes no sense.
    pub fn plan(inputs: OffloadInputs) -> Result<Self, BadInput> {
        ensure((1..=MOST_LAYERS).contains(&inputs.layers), "--layers", "between 1 and 5000", inputs.layers)?;
        let bytes = inputs.layer_bytes;
        ensure((1.0..1e15).contains(&bytes), "--bytes", "above zero and below 1 PB", bytes)?;
        let shortest = inputs.compute_ms.low;
        ensure(shortest >= 1e-6, "--compute", "a nanosecond or more, in ms", shortest)?;
        ensure((0.0..=1.0).contains(&inputs.resident), "--resident", "between 0 and 100 %", inputs.resident)?;
        ensure(inputs.sharing >= 1, "--sharing", "1 or more ranks", inputs.sharing)?;
        let exchanged = inputs.all_to_all_bytes;
        ensure((0.0..1e15).contains(&exchanged), "--all-to-all", "0 or more bytes", exchanged)?;
        let memory = if inputs.pinned { HostMemory::Pinned } else { HostMemory::Pageable };
        // Copies from the host share the way to it; what other GPUs send does not take that way.
        let share = inputs.link.reachable_gbps() / f64::from(inputs.sharing);
        let layer_bytes = inputs.layer_bytes as u64;
        let run = Run {
            inputs: &inputs,
            offloaded: offloaded(&inputs),
            memory,
            share,
            streamed_gbps: inputs.link.expected_gbps(layer_bytes, memory).min(share),
        };
        let copy_gbps = run.copy_gbps(inputs.depth, inputs.compute_ms.high);
        let offloaded_layers = run.offloaded.iter().filter(|layer| **layer).count() as u32;
        let compute = inputs.compute_ms;
        let slowest = run.at(inputs.depth, compute.high);
        let resident = run.resident();
        let copy_ms = inputs.layer_bytes / copy_gbps / 1e6;
        let (enough_depth, depths) = run.depths(offloaded_layers);
        let short_gbps = compute.map(|compute| run.short_gbps(compute, offloaded_layers));
        let waited: f64 = slowest.exposed_ms.iter().sum();
        let hides = match () {
            () if offloaded_layers == 0 => Hiding::NothingToHide,
            () if short_gbps.low > 0.0 => Hiding::Cannot,
            () if short_gbps.high == 0.0 && waited <= copy_ms * 1.001 => Hiding::All,
            () => Hiding::Partly,
        };
        Ok(Self {
            copy_gbps,
            copy_ms,
            offloaded_layers,
            step_ms: compute.map(|compute| run.at(inputs.depth, compute).step_ms),
            resident_ms: compute.map(|compute| resident.at(0, compute).step_ms),
            overhead_ms: compute
                .map(|compute| run.at(inputs.depth, compute).step_ms - resident.at(0, compute).step_ms),
            exposed_ms: slowest.exposed_ms,
            gpu_bytes: gpu_bytes(&inputs, offloaded_layers, inputs.depth),
            resident_that_hides: compute.map(|compute| run.resident_that_hides(compute)),
            depths,
            enough_depth,
            hides,
            short_gbps,
            inputs,
        })
    }
}

/// One setting, simulated at will.
struct Run<'a> {
    inputs: &'a OffloadInputs,
    offloaded: Vec<bool>,
    memory: HostMemory,
    /// What is left of the link for this rank.
    share: f64,
    /// What copies reach on a stream of their own.
    streamed_gbps: f64,
}

impl Run<'_> {
    fn at(&self, depth: u32, compute_ms: f64) -> Simulated {
        let step = Step {
            offloaded: &self.offloaded,
            layer_bytes: self.inputs.layer_bytes,
            all_to_all_bytes: self.inputs.all_to_all_bytes,
            link_gbps: self.inputs.link.reachable_gbps(),
            copy_gbps: self.copy_gbps(depth, compute_ms),
            depth: depth as usize,
            compute_ms,
        };
        step.simulate()
    }

    fn copy_gbps(&self, depth: u32, compute_ms: f64) -> f64 {
        if depth > 0 {
            return self.streamed_gbps;
        }
        // The host queues the next copy while the layer before it runs.
        let behind_ms = if self.inputs.layers > 1 { compute_ms } else { 0.0 };
        let bytes = self.inputs.layer_bytes as u64;
        self.inputs.link.awaited_gbps(bytes, self.memory, behind_ms).min(self.share)
    }

    /// The same with every layer on the GPU.
    fn resident(&self) -> Self {
        Self { offloaded: vec![false; self.offloaded.len()], ..*self }
    }

    /// The smallest depth beyond which nothing improves, and the steps at the depths worth a line.
    fn depths(&self, offloaded_layers: u32) -> (u32, Vec<DepthStep>) {
        let (inputs, compute) = (self.inputs, self.inputs.compute_ms.high);
        let step = |depth: u32| {
            let one = self.at(depth, compute);
            DepthStep {
                depth,
                step_ms: one.step_ms,
                exposed_ms: one.exposed_ms.iter().sum(),
                gpu_bytes: gpu_bytes(inputs, offloaded_layers, depth),
            }
        };
        // More depth never costs time, so the smallest that gives the best can be bisected.
        let best = self.at(inputs.layers, compute).step_ms;
        let (mut least, mut enough) = (0, inputs.layers);
        while least < enough {
            let middle = least.midpoint(enough);
            if self.at(middle, compute).step_ms <= best * 1.0005 {
                enough = middle
            } else {
                least = middle + 1
            }
        }
        let mut listed: Vec<u32> =
            (0..=LISTED_DEPTHS.min(inputs.layers)).chain([inputs.depth, enough]).collect();
        listed.sort_unstable();
        listed.dedup();
        (enough, listed.into_iter().map(step).collect())
    }

    /// GB/s that the bus lacks for hiding all.
    fn short_gbps(&self, compute_ms: f64, offloaded_layers: u32) -> f64 {
        if offloaded_layers == 0 {
            return 0.0;
        }
        let share = f64::from(offloaded_layers) / f64::from(self.inputs.layers);
        let copies = self.inputs.layer_bytes * share / compute_ms / 1e6;
        let all = copies + self.inputs.all_to_all_bytes / compute_ms / 1e6;
        (copies - self.streamed_gbps).max(all - self.inputs.link.reachable_gbps()).max(0.0)
    }

    /// The share of the layers that must stay for the rest to be hidden, in whole layers.
    fn resident_that_hides(&self, compute_ms: f64) -> f64 {
        let layers = f64::from(self.inputs.layers);
        let left = self.inputs.link.reachable_gbps() * compute_ms * 1e6 - self.inputs.all_to_all_bytes;
        let room = (self.streamed_gbps * compute_ms * 1e6).min(left).max(0.0);
        let share = (1.0 - room / self.inputs.layer_bytes).max(0.0);
        // A whole number that floats miss by a hair is that number.
        ((share * layers - 1e-9).ceil() / layers).clamp(0.0, 1.0)
    }
}

/// Which layers are copied: the resident ones lie evenly among them.
fn offloaded(inputs: &OffloadInputs) -> Vec<bool> {
    let layers = f64::from(inputs.layers);
    let copied = layers - (layers * inputs.resident).round();
    let share = copied / layers;
    (0..inputs.layers)
        .map(|i| (f64::from(i + 1) * share + 1e-9).floor() > (f64::from(i) * share + 1e-9).floor())
        .collect()
}

fn gpu_bytes(inputs: &OffloadInputs, offloaded: u32, depth: u32) -> f64 {
    let slots = (depth + 1).min(offloaded);
    f64::from(inputs.layers - offloaded + slots) * inputs.layer_bytes
}

pub const FORMULAS: &[&str] = &[
    "one step, simulated: copies one after the other on their stream, the copy of layer i from the begin of layer i − depth on (depth 0: after layer i − 1)",
    "copy = bytes / what a copy of that size reaches on the link, shared fairly with other ranks and with the all-to-all",
    "without contention: depth ≥ 1 gives copy + (layers − 1) × max(compute, copy) + compute, depth 0 layers × (compute + copy)",
    "resident share that hides all = 1 − min(copy rate × compute, link × compute − all-to-all) / bytes a layer, in whole layers",
];

#[cfg(test)]
mod tests {
    use busbound_machine::Machine;
    use proptest::prelude::*;

    use super::*;

    fn inputs(layers: u32, bytes: f64, compute: f64, depth: u32) -> OffloadInputs {
        OffloadInputs {
            layers,
            layer_bytes: bytes,
            compute_ms: Range::one(compute),
            link: Machine::named("h200").unwrap().link_of(None),
            pinned: true,
            depth,
            resident: 0.0,
            sharing: 1,
            all_to_all_bytes: 0.0,
        }
    }

    #[test]
    fn with_much_compute_only_the_first_layer_is_exposed() {
        for depth in 1..6 {
            let plan = Offload::plan(inputs(40, 168e6, 500.0, depth)).unwrap();
            assert_eq!(plan.hides, Hiding::All, "depth {depth}");
            assert!(plan.exposed_ms[1..].iter().all(|ms| *ms < 1e-9));
            assert!((plan.exposed_ms[0] - plan.copy_ms).abs() < 1e-9);
            assert_eq!(plan.enough_depth, 1);
        }
    }

    /// Walls of the programs of fixtures/README.md on the H200, in ms: compute a group as compute_only has
    /// it, then blocking from pinned memory and prefetched 1, 2 and 4 groups ahead.
    #[test]
    fn walls_of_real_runs_are_met_within_ten_percent() {
        for (compute_only, block, layerwise) in [
            (19.42, 53.61, [37.93, 37.86, 37.79]),
            (77.62, 104.12, [81.18, 81.34, 80.96]),
            (238.69, 257.16, [242.89, 241.30, 242.30]),
        ] {
            let compute = compute_only / 12.0;
            let step = |depth| Offload::plan(inputs(12, 167_772_160.0, compute, depth)).unwrap().step_ms.low;
            let near = |predicted: f64, wall: f64| (predicted / wall - 1.0).abs() < 0.10;
            assert!(near(step(0), block), "blocking: {} against {block}", step(0));
            for (depth, wall) in [1, 2, 4].into_iter().zip(layerwise) {
                assert!(near(step(depth), wall), "depth {depth}: {} against {wall}", step(depth));
            }
        }
    }

    #[test]
    fn a_bus_that_is_too_short_is_short_by_a_figure() {
        let plan = Offload::plan(inputs(12, 167_772_160.0, 1.5, 2)).unwrap();
        assert_eq!(plan.hides, Hiding::Cannot);
        // 111.8 GB/s wanted, 55.4 there.
        assert!((plan.short_gbps.low - 56.5).abs() < 0.5, "{}", plan.short_gbps.low);
        // Half of it must stay, and then it is hidden.
        let resident = plan.resident_that_hides.low;
        assert_eq!(resident, 7.0 / 12.0);
        let kept = Offload::plan(OffloadInputs { resident, ..inputs(12, 167_772_160.0, 1.5, 4) }).unwrap();
        assert_eq!(kept.hides, Hiding::All, "{:?}", kept.exposed_ms);
    }

    #[test]
    fn who_shares_the_link_gets_a_part_of_it() {
        let alone = Offload::plan(inputs(12, 1e8, 3.0, 2)).unwrap();
        let four = Offload::plan(OffloadInputs { sharing: 4, ..inputs(12, 1e8, 3.0, 2) }).unwrap();
        assert!((four.copy_ms / alone.copy_ms - 4.0).abs() < 0.05);
        assert_eq!((alone.hides, four.hides), (Hiding::All, Hiding::Cannot));
        // 150 MB of exchange a layer leave too little of the link for 100 MB of weights.
        let beside =
            Offload::plan(OffloadInputs { all_to_all_bytes: 1.5e8, ..inputs(12, 1e8, 3.0, 2) }).unwrap();
        assert!(beside.step_ms.low > alone.step_ms.low * 1.2);
        assert_eq!(beside.hides, Hiding::Cannot);
    }

    /// Seen on the H200: 12 layers of 32 MiB, compute as long as a copy, took 87 ms blocking and 47 ms with a
    /// stream of their own, both from pageable memory.
    #[test]
    fn pageable_copies_hold_the_host_and_not_the_layer_before() {
        let at =
            |depth| Offload::plan(OffloadInputs { pinned: false, ..inputs(12, 1e8, 10.0, depth) }).unwrap();
        let (blocking, ahead) = (at(0), at(1));
        assert!(ahead.step_ms.low < 0.6 * blocking.step_ms.low, "{:?}", (ahead.step_ms, blocking.step_ms));
        assert_eq!((ahead.enough_depth, at(4).step_ms), (1, ahead.step_ms));
    }

    /// What other GPUs send takes the GPU's own link, and not the way to the host that ranks share.
    #[test]
    fn an_exchange_is_not_slowed_by_who_shares_the_way_to_the_host() {
        let at = |sharing| {
            let inputs =
                OffloadInputs { sharing, resident: 1.0, all_to_all_bytes: 1e8, ..inputs(12, 1e8, 1.0, 2) };
            Offload::plan(inputs).unwrap().step_ms.low
        };
        assert_eq!(at(1), at(4));
    }

    /// All of the exchange counts against the link, whatever the share that is copied.
    #[test]
    fn an_exchange_leaves_too_little_of_the_link() {
        let plan =
            Offload::plan(OffloadInputs { resident: 0.5, all_to_all_bytes: 5e7, ..inputs(100, 2e7, 1.0, 8) })
                .unwrap();
        assert_eq!(plan.hides, Hiding::Cannot);
        let small =
            Offload::plan(OffloadInputs { all_to_all_bytes: 2e7, ..inputs(100, 256e3, 0.5, 8) }).unwrap();
        assert_eq!((small.hides, small.resident_that_hides.low), (Hiding::All, 0.0));
    }

    #[test]
    fn few_copied_layers_can_use_much_depth() {
        let plan = Offload::plan(OffloadInputs { resident: 0.95, ..inputs(100, 168e6, 0.2, 1) }).unwrap();
        assert!(plan.enough_depth > 8, "{}", plan.enough_depth);
        let deeper =
            Offload::plan(OffloadInputs { depth: plan.enough_depth + 1, ..plan.inputs.clone() }).unwrap();
        let enough =
            Offload::plan(OffloadInputs { depth: plan.enough_depth, ..plan.inputs.clone() }).unwrap();
        assert!(deeper.step_ms.low >= enough.step_ms.low * 0.999 && plan.step_ms.low > enough.step_ms.low);
    }

    #[test]
    fn a_range_that_is_short_at_one_end_is_not_short_throughout() {
        let plan = Offload::plan(OffloadInputs {
            compute_ms: Range { low: 2.0, high: 6.5 },
            ..inputs(12, 168e6, 2.0, 1)
        })
        .unwrap();
        assert_eq!(plan.hides, Hiding::Partly);
        assert!(plan.short_gbps.low == 0.0 && plan.short_gbps.high > 0.0);
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            inputs(0, 1e8, 5.0, 1),
            inputs(5001, 1e8, 5.0, 1),
            inputs(4, 1e8, 1e-20, 1),
            inputs(4, 0.0, 5.0, 1),
            OffloadInputs { resident: 1.5, ..inputs(4, 1e8, 5.0, 1) },
            OffloadInputs { sharing: 0, ..inputs(4, 1e8, 5.0, 1) },
            OffloadInputs { all_to_all_bytes: -1.0, ..inputs(4, 1e8, 5.0, 1) },
        ] {
            assert!(Offload::plan(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_simulation_is_the_closed_form_where_there_is_one(
            layers in 1u32..60,
            megabytes in 1.0f64..500.0,
            compute in 0.05f64..20.0,
            depth in 0u32..6,
        ) {
            let plan = Offload::plan(inputs(layers, megabytes * 1e6, compute, depth)).unwrap();
            let (n, copy) = (f64::from(layers), plan.copy_ms);
            let expected = if depth == 0 {
                n * (compute + copy)
            } else {
                copy + (n - 1.0) * compute.max(copy) + compute
            };
            prop_assert!((plan.step_ms.low / expected - 1.0).abs() < 1e-9, "{} against {}", plan.step_ms.low, expected);
            let waited: f64 = plan.exposed_ms.iter().sum();
            prop_assert!((waited + n * compute - plan.step_ms.low).abs() < 1e-6 * expected);
        }

        #[test]
        fn more_depth_and_more_resident_never_cost_time(
            layers in 2u32..30,
            megabytes in 1.0f64..300.0,
            compute in 0.1f64..10.0,
            depth in 0u32..5,
            resident in 0.0f64..0.9,
        ) {
            let step = |depth, resident| {
                let inputs = OffloadInputs { resident, ..inputs(layers, megabytes * 1e6, compute, depth) };
                Offload::plan(inputs).unwrap().step_ms.low
            };
            prop_assert!(step(depth + 1, resident) <= step(depth, resident) * (1.0 + 1e-9));
            prop_assert!(step(depth, 1.0) <= step(depth, resident) * (1.0 + 1e-9));
        }
    }
}
