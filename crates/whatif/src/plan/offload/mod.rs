//! Can prefetching hide the copies of weights that are in host memory?
//!
//! A discrete-event simulation of one step: a compute stream, a copy stream, and one direction of the link, shared
//! fairly with the all-to-all of each layer, if any. Depth d means that the copy of layer i starts when layer i − d
//! starts: d layers are in flight while one runs. Depth 0 is blocking: the copy starts when the previous layer has
//! ended, and the host waits for it.
//!
//! Pageable memory changes the rate, not the pattern: a staged copy on a separate stream blocks the host, but not the
//! layer that was launched before it (`bench --suite offload` measures both).

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
    /// Whether host memory is pinned; pageable copies are slower and block the host.
    pub pinned: bool,
    pub depth: u32,
    /// Share of the layers that stay on the GPU, 0 to 1.
    pub resident: f64,
    /// Ranks whose copies share one PCIe uplink to the host.
    pub sharing: u32,
    /// Bytes from other GPUs that arrive over the same link during each layer.
    pub all_to_all_bytes: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offload {
    pub inputs: OffloadInputs,
    /// The rate of one copy: its expected rate, limited to this rank's share of the link.
    pub copy_gbps: f64,
    pub copy_ms: f64,
    pub offloaded_layers: u32,
    pub step_ms: Range,
    /// The step if every layer stayed on the GPU.
    pub resident_ms: Range,
    pub overhead_ms: Range,
    /// Wait before each layer, for the upper end of the compute range.
    pub exposed_ms: Vec<f64>,
    pub gpu_bytes: f64,
    /// The step at each depth, for the upper end of the compute range.
    pub depths: Vec<DepthStep>,
    /// More depth does not help.
    pub enough_depth: u32,
    /// Share of the layers that must stay on the GPU so that compute hides the copies of the rest; 0 if all are hidden.
    pub resident_that_hides: Range,
    pub hides: Hiding,
    /// Missing PCIe bandwidth in GB/s to hide all copies; 0 if it is sufficient.
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
    /// All copies are hidden except the first, which nothing can hide.
    All,
    /// Only some copies are hidden; another depth hides more.
    Partly,
    /// Not enough PCIe bandwidth: no depth hides all copies.
    Cannot,
    /// Everything stays on the GPU.
    NothingToHide,
}

/// More layers than any model has; keeps planning instant.
const MOST_LAYERS: u32 = 5_000;
/// Depths listed, starting from 0.
const LISTED_DEPTHS: u32 = 8;

impl Offload {
    /// # Errors
    /// If an input is invalid.
    pub fn plan(inputs: OffloadInputs) -> Result<Self, BadInput> {
        ensure((1..=MOST_LAYERS).contains(&inputs.layers), "--layers", "between 1 and 5000", inputs.layers)?;
        let bytes = inputs.layer_bytes;
        ensure((1.0..1e15).contains(&bytes), "--bytes", "above zero and below 1 PB", bytes)?;
        let shortest = inputs.compute_ms.low;
        ensure(shortest >= 1e-6, "--compute", "at least one nanosecond, given in ms", shortest)?;
        ensure((0.0..=1.0).contains(&inputs.resident), "--resident", "between 0 and 100%", inputs.resident)?;
        ensure(inputs.sharing >= 1, "--sharing", "1 or more ranks", inputs.sharing)?;
        let exchanged = inputs.all_to_all_bytes;
        ensure((0.0..1e15).contains(&exchanged), "--all-to-all", "0 or more bytes", exchanged)?;
        let memory = if inputs.pinned { HostMemory::Pinned } else { HostMemory::Pageable };
        // H2D copies share the PCIe uplink; traffic from other GPUs does not use it.
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

/// One configuration to simulate.
struct Run<'a> {
    inputs: &'a OffloadInputs,
    offloaded: Vec<bool>,
    memory: HostMemory,
    /// This rank's share of the link.
    share: f64,
    /// The rate of copies on a separate stream.
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
        // The host queues the next copy while the previous layer runs.
        let behind_ms = if self.inputs.layers > 1 { compute_ms } else { 0.0 };
        let bytes = self.inputs.layer_bytes as u64;
        self.inputs.link.awaited_gbps(bytes, self.memory, behind_ms).min(self.share)
    }

