//! Can prefetching hide the copies of weights that are in host memory?
//!
//! A discrete-event simulation of one step: a compute stream, a copy stream, and one direction of the link. An all-to-all
//! comes before the kernels of its layer, which need its result; without dedicated links between the GPUs it shares the
//! link with the copies. Depth d means that the copy of layer i starts when layer i − d
//! starts: d layers are in flight while one runs. Depth 0 is blocking: the copy starts when the previous layer has
//! ended, and the host waits for it.
//!
//! Pageable memory changes the rate, not the pattern: a staged copy on a separate stream blocks the host, but not the
//! layer that was launched before it (`bench --suite offload` measures both).

mod engine;
mod step;
#[cfg(test)]
mod tests;

use busbound_machine::{HostMemory, LinkFacts};
use serde::Serialize;

use super::{BadInput, ensure};
use crate::Range;
pub use engine::{Engine, EngineLayers, EngineSettings, EngineStep, engine_settings};
use step::{Exchange, Over, Simulated, Step};

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
    /// Bytes that each GPU gets from others before the kernels of a layer: over NVLink if the link's GPU has it, else over
    /// the link of the copies.
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
    /// All exchanges of a step without copies; they are part of `resident_ms`.
    pub all_to_all_ms: f64,
    /// Whether the exchanges share the link with the copies.
    pub all_to_all_shares_link: bool,
    /// How much longer the exchanges take because of copies, for the upper end of the compute range.
    pub all_to_all_slowed_ms: f64,
    /// The step if copies wait while an exchange runs; `null` if they share nothing.
    pub spread_ms: Option<Range>,
    pub gpu_bytes: f64,
    /// The step at each depth, up to the one that is enough.
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
    pub step_ms: Range,
    /// Step time beyond that of a step with every layer on the GPU.
    pub exposed_ms: Range,
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
/// Depths listed at most, starting from 0.
const LISTED_DEPTHS: u32 = 8;

impl Offload {
    /// # Errors
    /// If an input is invalid.
    pub fn plan(inputs: OffloadInputs) -> Result<Self, BadInput> {
        inputs.check()?;
        let run = Run::of(&inputs);
        let compute = inputs.compute_ms;
        let copy_gbps = run.copy_gbps(inputs.depth, compute.high);
        let copy_ms = inputs.layer_bytes / copy_gbps / 1e6;
        let offloaded_layers = run.offloaded_layers();
        let slowest = run.at(inputs.depth, compute.high);
        let (enough_depth, depths) = run.depths();
        let short_gbps = compute.map(|compute| run.short_gbps(compute));
        let waited: f64 = slowest.exposed_ms.iter().sum();
        let hides = match () {
            () if offloaded_layers == 0 => Hiding::NothingToHide,
            () if short_gbps.low > 0.0 => Hiding::Cannot,
            () if short_gbps.high == 0.0 && waited + slowest.slowed_ms <= copy_ms * 1.001 => Hiding::All,
            () => Hiding::Partly,
        };
        let shares = run.exchange.over == Over::Shared && run.exchange.bytes > 0.0;
        let spread = run.with_exchange(Over::SharedFirst);
        Ok(Self {
            copy_gbps,
            copy_ms,
            offloaded_layers,
            step_ms: compute.map(|compute| run.at(inputs.depth, compute).step_ms),
            resident_ms: compute.map(|compute| run.resident_ms(compute)),
            overhead_ms: run.overhead_ms(inputs.depth),
            exposed_ms: slowest.exposed_ms,
            all_to_all_ms: f64::from(inputs.layers) * run.exchange.alone_ms(run.link_gbps()),
            all_to_all_shares_link: shares,
            all_to_all_slowed_ms: slowest.slowed_ms,
            spread_ms: (shares && offloaded_layers > 0)
                .then(|| compute.map(|compute| spread.at(inputs.depth, compute).step_ms)),
            gpu_bytes: gpu_bytes(&inputs, offloaded_layers, inputs.depth),
            resident_that_hides: compute.map(|compute| run.resident_that_hides(compute)),
            depths,
            enough_depth,
            hides,
            short_gbps,
            inputs: inputs.clone(),
        })
    }

    /// The engine's step with the settings that suit this plan and its GPU memory best; `None` if none fit.
    pub fn engine_step(&self, engine: Engine) -> Option<EngineStep> {
        let OffloadInputs { layers, compute_ms, layer_bytes, .. } = self.inputs;
        let layers = EngineLayers { count: layers, compute_ms, copy_ms: self.copy_ms };
        // One more layer is no other plan, and SGLang always needs it.
        let most = (self.gpu_bytes / layer_bytes).round() as u32 + 1;
        engine_settings(engine, layers, most)
    }
}

impl OffloadInputs {
    fn check(&self) -> Result<(), BadInput> {
        ensure((1..=MOST_LAYERS).contains(&self.layers), "--layers", "between 1 and 5000", self.layers)?;
        let bytes = self.layer_bytes;
        ensure((1.0..1e15).contains(&bytes), "--bytes", "above zero and below 1 PB", bytes)?;
        let shortest = self.compute_ms.low;
        ensure(shortest >= 1e-6, "--compute", "at least one nanosecond, given in ms", shortest)?;
        ensure((0.0..=1.0).contains(&self.resident), "--resident", "between 0 and 100%", self.resident)?;
        ensure(self.sharing >= 1, "--sharing", "1 or more ranks", self.sharing)?;
        let exchanged = self.all_to_all_bytes;
        ensure((0.0..1e15).contains(&exchanged), "--all-to-all", "0 or more bytes", exchanged)
    }
}

