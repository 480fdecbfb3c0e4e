//! A model does not fit: what to recompute, shard or offload first?
//!
//! Every measure is planned with the byte model of `plan parallel` for data-parallel ranks. The order is greedy: at each
//! step the measure that costs the least time per GB that it frees, on top of those already taken, until it fits.

use busbound_machine::{GpuFacts, Interconnect, LinkFacts};
use busbound_whatif::plan::BadInput;
use busbound_whatif::plan::cluster::Cluster;
use busbound_whatif::plan::parallel::{Arrangement, Parallel, ParallelInputs, Workload, Zero};
use serde::Serialize;

/// A model by its size, and the GPUs for it.
#[derive(Debug, Clone)]
pub struct MemoryQuestion {
    pub parameters: f64,
    pub bytes_per_value: f64,
    /// Sequences per step over all ranks.
    pub batch: u32,
    pub sequence: u32,
    pub gpu: &'static GpuFacts,
    pub ranks: u32,
    /// Between the GPUs.
    pub link: Interconnect,
    /// From a GPU to its host, and the ranks that share it.
    pub host: LinkFacts,
    pub sharing: u32,
    pub utilization: f64,
}

/// Something that frees memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Twice as many micro-batches per step.
    MoreMicrobatches,
    Recompute,
    /// The next stage of ZeRO: optimizer state, gradients, weights.
    Shard,
    OffloadOptimizer,
    OffloadActivations,
    OffloadWeights,
}

impl Measure {
    const ALL: [Self; 6] = [
        Self::MoreMicrobatches,
        Self::Recompute,
        Self::Shard,
        Self::OffloadOptimizer,
        Self::OffloadActivations,
        Self::OffloadWeights,
    ];
}

/// One measure on top of others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relief {
    pub measure: Measure,
    /// What it leads to: micro-batches, or the stage of ZeRO.
    pub to: Option<u32>,
    pub frees_gb: f64,
    /// Bytes per step and GPU over the link to the host, both directions; 0 if it stays on the GPUs.
    pub host_gb: f64,
    pub costs_ms: f64,
    pub memory_gb: f64,
    pub step_ms: f64,
}

impl Relief {
    pub fn ms_per_gb(&self) -> f64 {
        self.costs_ms.max(0.0) / self.frees_gb
    }
}

/// What frees memory, cheapest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryPlan {
    pub inputs: ParallelInputs,
    /// As asked, and of the layers that they were planned as.
    pub parameters: f64,
    pub planned_parameters: f64,
    pub host_link: String,
    /// GB/s of a GPU's copies to or from the host while all ranks copy.
    pub host_gbps: f64,
    /// With nothing done about memory.
    pub plain: Arrangement,
    /// Each measure alone, by its cost per GB.
    pub alone: Vec<Relief>,
    /// What to do in order, until it fits.
    pub steps: Vec<Relief>,
    pub fits: bool,
}

/// Bytes per parameter that Adam on the CPU reads and writes: state, gradient and weight in fp32, the weight in bf16.
const ADAM_BYTES: f64 = 30.0;
/// GB/s of host memory that all ranks of a node share for it; assumed.
const HOST_MEMORY_GBPS: f64 = 100.0;
/// Hidden size divided by layers, and the size of a head, of a usual decoder.
const WIDTH_PER_LAYER: f64 = 128.0;
const HEAD: u32 = 128;
const VOCABULARY: u32 = 32_000;

/// What has been done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    zero: Zero,
    recompute: bool,
    microbatches: u32,
    optimizer: bool,
    activations: bool,
    weights: bool,
}

/// What a state needs and costs.
#[derive(Debug, Clone)]
struct Outcome {
    layout: Arrangement,
    memory_gb: f64,
    step_ms: f64,
    host_gb: f64,
}

