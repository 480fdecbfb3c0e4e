//! Which parallelism suits a transformer on these GPUs? Ranks each kind and their hybrids by bytes and time.
//!
//! For training it also searches the sharding of model state (ZeRO, FSDP), recomputation of activations and the number
//! of micro-batches: the fastest choice that fits in memory. It models volumes, not kernels: compute is the model's
//! arithmetic at a given share of the GPU's peak rate, and every exchange runs at the rate that NCCL assumes for its
//! link. Use it for ranking, not as a step time prediction.

mod layout;
mod memory;
mod nearest;
#[cfg(test)]
mod tests;
mod volumes;

use busbound_machine::GpuFacts;
use serde::Serialize;

use super::cluster::Cluster;
use super::{BadInput, ensure};
use layout::arrange;

pub use memory::Memory;
pub use nearest::{Nearest, Remedy};

/// What the GPUs do with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Workload {
    /// Forward, backward and Adam in mixed precision.
    Train,
    /// Inference: all tokens of the prompts at once.
    Prefill,
    /// Inference: one token per sequence, with a KV cache of `sequence` tokens.
    Decode,
    /// One denoising step over `sequence` tokens per sample: no vocabulary, no KV cache.
    Diffusion,
}

/// What data-parallel ranks share out instead of keeping it all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Zero {
    /// Nothing: DDP.
    Off,
    /// Optimizer state.
    One,
    /// Optimizer state and gradients.
    Two,
    /// Weights too: FSDP.
    Three,
}

impl Zero {
    pub const ALL: [Self; 4] = [Self::Off, Self::One, Self::Two, Self::Three];

    /// By the number of the stage.
    pub fn stage(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "",
            Self::One => "ZeRO-1",
            Self::Two => "ZeRO-2",
            Self::Three => "FSDP",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParallelInputs {
    pub workload: Workload,
    pub layers: u32,
    pub hidden: u32,
    pub heads: u32,
    /// Heads of keys and values, for the KV cache.
    pub kv_heads: u32,
    pub vocabulary: u32,
    /// Experts per layer, and how many of them each token uses; 1 and 1 for a dense model.
    pub experts: u32,
    pub active_experts: u32,
    /// Sequences per step over all ranks.
    pub batch: u32,
    pub sequence: u32,
    /// For activations and gradients.
    pub bytes_per_value: f64,
    pub cluster: Cluster,
    /// The name of the GPU in the catalog.
    pub gpu: &'static str,
    /// Dense peak of one GPU; `utilization` is the share of it that kernels reach.
    pub tflops: f64,
    pub utilization: f64,
    pub gpu_gb: f64,
    /// GB/s of the GPU's own memory.
    pub memory_gbps: f64,
    /// Micro-batches per pipeline; searched if not given.
    pub microbatches: Option<u32>,
    /// Searched if not given.
    pub zero: Option<Zero>,
    /// Whether activations are recomputed in the backward pass; searched if not given.
    pub recompute: Option<bool>,
}

impl ParallelInputs {
    /// The same on GPUs of another model.
    fn on(&self, gpu: &'static GpuFacts) -> Self {
        Self {
            gpu: gpu.key,
            tflops: gpu.bf16_tflops,
            gpu_gb: gpu.memory_gb,
            memory_gbps: gpu.memory_gbps,
            ..self.clone()
        }
    }

    fn is_training(&self) -> bool {
        self.workload == Workload::Train
    }

    fn check(&self) -> Result<(), BadInput> {
        self.cluster.check()?;
        for (what, value) in [
            ("--layers", self.layers),
            ("--hidden", self.hidden),
            ("--heads", self.heads),
            ("--kv-heads", self.kv_heads),
            ("--vocabulary", self.vocabulary),
            ("--experts", self.experts),
            ("--batch", self.batch),
            ("--sequence", self.sequence),
            ("--microbatches", self.microbatches.unwrap_or(1)),
        ] {
            ensure((1..=100_000_000).contains(&value), what, "1 or more", value)?;
        }
        let (hidden, heads) = (self.hidden, self.heads);
        ensure(
            hidden.is_multiple_of(heads),
            "--heads",
            format!("a divisor of the hidden size {hidden}"),
            heads,
        )?;
        let kv = self.kv_heads;
        ensure(heads.is_multiple_of(kv), "--kv-heads", format!("a divisor of the {heads} heads"), kv)?;
        let active = self.active_experts;
        let most = self.experts;
        ensure((1..=most).contains(&active), "--active-experts", format!("between 1 and {most}"), active)?;
        ensure(self.tflops > 0.0, "--tflops", "above zero", self.tflops)?;
        let used = self.utilization;
        ensure(used > 0.0 && used <= 1.0, "--utilization", "above 0 and at most 100%", used)?;
        ensure(self.gpu_gb > 0.0 && self.memory_gbps > 0.0, "--gpu", "a GPU with memory", self.gpu_gb)
    }
}

/// Degree of each kind of parallelism; the product of all but `expert` is the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Degrees {
    pub data: u32,
    pub tensor: u32,
    pub pipeline: u32,
    pub sequence: u32,
    /// Data-parallel ranks over which the experts are spread.
    pub expert: u32,
}

impl Degrees {
    pub fn name(self) -> String {
        let parts = [
            ("dp", self.data),
            ("tp", self.tensor),
            ("pp", self.pipeline),
            ("sp", self.sequence),
            ("ep", self.expert),
        ];
        let used: Vec<String> =
            parts.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name}{n}")).collect();
        if used.is_empty() { "one GPU".to_owned() } else { used.join(" × ") }
    }