    /// The same with every layer on the GPU.
    fn resident(&self) -> Self {
        Self { offloaded: vec![false; self.offloaded.len()], ..*self }
    }

    /// The smallest depth with the best step time, and the steps at the listed depths.
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
        // More depth never costs time, so bisection finds the smallest depth with the best step time.
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

    /// Missing PCIe bandwidth in GB/s to hide all copies.
    fn short_gbps(&self, compute_ms: f64, offloaded_layers: u32) -> f64 {
        if offloaded_layers == 0 {
            return 0.0;
        }
        let share = f64::from(offloaded_layers) / f64::from(self.inputs.layers);
        let copies = self.inputs.layer_bytes * share / compute_ms / 1e6;
        let all = copies + self.inputs.all_to_all_bytes / compute_ms / 1e6;
        (copies - self.streamed_gbps).max(all - self.inputs.link.reachable_gbps()).max(0.0)
    }

    /// The share of the layers that must stay on the GPU to hide the rest, in whole layers.
    fn resident_that_hides(&self, compute_ms: f64) -> f64 {
        let layers = f64::from(self.inputs.layers);
        let left = self.inputs.link.reachable_gbps() * compute_ms * 1e6 - self.inputs.all_to_all_bytes;
        let room = (self.streamed_gbps * compute_ms * 1e6).min(left).max(0.0);
        let share = (1.0 - room / self.inputs.layer_bytes).max(0.0);
        // Tolerates floating-point error just above a whole number.
        ((share * layers - 1e-9).ceil() / layers).clamp(0.0, 1.0)
    }
}