impl MemoryPlan {
    /// # Errors
    /// If an input is invalid, or the ranks do not divide the batch.
    pub fn plan(question: &MemoryQuestion) -> Result<Self, BadInput> {
        let planner = Planner::of(question);
        let plain = State {
            zero: Zero::Off,
            recompute: false,
            microbatches: 1,
            optimizer: false,
            activations: false,
            weights: false,
        };
        let mut first = planner.outcome(plain)?;
        first.layout.fits = first.memory_gb <= question.gpu.memory_gb;
        let mut alone = planner.reliefs(plain, &first);
        alone.sort_by(|a, b| a.1.ms_per_gb().total_cmp(&b.1.ms_per_gb()));
        let (mut state, mut at, mut steps) = (plain, first.clone(), Vec::new());
        while at.memory_gb > question.gpu.memory_gb {
            let all = planner.reliefs(state, &at);
            let Some((next, relief)) =
                all.into_iter().min_by(|a, b| a.1.ms_per_gb().total_cmp(&b.1.ms_per_gb()))
            else {
                break;
            };
            (state, at) = (next, planner.outcome(next)?);
            steps.push(relief);
        }
        Ok(Self {
            parameters: planner.parameters,
            planned_parameters: first.layout.memory.weights_gb * 1e9 / question.bytes_per_value,
            host_link: question.host.name.clone(),
            host_gbps: planner.host_gbps,
            fits: at.memory_gb <= question.gpu.memory_gb,
            inputs: planner.inputs,
            plain: first.layout,
            alone: alone.into_iter().map(|(_, relief)| relief).collect(),
            steps,
        })
    }
}

struct Planner {
    inputs: ParallelInputs,
    parameters: f64,
    host_gbps: f64,
}

impl Planner {
    fn of(question: &MemoryQuestion) -> Self {
        let layers = (question.parameters / 12.0 / WIDTH_PER_LAYER.powi(2)).cbrt().round().max(1.0);
        // 12 layers hidden² + vocabulary × hidden, in whole heads; the rest is rounding.
        let vocabulary = f64::from(VOCABULARY);
        let root = (vocabulary * vocabulary + 48.0 * layers * question.parameters).sqrt();
        let hidden = (root - vocabulary) / (24.0 * layers);
        let heads = ((hidden / f64::from(HEAD)).round() as u32).max(1);
        let gpu = question.gpu;
        let inputs = ParallelInputs {
            workload: Workload::Train,
            layers: layers as u32,
            hidden: heads * HEAD,
            heads,
            kv_heads: heads,
            vocabulary: VOCABULARY,
            experts: 1,
            active_experts: 1,
            batch: question.batch,
            sequence: question.sequence,
            bytes_per_value: question.bytes_per_value,
            cluster: Cluster::one_node(question.ranks, question.link.clone()),
            gpu: gpu.key,
            tflops: gpu.bf16_tflops,
            utilization: question.utilization,
            gpu_gb: gpu.memory_gb,
            memory_gbps: gpu.memory_gbps,
            microbatches: Some(1),
            zero: Some(Zero::Off),
            recompute: Some(false),
        };
        let host_gbps = question.host.reachable_gbps() / f64::from(question.sharing.max(1));
        Self { inputs, parameters: question.parameters, host_gbps }
    }

    /// Data-parallel ranks in this state.
    fn outcome(&self, state: State) -> Result<Outcome, BadInput> {
        let inputs = ParallelInputs {
            zero: Some(state.zero),
            recompute: Some(state.recompute),
            microbatches: Some(state.microbatches),
            // What comes closest is not the question here.
            gpu_gb: f64::MAX,
            ..self.inputs.clone()
        };
        let ranks = inputs.cluster.ranks;
        let plan = Parallel::plan(inputs)?;
        let layout = plan.ranked.into_iter().find(|layout| layout.degrees.data == ranks);
        let layout = layout.ok_or_else(|| BadInput {
            what: "--batch",
            valid: format!("a multiple of the {ranks} ranks"),
            given: self.inputs.batch.to_string(),
        })?;
        Ok(self.with_offloading(state, layout))
    }

