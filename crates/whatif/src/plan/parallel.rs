//! Which parallelism suits a transformer on these GPUs? Ranks each kind and their hybrids by bytes and time.
//!
//! It models volumes, not kernels: compute is the model's arithmetic at a given share of the GPU's peak rate, and every
//! exchange runs at the rate that NCCL assumes for its link. Use it for ranking, not as a step time prediction.

use busbound_machine::Interconnect;
use serde::Serialize;

use super::allreduce::{Cluster, allreduce_ms, ring_bytes};
use super::{BadInput, ensure};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParallelInputs {
    pub layers: u32,
    pub hidden: u32,
    pub heads: u32,
    pub vocabulary: u32,
    /// Sequences per step over all ranks.
    pub batch: u32,
    pub sequence: u32,
    /// For activations and gradients.
    pub bytes_per_value: f64,
    pub cluster: Cluster,
    /// Dense peak of one GPU; `utilization` is the share of it that kernels reach.
    pub tflops: f64,
    pub utilization: f64,
    pub gpu_gb: f64,
    pub microbatches: u32,
}

/// Degree of each kind of parallelism; their product is the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Degrees {
    pub data: u32,
    pub tensor: u32,
    pub pipeline: u32,
    pub sequence: u32,
}

impl Degrees {
    pub fn name(self) -> String {
        let parts = [("dp", self.data), ("tp", self.tensor), ("pp", self.pipeline), ("sp", self.sequence)];
        let used: Vec<String> =
            parts.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name}{n}")).collect();
        if used.is_empty() { "one GPU".to_owned() } else { used.join(" × ") }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arrangement {
    pub degrees: Degrees,
    pub name: String,
    pub step_ms: f64,
    pub compute_ms: f64,
    pub sequences_per_second: f64,
    /// Compute time divided by step time, 0 to 1.
    pub efficiency: f64,
    /// Bytes that each GPU sends per step, and their time, by purpose.
    pub exchanges: Vec<Exchange>,
    pub bubble_ms: f64,
    pub memory_gb: f64,
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
    /// Arrangements that fit in memory first, then by speed.
    pub ranked: Vec<Arrangement>,
}

impl Parallel {
    /// # Errors
    /// If an input is invalid.
    pub fn plan(inputs: ParallelInputs) -> Result<Self, BadInput> {
        inputs.cluster.check()?;
        for (what, value) in [
            ("--layers", inputs.layers),
            ("--hidden", inputs.hidden),
            ("--heads", inputs.heads),
            ("--vocabulary", inputs.vocabulary),
            ("--batch", inputs.batch),
            ("--sequence", inputs.sequence),
            ("--microbatches", inputs.microbatches),
        ] {
            ensure((1..=100_000_000).contains(&value), what, "1 or more", value)?;
        }
        let (hidden, heads) = (inputs.hidden, inputs.heads);
        ensure(
            hidden.is_multiple_of(heads),
            "--heads",
            format!("a divisor of the hidden size {hidden}"),
            heads,
        )?;
        ensure(inputs.tflops > 0.0, "--tflops", "above zero", inputs.tflops)?;
        let utilization = inputs.utilization;
        ensure(
            utilization > 0.0 && utilization <= 1.0,
            "--utilization",
            "above 0 and at most 100%",
            utilization,
        )?;
        ensure(inputs.gpu_gb > 0.0, "--memory", "above zero", inputs.gpu_gb)?;
        let parameters = parameters(&inputs);
        let mut ranked: Vec<Arrangement> =
            degrees(&inputs).into_iter().map(|degrees| arrange(&inputs, parameters, degrees)).collect();
        ensure(
            !ranked.is_empty(),
            "--ranks",
            "a number that divides the batch, heads or layers",
            inputs.cluster.ranks,
        )?;
        ranked.sort_by(|a, b| b.fits.cmp(&a.fits).then(a.step_ms.total_cmp(&b.step_ms)));
        Ok(Self { inputs, parameters, ranked })
    }
}

/// Attention, an MLP with 4x hidden size, and the embedding.
fn parameters(inputs: &ParallelInputs) -> f64 {
    let hidden = f64::from(inputs.hidden);
    12.0 * f64::from(inputs.layers) * hidden * hidden + f64::from(inputs.vocabulary) * hidden
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
                let heads = inputs.heads.is_multiple_of(tensor * sequence);
                let possible = heads
                    && inputs.layers.is_multiple_of(pipeline)
                    && inputs.batch.is_multiple_of(data)
                    && inputs.sequence.is_multiple_of(sequence)
                    // Nobody runs tensor or sequence parallelism across nodes.
                    && tensor * sequence <= inputs.cluster.ranks_per_node();
                if possible {
                    all.push(Degrees { data, tensor, pipeline, sequence });
                }
            }
        }
    }
    all
}