/// One configuration to simulate.
#[derive(Clone)]
struct Run<'a> {
    inputs: &'a OffloadInputs,
    offloaded: Vec<bool>,
    memory: HostMemory,
    exchange: Exchange,
    /// This rank's share of the link.
    share: f64,
    /// The rate of copies on a separate stream.
    streamed_gbps: f64,
}

impl<'a> Run<'a> {
    fn of(inputs: &'a OffloadInputs) -> Self {
        let memory = if inputs.pinned { HostMemory::Pinned } else { HostMemory::Pageable };
        // H2D copies share the PCIe uplink; traffic from other GPUs does not use it.
        let share = inputs.link.reachable_gbps() / f64::from(inputs.sharing);
        let over = inputs.link.peer_gbps().map_or(Over::Shared, Over::Dedicated);
        Self {
            inputs,
            offloaded: offloaded(inputs),
            memory,
            exchange: Exchange { bytes: inputs.all_to_all_bytes, over },
            share,
            streamed_gbps: inputs.link.expected_gbps(inputs.layer_bytes as u64, memory).min(share),
        }
    }
}

impl Run<'_> {
    fn at(&self, depth: u32, compute_ms: f64) -> Simulated {
        let step = Step {
            offloaded: &self.offloaded,
            layer_bytes: self.inputs.layer_bytes,
            exchange: self.exchange,
            link_gbps: self.link_gbps(),
            copy_gbps: self.copy_gbps(depth, compute_ms),
            depth: depth as usize,
            compute_ms,
        };
        step.simulate()
    }

    fn link_gbps(&self) -> f64 {
        self.inputs.link.reachable_gbps()
    }

    fn offloaded_layers(&self) -> u32 {
        self.offloaded.iter().filter(|layer| **layer).count() as u32
    }

    fn with_exchange(&self, over: Over) -> Self {
        Self { exchange: Exchange { over, ..self.exchange }, ..self.clone() }
    }

    /// The step with every layer on the GPU: nothing waits, and nothing slows an exchange down.
    fn resident_ms(&self, compute_ms: f64) -> f64 {
        f64::from(self.inputs.layers) * (compute_ms + self.exchange.alone_ms(self.link_gbps()))
    }

    /// The step beyond the one with every layer on the GPU.
    fn overhead_ms(&self, depth: u32) -> Range {
        self.inputs.compute_ms.map(|compute| self.at(depth, compute).step_ms - self.resident_ms(compute))
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

    /// The smallest depth with the best step time, and the steps at the depths up to it.
    fn depths(&self) -> (u32, Vec<DepthStep>) {
        let (inputs, compute) = (self.inputs, self.inputs.compute_ms);
        let offloaded_layers = self.offloaded_layers();
        let step = |depth: u32| DepthStep {
            depth,
            step_ms: compute.map(|compute| self.at(depth, compute).step_ms),
            exposed_ms: self.overhead_ms(depth),
            gpu_bytes: gpu_bytes(inputs, offloaded_layers, depth),
        };
        // Without an exchange more depth never costs time, so bisection finds the smallest depth with the best step time.
        let enough_at = |compute: f64| {
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
            enough
        };
        let enough = enough_at(compute.low).max(enough_at(compute.high));
        let mut listed: Vec<u32> = (0..=LISTED_DEPTHS.min(enough)).chain([inputs.depth, enough]).collect();
        listed.sort_unstable();
        listed.dedup();
        (enough, listed.into_iter().map(step).collect())
    }

    /// The time per layer in which copies slow nothing down.
    fn window_ms(&self, compute_ms: f64) -> f64 {
        match self.exchange.over {
            Over::Dedicated(_) => compute_ms + self.exchange.alone_ms(self.link_gbps()),
            Over::Shared | Over::SharedFirst => compute_ms,
        }
    }

    /// Missing PCIe bandwidth in GB/s to hide all copies.
    fn short_gbps(&self, compute_ms: f64) -> f64 {
        let share = f64::from(self.offloaded_layers()) / f64::from(self.inputs.layers);
        let needed = self.inputs.layer_bytes * share / self.window_ms(compute_ms) / 1e6;
        if share > 0.0 { (needed - self.streamed_gbps).max(0.0) } else { 0.0 }
    }

    /// The share of the layers that must stay on the GPU to hide the rest, in whole layers.
    fn resident_that_hides(&self, compute_ms: f64) -> f64 {
        let layers = f64::from(self.inputs.layers);
        let room = self.streamed_gbps * self.window_ms(compute_ms) * 1e6;
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
    "copy = bytes / expected rate of a copy of that size; the link is shared fairly with other ranks",
    "all-to-all: before the kernels of its layer, which need it; over NVLink if the GPU has it, else it shares the link with the copies",
    "without contention: step = copy + (layers − 1) × max(compute, copy) + compute at depth ≥ 1, layers × (compute + copy) at depth 0",
    "resident share that hides all copies = 1 − copy rate × time without a shared all-to-all / bytes per layer, in whole layers",
];