    /// The part of a layout that is moved to the host, and what that costs.
    fn with_offloading(&self, state: State, layout: Arrangement) -> Outcome {
        let memory = layout.memory;
        let (mut freed, mut sent, mut exposed) = (0.0, 0.0, 0.0);
        let ms = |gb: f64| 1e3 * gb / self.host_gbps;
        if state.optimizer {
            // Gradients go out and weights come back; nothing of the model runs meanwhile.
            let parameters_gb = memory.optimizer_gb / (16.0 - 2.0 * self.inputs.bytes_per_value).max(1.0);
            let moved = 2.0 * self.inputs.bytes_per_value * parameters_gb;
            let ranks = f64::from(self.inputs.cluster.ranks);
            freed += memory.optimizer_gb;
            sent += moved;
            exposed += ms(moved) + 1e3 * ADAM_BYTES * parameters_gb * ranks / HOST_MEMORY_GBPS;
        }
        if state.activations {
            let moved = memory.activations_gb * f64::from(state.microbatches);
            freed += memory.activations_gb * (1.0 - 2.0 / f64::from(self.inputs.layers)).max(0.0);
            sent += 2.0 * moved;
            let (forward, backward) = (layout.compute_ms / 3.0, layout.compute_ms * 2.0 / 3.0);
            exposed += (ms(moved) - forward).max(0.0) + (ms(moved) - backward).max(0.0);
        }
        if state.weights {
            // Two layers stay; every micro-batch reads all of them forward and backward.
            let moved = memory.weights_gb * 2.0 * f64::from(state.microbatches);
            freed += memory.weights_gb * (1.0 - 2.0 / f64::from(self.inputs.layers)).max(0.0);
            sent += moved;
            exposed += (ms(moved) - layout.compute_ms).max(0.0);
        }
        let step_ms = layout.step_ms + exposed;
        Outcome { memory_gb: layout.memory_gb - freed, step_ms, host_gb: sent, layout }
    }

    /// Every measure that frees memory on top of a state.
    fn reliefs(&self, state: State, at: &Outcome) -> Vec<(State, Relief)> {
        let relief = |measure: Measure| {
            let next = self.after(state, measure)?;
            let outcome = self.outcome(next).ok()?;
            let frees_gb = at.memory_gb - outcome.memory_gb;
            // What frees next to nothing is no measure.
            (frees_gb > 0.001 * at.memory_gb).then(|| {
                let to = match measure {
                    Measure::MoreMicrobatches => Some(next.microbatches),
                    Measure::Shard => Some(next.zero as u32),
                    _ => None,
                };
                let relief = Relief {
                    measure,
                    to,
                    frees_gb,
                    host_gb: outcome.host_gb - at.host_gb,
                    costs_ms: outcome.step_ms - at.step_ms,
                    memory_gb: outcome.memory_gb,
                    step_ms: outcome.step_ms,
                };
                (next, relief)
            })
        };
        Measure::ALL.into_iter().filter_map(relief).collect()
    }

    /// `None` if it is done already, or not possible.
    fn after(&self, state: State, measure: Measure) -> Option<State> {
        let per_rank = self.inputs.batch / self.inputs.cluster.ranks;
        let next = match measure {
            Measure::MoreMicrobatches => State { microbatches: 2 * state.microbatches, ..state },
            Measure::Recompute => State { recompute: true, ..state },
            Measure::Shard => State { zero: Zero::stage(state.zero as u8 + 1)?, ..state },
            Measure::OffloadOptimizer => State { optimizer: true, ..state },
            Measure::OffloadActivations => State { activations: true, ..state },
            Measure::OffloadWeights => State { weights: true, ..state },
        };
        let is_possible = match measure {
            Measure::MoreMicrobatches => per_rank.is_multiple_of(next.microbatches),
            Measure::Shard => self.inputs.cluster.ranks > 1,
            _ => true,
        };
        (is_possible && next != state).then_some(next)
    }
}

pub const MEMORY_FORMULAS: &[&str] = &[
    "memory, compute and exchanges as in `plan parallel`, for data-parallel ranks; a model of this many parameters has layers of 12 hidden² with hidden = 128 × layers",
    "recomputation: the forward pass again, a third of compute; sharding: ZeRO-1, 2 and 3 (FSDP), one after the other; micro-batches: the activations of one at a time",
    "optimizer in host memory: gradients out and weights back per step, exposed, and Adam on the CPU at 30 bytes per parameter and 100 GB/s of host memory for all ranks (assumed)",
    "activations in host memory: out during the forward pass, back during the backward pass, exposed where the link is slower; weights: read forward and backward for each micro-batch; two layers of either stay on the GPU",
    "order: the lowest cost per GB freed first, each on top of those before it, until it fits; without the CUDA context and NCCL's buffers, which take a few GB",
];