    /// Ranks of one replica. The placement order is tensor, sequence, pipeline, data: groups larger than a node cross
    /// the network, and the GPUs of a node share its ports equally.
    fn replica_ranks(self) -> u32 {
        self.tensor * self.sequence * self.pipeline
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arrangement {
    pub degrees: Degrees,
    pub zero: Zero,
    pub recompute: bool,
    pub microbatches: u32,
    pub name: String,
    pub step_ms: f64,
    pub compute_ms: f64,
    pub sequences_per_second: f64,
    pub tokens_per_second: f64,
    /// Time of the model's own arithmetic divided by step time, 0 to 1; recomputation is not part of it.
    pub efficiency: f64,
    /// Bytes that each GPU sends per step, and their time, by purpose.
    pub exchanges: Vec<Exchange>,
    pub bubble_ms: f64,
    pub memory_gb: f64,
    pub memory: Memory,
    pub fits: bool,
    /// The largest loss of time; `null` if none.
    pub loses_to: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exchange {
    pub what: &'static str,
    pub bytes: f64,
    pub ms: f64,
    /// The part not overlapped with compute.
    pub exposed_ms: f64,
    pub over: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parallel {
    pub inputs: ParallelInputs,
    pub parameters: f64,
    /// One arrangement per split of the ranks, with its best sharding, recomputation and micro-batches: those that fit in
    /// memory first, then by speed.
    pub ranked: Vec<Arrangement>,
    /// If nothing fits: what comes closest, and what would make it fit.
    pub nearest: Option<Nearest>,
}

impl Parallel {
    /// # Errors
    /// If an input is invalid.
    pub fn plan(inputs: ParallelInputs) -> Result<Self, BadInput> {
        let mut plan = Self::ranked(inputs)?;
        if plan.ranked.first().is_some_and(|first| !first.fits) {
            plan.nearest = nearest::nearest(&plan);
        }
        Ok(plan)
    }

    fn ranked(inputs: ParallelInputs) -> Result<Self, BadInput> {
        inputs.check()?;
        let mut ranked: Vec<Arrangement> =
            degrees(&inputs).into_iter().filter_map(|degrees| best(&inputs, degrees)).collect();
        ensure(
            !ranked.is_empty(),
            "--ranks",
            "a number that divides the batch, heads or layers",
            inputs.cluster.ranks,
        )?;
        ranked.sort_by(|a, b| b.fits.cmp(&a.fits).then(a.step_ms.total_cmp(&b.step_ms)));
        Ok(Self { parameters: layout::parameters(&inputs), inputs, ranked, nearest: None })
    }
}

/// Every split of the ranks that the model allows.
fn degrees(inputs: &ParallelInputs) -> Vec<Degrees> {
    let ranks = inputs.cluster.ranks;
    let divisors: Vec<u32> = (1..=ranks).filter(|n| ranks.is_multiple_of(*n)).collect();
    let mut all = Vec::new();
    for &tensor in &divisors {
        for &pipeline in &divisors {
            for &sequence in &divisors {
                let inner = u64::from(tensor) * u64::from(pipeline) * u64::from(sequence);
                if inner > u64::from(ranks) || !u64::from(ranks).is_multiple_of(inner) {
                    continue;
                }
                let data = (u64::from(ranks) / inner) as u32;
                let experts =
                    divisors.iter().filter(|&&n| data.is_multiple_of(n) && inputs.experts.is_multiple_of(n));
                for &expert in experts {
                    let degrees = Degrees { data, tensor, pipeline, sequence, expert };
                    if is_possible(inputs, degrees) {
                        all.push(degrees);
                    }
                }
            }
        }
    }
    all
}

fn is_possible(inputs: &ParallelInputs, degrees: Degrees) -> bool {
    let Degrees { data, tensor, pipeline, sequence, .. } = degrees;
    inputs.heads.is_multiple_of(tensor * sequence)
        && inputs.layers.is_multiple_of(pipeline)
        && inputs.batch.is_multiple_of(data)
        && inputs.sequence.is_multiple_of(sequence)
        // One token cannot be split.
        && (sequence == 1 || inputs.workload != Workload::Decode)
        // Nobody runs tensor or sequence parallelism across nodes.
        && tensor * sequence <= inputs.cluster.ranks_per_node()
}

/// The fastest choice of sharding, recomputation and micro-batches that fits; if none fits, the smallest. Of equal ones
/// the simplest: less sharding, no recomputation, fewer micro-batches.
fn best(inputs: &ParallelInputs, degrees: Degrees) -> Option<Arrangement> {
    let training = inputs.is_training();
    let zeros = Zero::ALL.into_iter().filter(|&zero| match inputs.zero {
        Some(wanted) => zero == wanted || !training && zero == Zero::Off,
        None => zero == Zero::Off || training && degrees.data * degrees.sequence > 1,
    });
    let recomputes = [false, true].into_iter().filter(|&on| match inputs.recompute {
        Some(wanted) if training => on == wanted,
        _ => !on || training,
    });
    let recomputes: Vec<bool> = recomputes.collect();
    let microbatches = microbatches(inputs, degrees);
    let choices = zeros.flat_map(|zero| recomputes.iter().map(move |&recompute| (zero, recompute)));
    let all = choices.flat_map(|(zero, recompute)| {
        microbatches.iter().map(move |&count| arrange(inputs, degrees, zero, recompute, count))
    });
    all.reduce(|best, other| {
        let better = match (best.fits, other.fits) {
            (true, true) => other.step_ms < best.step_ms * (1.0 - 1e-9),
            (false, false) => other.memory_gb < best.memory_gb,
            (_, fits) => fits,
        };
        if better { other } else { best }
    })
}

/// The numbers of micro-batches to try: powers of two that divide a replica's sequences, and all of them.
fn microbatches(inputs: &ParallelInputs, degrees: Degrees) -> Vec<u32> {
    let sequences = inputs.batch / degrees.data;
    if let Some(count) = inputs.microbatches {
        // A micro-batch has at least one sequence.
        return vec![count.min(sequences).max(1)];
    }
    let powers = (0..31).map(|power| 1u32 << power).take_while(|&n| n <= sequences);
    let mut all: Vec<u32> = powers.filter(|&n| sequences.is_multiple_of(n)).chain([sequences]).collect();
    all.dedup();
    all
}

pub const FORMULAS: &[&str] = &[
    "parameters = layers × (4 + 8 experts) hidden² + vocabulary × hidden; arithmetic per token = 6 (training) or 2 active parameters + attention; compute = arithmetic / (ranks × rate × utilization); decoding: at least weights and KV cache / memory bandwidth",
    "tensor: 4 all-reduces of the activations per layer (6 with recomputation, 2 in inference); sequence (Ulysses): twice as many all-to-alls, each of (n − 1) / n of a rank's share; expert: half as many of the tokens' activations times active experts; all exposed",
    "pipeline: activations once per direction and micro-batch; bubble = compute × (stages − 1) / micro-batches",
    "data: all-reduce of gradients (ZeRO-1 and 2: reduce-scatter and all-gather, the same bytes), overlapped with the backward pass; FSDP: 1.5 times that for each micro-batch, overlapped with all compute; at least 5% stays exposed",
    "memory = weights, gradients and Adam state, 16 bytes per parameter, shared out by tensor, pipeline, expert and ZeRO or FSDP; activations kept for the backward pass: (5 + 12 / tensor) values per value of a layer's input, with recomputation the inputs only; logits in fp32; without the CUDA context and NCCL's buffers, which take a few GB",
];