/// Which layers are copied; the resident ones are spread evenly among them.
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
    "one simulated step: copies run one after another on their own stream; the copy of layer i starts when layer i − depth starts (depth 0: after layer i − 1 ends)",
    "copy = bytes / expected rate of a copy of that size; the link is shared fairly with other ranks and with the all-to-all",
    "without contention: step = copy + (layers − 1) × max(compute, copy) + compute at depth ≥ 1, layers × (compute + copy) at depth 0",
    "resident share that hides all copies = 1 − min(copy rate × compute, link rate × compute − all-to-all) / bytes per layer, in whole layers",
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
    fn with_enough_compute_only_the_first_layer_is_exposed() {
        for depth in 1..6 {
            let plan = Offload::plan(inputs(40, 168e6, 500.0, depth)).unwrap();
            assert_eq!(plan.hides, Hiding::All, "depth {depth}");
            assert!(plan.exposed_ms[1..].iter().all(|ms| *ms < 1e-9));
            assert!((plan.exposed_ms[0] - plan.copy_ms).abs() < 1e-9);
            assert_eq!(plan.enough_depth, 1);
        }
    }

    /// Wall times of the programs in fixtures/README.md on the H200, in ms: compute only, then blocking from pinned
    /// memory, then prefetched 1, 2 and 4 groups ahead.
    #[test]
    fn predictions_match_wall_times_of_real_runs_within_ten_percent() {
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
    fn missing_pcie_bandwidth_is_reported_in_gb_per_second() {
        let plan = Offload::plan(inputs(12, 167_772_160.0, 1.5, 2)).unwrap();
        assert_eq!(plan.hides, Hiding::Cannot);
        // 111.8 GB/s needed, 55.4 available.
        assert!((plan.short_gbps.low - 56.5).abs() < 0.5, "{}", plan.short_gbps.low);
        // With 7 of 12 layers resident, all copies are hidden.
        let resident = plan.resident_that_hides.low;
        assert_eq!(resident, 7.0 / 12.0);
        let kept = Offload::plan(OffloadInputs { resident, ..inputs(12, 167_772_160.0, 1.5, 4) }).unwrap();
        assert_eq!(kept.hides, Hiding::All, "{:?}", kept.exposed_ms);
    }

    #[test]
    fn ranks_that_share_the_link_get_a_part_of_it() {
        let alone = Offload::plan(inputs(12, 1e8, 3.0, 2)).unwrap();
        let four = Offload::plan(OffloadInputs { sharing: 4, ..inputs(12, 1e8, 3.0, 2) }).unwrap();
        assert!((four.copy_ms / alone.copy_ms - 4.0).abs() < 0.05);
        assert_eq!((alone.hides, four.hides), (Hiding::All, Hiding::Cannot));
        // An exchange of 150 MB per layer leaves not enough bandwidth for 100 MB of weights.
        let with_exchange =
            Offload::plan(OffloadInputs { all_to_all_bytes: 1.5e8, ..inputs(12, 1e8, 3.0, 2) }).unwrap();
        assert!(with_exchange.step_ms.low > alone.step_ms.low * 1.2);
        assert_eq!(with_exchange.hides, Hiding::Cannot);
    }

    /// Measured on the H200: 12 layers of 32 MiB from pageable memory, with compute as long as a copy, took 87 ms
    /// blocking and 47 ms with a separate copy stream.
    #[test]
    fn pageable_copies_block_the_host_but_not_the_previous_layer() {
        let at =
            |depth| Offload::plan(OffloadInputs { pinned: false, ..inputs(12, 1e8, 10.0, depth) }).unwrap();
        let (blocking, ahead) = (at(0), at(1));
        assert!(ahead.step_ms.low < 0.6 * blocking.step_ms.low, "{:?}", (ahead.step_ms, blocking.step_ms));
        assert_eq!((ahead.enough_depth, at(4).step_ms), (1, ahead.step_ms));
    }

    /// Traffic from other GPUs uses the GPU's own link, not the uplink that ranks share.
    #[test]
    fn ranks_that_share_the_uplink_do_not_slow_down_an_exchange() {
        let at = |sharing| {
            let inputs =
                OffloadInputs { sharing, resident: 1.0, all_to_all_bytes: 1e8, ..inputs(12, 1e8, 1.0, 2) };
            Offload::plan(inputs).unwrap().step_ms.low
        };
        assert_eq!(at(1), at(4));
    }

    /// The whole exchange counts against the link, whatever share of the layers is copied.
    #[test]
    fn an_exchange_can_leave_not_enough_bandwidth() {
        let plan =
            Offload::plan(OffloadInputs { resident: 0.5, all_to_all_bytes: 5e7, ..inputs(100, 2e7, 1.0, 8) })
                .unwrap();
        assert_eq!(plan.hides, Hiding::Cannot);
        let small =
            Offload::plan(OffloadInputs { all_to_all_bytes: 2e7, ..inputs(100, 256e3, 0.5, 8) }).unwrap();
        assert_eq!((small.hides, small.resident_that_hides.low), (Hiding::All, 0.0));
    }

    #[test]
    fn a_few_copied_layers_profit_from_a_large_depth() {
        let plan = Offload::plan(OffloadInputs { resident: 0.95, ..inputs(100, 168e6, 0.2, 1) }).unwrap();
        assert!(plan.enough_depth > 8, "{}", plan.enough_depth);
        let deeper =
            Offload::plan(OffloadInputs { depth: plan.enough_depth + 1, ..plan.inputs.clone() }).unwrap();
        let enough =
            Offload::plan(OffloadInputs { depth: plan.enough_depth, ..plan.inputs.clone() }).unwrap();
        assert!(deeper.step_ms.low >= enough.step_ms.low * 0.999 && plan.step_ms.low > enough.step_ms.low);
    }

    #[test]
    fn bandwidth_missing_at_only_one_end_of_the_range_hides_partly() {
        let plan = Offload::plan(OffloadInputs {
            compute_ms: Range { low: 2.0, high: 6.5 },
            ..inputs(12, 168e6, 2.0, 1)
        })
        .unwrap();
        assert_eq!(plan.hides, Hiding::Partly);
        assert!(plan.short_gbps.low == 0.0 && plan.short_gbps.high > 0.0);
    }

    #[test]
    fn invalid_input_is_rejected() {
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
        fn the_simulation_equals_the_closed_form(
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
        fn more_depth_and_more_resident_layers_never_cost_time(
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