#[cfg(test)]
mod tests {
    use busbound_machine::{Machine, gpu_of_key};

    use super::*;

    fn question(parameters: f64, gpu: &str, ranks: u32, batch: u32) -> MemoryQuestion {
        let gpu = gpu_of_key(gpu).unwrap();
        MemoryQuestion {
            parameters,
            bytes_per_value: 2.0,
            batch,
            sequence: 2048,
            gpu,
            ranks,
            link: Interconnect::of_gpu(gpu),
            host: Machine::of_gpu(gpu).link_of(None),
            sharing: 1,
            utilization: 0.4,
        }
    }

    fn alone(plan: &MemoryPlan, measure: Measure) -> &Relief {
        plan.alone.iter().find(|relief| relief.measure == measure).unwrap()
    }

    /// 1.3 billion parameters: 20.8 GB of state at 16 bytes each, of which Adam has 12.
    #[test]
    fn each_measure_frees_what_it_moves() {
        let plan = MemoryPlan::plan(&question(1.3e9, "rtx-4090", 1, 8)).unwrap();
        let (memory, parameters_gb) = (plan.plain.memory, plan.plain.memory.weights_gb / 2.0);
        let optimizer = alone(&plan, Measure::OffloadOptimizer);
        assert!((optimizer.frees_gb - memory.optimizer_gb).abs() < 1e-9);
        assert!((optimizer.host_gb - 4.0 * parameters_gb).abs() < 1e-9, "bf16 gradients and weights");
        let gbps = plan.host_gbps;
        let wanted = 1e3 * (4.0 * parameters_gb / gbps + 30.0 * parameters_gb / 100.0);
        assert!((optimizer.costs_ms - wanted).abs() < 1e-6, "{} {wanted}", optimizer.costs_ms);
        let recompute = alone(&plan, Measure::Recompute);
        assert!((recompute.costs_ms - plan.plain.compute_ms / 3.0).abs() < 1e-6);
        assert_eq!(recompute.host_gb, 0.0);
        assert!(
            plan.alone.iter().all(|relief| relief.measure != Measure::Shard),
            "one rank shares with nobody"
        );
    }

    #[test]
    fn the_cheapest_per_gb_comes_first_and_it_ends_when_it_fits() {
        let plan = MemoryPlan::plan(&question(1.3e9, "rtx-4090", 1, 8)).unwrap();
        assert!(plan.plain.memory_gb > 24.0 && plan.fits, "{plan:?}");
        assert!(plan.alone.is_sorted_by(|a, b| a.ms_per_gb() <= b.ms_per_gb()));
        // Micro-batches cost nothing that this model counts.
        assert_eq!(plan.steps[0].measure, Measure::MoreMicrobatches);
        let (last, before) = plan.steps.split_last().unwrap();
        assert!(last.memory_gb <= 24.0 && before.iter().all(|step| step.memory_gb > 24.0));
        assert!(plan.steps.windows(2).all(|pair| {
            (pair[0].memory_gb - pair[1].memory_gb - pair[1].frees_gb).abs() < 1e-9
                && (pair[1].step_ms - pair[0].step_ms - pair[1].costs_ms).abs() < 1e-9
        }));
    }

    #[test]
    fn ranks_share_the_state_before_anything_goes_to_the_host() {
        let plan = MemoryPlan::plan(&question(7e9, "h100-sxm", 8, 64)).unwrap();
        assert!(plan.fits);
        assert!(plan.steps.iter().any(|step| step.measure == Measure::Shard), "{:?}", plan.steps);
        assert!(plan.steps.iter().all(|step| step.host_gb == 0.0), "{:?}", plan.steps);
    }

    #[test]
    fn what_fits_needs_nothing_and_what_cannot_says_so() {
        let small = MemoryPlan::plan(&question(125e6, "h200", 1, 4)).unwrap();
        assert!(small.fits && small.steps.is_empty() && !small.alone.is_empty());
        let huge = MemoryPlan::plan(&question(405e9, "rtx-4060", 1, 1)).unwrap();
        assert!(!huge.fits && huge.steps.last().unwrap().memory_gb > 8.0);
        assert!(MemoryPlan::plan(&question(7e9, "h100-sxm", 8, 3)).is_err(), "3 sequences on 8 ranks");
    }
}