fn arrange(inputs: &ParallelInputs, parameters: f64, degrees: Degrees) -> Arrangement {
    let volumes = Volumes::of(inputs, parameters, degrees);
    let compute_ms = volumes.compute_ms;
    let exchanges: Vec<Exchange> = [volumes.tensor(), volumes.sequence(), volumes.pipeline(), volumes.data()]
        .into_iter()
        .flatten()
        .collect();
    let bubble_ms = compute_ms * f64::from(degrees.pipeline - 1) / volumes.microbatches;
    let exposed: f64 = exchanges.iter().map(|exchange| exchange.exposed_ms).sum();
    let step_ms = compute_ms + bubble_ms + exposed;
    let memory_gb = volumes.memory_gb();
    let fits = memory_gb <= inputs.gpu_gb;
    Arrangement {
        degrees,
        name: degrees.name(),
        step_ms,
        compute_ms,
        sequences_per_second: f64::from(inputs.batch) / step_ms * 1e3,
        efficiency: compute_ms / step_ms,
        loses_to: if fits {
            worst(&exchanges, bubble_ms)
        } else {
            Some("does not fit in GPU memory".to_owned())
        },
        exchanges,
        bubble_ms,
        memory_gb,
        fits,
    }
}

/// The largest loss of time of an arrangement.
fn worst(exchanges: &[Exchange], bubble_ms: f64) -> Option<String> {
    let exchanged = exchanges.iter().map(|exchange| (exchange.what, exchange.exposed_ms));
    let all = exchanged.chain([("pipeline: bubble", bubble_ms)]);
    let worst = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ms)| *ms > 0.0);
    worst.map(|(what, _)| what.to_owned())
}

/// What one arrangement computes and moves per step.
struct Volumes<'a> {
    inputs: &'a ParallelInputs,
    parameters: f64,
    degrees: Degrees,
    compute_ms: f64,
    microbatches: f64,
    /// Bytes of one layer's activations in one replica.
    activations: f64,
    /// Layers per pipeline stage.
    stage_layers: f64,
}

impl<'a> Volumes<'a> {
    fn of(inputs: &'a ParallelInputs, parameters: f64, degrees: Degrees) -> Self {
        let of = f64::from;
        let (layers, hidden, length) = (of(inputs.layers), of(inputs.hidden), of(inputs.sequence));
        let tokens = of(inputs.batch) * length;
        // Forward and backward: 6 FLOPs per parameter and token, plus the attention matrix products.
        let arithmetic = 6.0 * parameters * tokens + 12.0 * layers * hidden * length * tokens;
        let rate = of(inputs.cluster.ranks) * inputs.tflops * 1e12 * inputs.utilization;
        Self {
            inputs,
            parameters,
            degrees,
            compute_ms: arithmetic / rate * 1e3,
            // A micro-batch has at least one sequence.
            microbatches: of(inputs.microbatches.min(inputs.batch / degrees.data).max(1)),
            activations: tokens / of(degrees.data) * hidden * inputs.bytes_per_value,
            stage_layers: layers / of(degrees.pipeline),
        }
    }

    fn cluster(&self) -> &Cluster {
        &self.inputs.cluster
    }

    /// Ranks within one node.
    fn within(&self, ranks: u32) -> Cluster {
        Cluster::one_node(ranks, self.cluster().link.clone())
    }

    /// Ranks of one replica. The placement order is tensor, sequence, pipeline, data: groups larger than a node cross
    /// the network, and the GPUs of a node share its ports equally.
    fn replica_ranks(&self) -> u32 {
        self.degrees.tensor * self.degrees.sequence * self.degrees.pipeline
    }

    /// Two all-reduces forward and two backward per layer, all exposed.
    fn tensor(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, .. } = self.degrees;
        let each = self.activations / f64::from(sequence) / self.microbatches;
        let number = 4.0 * self.stage_layers * self.microbatches;
        (tensor > 1).then(|| {
            let ms = number * allreduce_ms(&self.within(tensor), each);
            Exchange {
                what: "tensor: all-reduce of activations",
                bytes: number * ring_bytes(each, tensor),
                ms,
                exposed_ms: ms,
                over: link_name(&self.cluster().link),
            }
        })
    }

    /// Ulysses: all-to-alls of queries, keys, values and the output, forward and backward.
    fn sequence(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, .. } = self.degrees;
        let of = f64::from;
        (sequence > 1).then(|| {
            let each = self.activations / of(sequence) * of(sequence - 1) / of(sequence) / of(tensor);
            let bytes = 8.0 * self.stage_layers * each;
            let ms = bytes / self.cluster().link.nccl_gbps / 1e6;
            Exchange {
                what: "sequence: all-to-all of activations",
                bytes,
                ms,
                exposed_ms: ms,
                over: link_name(&self.cluster().link),
            }
        })
    }

    fn pipeline(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, pipeline, .. } = self.degrees;
        let crosses = self.replica_ranks() > self.cluster().ranks_per_node();
        let gbps = if crosses { port_gbps(self.cluster()) } else { self.cluster().link.nccl_gbps };
        let bytes = 2.0 * self.activations / f64::from(sequence) / f64::from(tensor);
        let ms = bytes / gbps / 1e6;
        (pipeline > 1).then(|| Exchange {
            what: "pipeline: activations to the next stage",
            bytes,
            ms,
            // Only the transfers of the first micro-batch are exposed; the others overlap with compute.
            exposed_ms: ms / self.microbatches,
            over: over(self.cluster(), crosses),
        })
    }

    fn data(&self) -> Option<Exchange> {
        let Degrees { data, tensor, pipeline, sequence } = self.degrees;
        let replicas = data * sequence;
        if replicas == 1 {
            return None;
        }
        // Replicas within a node: the sequence-parallel ones, and as many data-parallel ones as fit.
        let near = sequence * (self.cluster().ranks_per_node() / self.replica_ranks()).clamp(1, data);
        let nodes = replicas.div_ceil(near);
        let gradients =
            self.parameters / f64::from(tensor) / f64::from(pipeline) * self.inputs.bytes_per_value;
        let cluster = if nodes > 1 { self.across(replicas, nodes, near) } else { self.within(replicas) };
        let ms = allreduce_ms(&cluster, gradients);
        let backward = self.compute_ms * 2.0 / 3.0;
        Some(Exchange {
            what: "data: all-reduce of gradients",
            bytes: ring_bytes(gradients, replicas),
            ms,
            exposed_ms: (ms - backward).max(0.05 * ms),
            over: over(self.cluster(), nodes > 1),
        })
    }

    /// Replicas over several nodes, `near` of them per node, with their share of the ports.
    fn across(&self, replicas: u32, nodes: u32, near: u32) -> Cluster {
        let gbps = port_gbps(self.cluster()) * f64::from(near);
        let net =
            self.cluster().net.clone().map(|net| Interconnect { peak_gbps: gbps, nccl_gbps: gbps, ..net });
        Cluster { ranks: replicas, nodes, net, ports: 1, ..self.cluster().clone() }
    }

    fn memory_gb(&self) -> f64 {
        let Degrees { tensor, pipeline, sequence, .. } = self.degrees;
        // Weights, gradients and Adam state in mixed precision: 16 bytes per parameter.
        let state = 16.0 * self.parameters / f64::from(tensor) / f64::from(pipeline);
        // With activation recomputation: the input of every layer for each micro-batch in flight, which tensor
        // parallelism does not divide, plus the intermediate activations of one layer (17 values per input value).
        let microbatch = self.activations / self.microbatches / f64::from(sequence);
        let inputs_kept = self.stage_layers * microbatch * f64::from(pipeline).min(self.microbatches);
        let kept = inputs_kept + 17.0 * microbatch / f64::from(tensor);
        (state + kept) / 1e9
    }
}

/// Network GB/s per GPU of a node.
fn port_gbps(cluster: &Cluster) -> f64 {
    let all =
        cluster.net.as_ref().map_or(cluster.link.nccl_gbps, |net| net.nccl_gbps * f64::from(cluster.ports));
    all / f64::from(cluster.ranks_per_node())
}

fn over(cluster: &Cluster, crosses: bool) -> String {
    match &cluster.net {
        Some(net) if crosses => link_name(net),
        _ => link_name(&cluster.link),
    }
}

fn link_name(link: &Interconnect) -> String {
    link.name.clone()
}

pub const FORMULAS: &[&str] = &[
    "parameters = 12 layers hidden² + vocabulary hidden; arithmetic = 6 parameters tokens + 12 layers hidden sequence tokens; compute = arithmetic / (ranks × rate × utilization)",
    "tensor: 4 all-reduces of the activations per layer; sequence (Ulysses): 8 all-to-alls per layer, each of (n − 1) / n of a rank's share; both exposed",
    "pipeline: activations twice per micro-batch; bubble = compute × (stages − 1) / micro-batches",
    "data: all-reduce of gradients, overlapped with the backward pass (2/3 of compute); at least 5% stays exposed",
    "memory = 16 bytes per parameter (weights, gradients, Adam) / (tensor × pipeline) + activations with recomputation; utilization counts the model's arithmetic only, so recomputation lowers it",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn seven_billion(link: &str, ranks: u32) -> ParallelInputs {
        ParallelInputs {
            layers: 32,
            hidden: 4096,
            heads: 32,
            vocabulary: 32_000,
            batch: 64,
            sequence: 4096,
            bytes_per_value: 2.0,
            cluster: Cluster::one_node(ranks, Interconnect::named(link).unwrap()),
            tflops: 989.0,
            utilization: 0.4,
            gpu_gb: 141.0,
            microbatches: 8,
        }
    }

    fn of<'a>(plan: &'a Parallel, name: &str) -> &'a Arrangement {
        plan.ranked.iter().find(|arrangement| arrangement.name == name).unwrap()
    }

    #[test]
    fn volumes_match_hand_computed_values() {
        let plan = Parallel::plan(seven_billion("nvlink4", 8)).unwrap();
        // 12 × 32 × 4096² + 32000 × 4096.
        assert_eq!(plan.parameters, 6_573_522_944.0);
        let data = &of(&plan, "dp8").exchanges[0];
        assert_eq!(data.bytes, 2.0 * 7.0 / 8.0 * plan.parameters * 2.0);
        // 64 × 4096 × 4096 × 2 bytes of activations, times 4 × 32 all-reduces, times 2 × 7/8.
        let tensor = &of(&plan, "tp8").exchanges[0];
        assert_eq!(tensor.bytes, 128.0 * 1.75 * 2_147_483_648.0);
        // 8 × 32 all-to-alls, each of 7/8 of one eighth of them.
        let sequence = &of(&plan, "sp8").exchanges[0];
        assert_eq!(sequence.bytes, 256.0 * 7.0 / 8.0 * 2_147_483_648.0 / 8.0);
    }

    #[test]
    fn tensor_parallelism_is_slow_on_a_slow_link() {
        let fast = Parallel::plan(seven_billion("nvlink4", 8)).unwrap();
        let slow = Parallel::plan(seven_billion("pcie4x16", 8)).unwrap();
        assert!(of(&slow, "tp8").step_ms > 3.0 * of(&fast, "tp8").step_ms);
        assert!(of(&slow, "tp8").loses_to.as_ref().unwrap().starts_with("tensor"));
        assert_eq!(slow.ranked[0].degrees.tensor, 1);
        // 16 bytes per parameter are 105 GB: a whole replica fits in 141 GB, not in 80.
        assert!(of(&fast, "dp8").fits);
        let small = Parallel::plan(ParallelInputs { gpu_gb: 80.0, ..seven_billion("nvlink4", 8) }).unwrap();
        assert!(!of(&small, "dp8").fits && small.ranked[0].fits);
    }

    /// Eight groups of two share the eight ports of a node: one port per GPU.
    #[test]
    fn groups_share_the_ports_of_their_node() {
        let cluster = Cluster {
            ranks: 16,
            nodes: 2,
            link: Interconnect::named("nvlink4").unwrap(),
            net: Some(Interconnect::named("ib-ndr").unwrap()),
            ports: 8,
        };
        let plan = Parallel::plan(ParallelInputs { cluster: cluster.clone(), ..seven_billion("nvlink4", 8) })
            .unwrap();
        let exchange = |plan: &Parallel, name: &str| {
            let arrangement = of(plan, name);
            arrangement.exchanges.iter().find(|e| e.what.starts_with("data")).unwrap().clone()
        };
        // 6.57 billion parameters in eight shards: 1.64 GB per direction over 50 GB/s.
        let across = exchange(&plan, "dp2 × tp8");
        assert!(
            (across.bytes / 1e9 - 1.643).abs() < 0.001 && (32.0..36.0).contains(&across.ms),
            "{across:?}"
        );
        let fewer = Cluster { ports: 1, ..cluster };
        let plan = Parallel::plan(ParallelInputs { cluster: fewer, ..seven_billion("nvlink4", 8) }).unwrap();
        assert!(exchange(&plan, "dp2 × tp8").ms > 7.0 * across.ms);
        // Sequence-parallel replicas are within a node.
        assert!(exchange(&plan, "pp2 × sp8").ms < 50.0);
    }

    #[test]
    fn a_micro_batch_has_at_least_one_sequence() {
        let plan = Parallel::plan(ParallelInputs { batch: 1, ..seven_billion("nvlink4", 8) }).unwrap();
        let stages = of(&plan, "pp2 × sp4");
        assert_eq!(stages.bubble_ms, stages.compute_ms);
    }

    #[test]
    fn every_hybrid_uses_all_ranks() {
        let plan = Parallel::plan(seven_billion("nvlink4", 8)).unwrap();
        assert!(plan.ranked.len() > 15);
        for arrangement in &plan.ranked {
            let Degrees { data, tensor, pipeline, sequence } = arrangement.degrees;
            assert_eq!(data * tensor * pipeline * sequence, 8);
            assert!(arrangement.step_ms >= arrangement.compute_ms);
        }
    }

    #[test]
    fn invalid_input_is_rejected() {
        for wrong in [
            ParallelInputs { heads: 7, ..seven_billion("nvlink4", 8) },
            ParallelInputs { layers: 0, ..seven_billion("nvlink4", 8) },
            ParallelInputs { utilization: 0.0, ..seven_billion("nvlink4", 8) },
            seven_billion("nvlink4", 0),
        ] {
            assert!(Parallel::plan(wrong).is_err());
        }
    }
}
