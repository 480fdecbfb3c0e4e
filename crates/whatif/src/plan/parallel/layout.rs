//! What does one layout compute and move per step?

use busbound_machine::Interconnect;

use super::memory::memory;
use super::volumes::{Volumes, split_parameters};
use super::{Arrangement, Degrees, Exchange, ParallelInputs, Workload, Zero};
use crate::plan::allreduce::{Algorithm, allreduce_ms, fastest, ring_bytes};
use crate::plan::cluster::Cluster;

/// Attention, an MLP with 4x hidden size for each expert, and the embedding.
pub(super) fn parameters(inputs: &ParallelInputs) -> f64 {
    let (dense, experts) = split_parameters(inputs);
    dense + experts
}

pub(super) fn arrange(
    inputs: &ParallelInputs,
    degrees: Degrees,
    zero: Zero,
    recompute: bool,
    microbatches: u32,
) -> Arrangement {
    let volumes = Volumes::of(inputs, degrees, zero, recompute, microbatches);
    let compute_ms = volumes.compute_ms;
    let exchanges: Vec<Exchange> =
        [volumes.tensor(), volumes.sequence(), volumes.expert(), volumes.pipeline(), volumes.data()]
            .into_iter()
            .flatten()
            .collect();
    let bubble_ms = compute_ms * f64::from(degrees.pipeline - 1) / volumes.microbatches;
    let exposed: f64 = exchanges.iter().map(|exchange| exchange.exposed_ms).sum();
    let step_ms = compute_ms + bubble_ms + exposed;
    let memory = memory(&volumes);
    let memory_gb = memory.total_gb();
    let fits = memory_gb <= inputs.gpu_gb;
    let sequences_per_second = f64::from(inputs.batch) / step_ms * 1e3;
    let tokens = if inputs.workload == Workload::Decode { 1.0 } else { f64::from(inputs.sequence) };
    let extra_ms = compute_ms - volumes.model_ms;
    Arrangement {
        degrees,
        zero,
        recompute,
        microbatches,
        name: name(degrees, zero),
        step_ms,
        compute_ms,
        sequences_per_second,
        tokens_per_second: sequences_per_second * tokens,
        efficiency: volumes.model_ms / step_ms,
        loses_to: if fits {
            worst(&exchanges, bubble_ms, extra_ms)
        } else {
            Some("does not fit in GPU memory".to_owned())
        },
        exchanges,
        bubble_ms,
        memory_gb,
        memory,
        fits,
    }
}

fn name(degrees: Degrees, zero: Zero) -> String {
    match zero {
        Zero::Off => degrees.name(),
        _ => format!("{}, {}", degrees.name(), zero.name()),
    }
}

/// The largest loss of time of an arrangement.
fn worst(exchanges: &[Exchange], bubble_ms: f64, recompute_ms: f64) -> Option<String> {
    let exchanged = exchanges.iter().map(|exchange| (exchange.what, exchange.exposed_ms));
    let all = exchanged.chain([("pipeline: bubble", bubble_ms), ("recomputation", recompute_ms)]);
    let worst = all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ms)| *ms > 0.0);
    worst.map(|(what, _)| what.to_owned())
}

impl<'a> Volumes<'a> {
    fn of(
        inputs: &'a ParallelInputs,
        degrees: Degrees,
        zero: Zero,
        recompute: bool,
        microbatches: u32,
    ) -> Self {
        let of = f64::from;
        let length = if inputs.workload == Workload::Decode { 1.0 } else { of(inputs.sequence) };
        let tokens = of(inputs.batch) * length;
        let mut volumes = Self {
            inputs,
            degrees,
            zero,
            recompute,
            compute_ms: 0.0,
            model_ms: 0.0,
            microbatches: of(microbatches),
            activations: tokens / of(degrees.data) * of(inputs.hidden) * inputs.bytes_per_value,
            stage_layers: of(inputs.layers) / of(degrees.pipeline),
        };
        volumes.model_ms = volumes.model_ms(tokens);
        // Recomputation runs the forward pass again: a third of forward and backward.
        volumes.compute_ms = volumes.model_ms * if recompute { 4.0 / 3.0 } else { 1.0 };
        volumes
    }

    fn model_ms(&self, tokens: f64) -> f64 {
        let (inputs, of) = (self.inputs, f64::from);
        let (dense, experts) = split_parameters(inputs);
        let active = dense + experts * of(inputs.active_experts) / of(inputs.experts);
        // Forward and backward: 6 FLOPs per parameter and token, forward alone 2, plus the attention matrix products.
        let passes = if inputs.is_training() { 6.0 } else { 2.0 };
        let attention = 2.0 * passes * of(inputs.layers) * of(inputs.hidden) * of(inputs.sequence);
        let rate = of(inputs.cluster.ranks) * inputs.tflops * 1e12 * inputs.utilization;
        let arithmetic_ms = (passes * active + attention) * tokens / rate * 1e3;
        if inputs.workload != Workload::Decode {
            return arithmetic_ms;
        }
        // Each token reads the weights once per micro-batch, and its part of the KV cache.
        let memory = memory(self);
        let read = self.microbatches * memory.weights_gb + memory.kv_cache_gb;
        arithmetic_ms.max(read / inputs.memory_gbps * 1e3)
    }

    fn cluster(&self) -> &Cluster {
        &self.inputs.cluster
    }

    /// Ranks within one node.
    fn within(&self, ranks: u32) -> Cluster {
        Cluster::one_node(ranks, self.cluster().link.clone())
    }

    /// How often a collective of the forward pass runs per step: forward, backward, forward again.
    fn passes(&self) -> f64 {
        match (self.inputs.is_training(), self.recompute) {
            (false, _) => 1.0,
            (true, false) => 2.0,
            (true, true) => 3.0,
        }
    }

    /// Two all-reduces per layer and pass, all exposed.
    fn tensor(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, .. } = self.degrees;
        let each = self.activations / f64::from(sequence) / self.microbatches;
        let number = 2.0 * self.passes() * self.stage_layers * self.microbatches;
        (tensor > 1).then(|| {
            let ms = number * allreduce_ms(&self.within(tensor), each);
            self.exposed("tensor: all-reduce of activations", number * ring_bytes(each, tensor), ms)
        })
    }

    /// Ulysses: all-to-alls of queries, keys, values and the output, per pass.
    fn sequence(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, .. } = self.degrees;
        let of = f64::from;
        (sequence > 1).then(|| {
            let each = self.activations / of(sequence) * of(sequence - 1) / of(sequence) / of(tensor);
            let bytes = 4.0 * self.passes() * self.stage_layers * each;
            let ms = bytes / self.cluster().link.nccl_gbps / 1e6;
            self.exposed("sequence: all-to-all of activations", bytes, ms)
        })
    }

    /// All-to-alls of each token to its experts and back, per layer and pass.
    fn expert(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, expert, .. } = self.degrees;
        let of = f64::from;
        (expert > 1).then(|| {
            let tokens = self.activations / of(sequence) / of(tensor) * of(self.inputs.active_experts);
            let bytes = 2.0 * self.passes() * self.stage_layers * tokens * of(expert - 1) / of(expert);
            let crosses = expert * self.degrees.replica_ranks() > self.cluster().ranks_per_node();
            let ms = bytes / self.gbps(crosses) / 1e6;
            let over = over(self.cluster(), crosses);
            Exchange { what: "expert: all-to-all of tokens", bytes, ms, exposed_ms: ms, over }
        })
    }

    fn pipeline(&self) -> Option<Exchange> {
        let Degrees { tensor, sequence, pipeline, .. } = self.degrees;
        let crosses = self.degrees.replica_ranks() > self.cluster().ranks_per_node();
        let directions = if self.inputs.is_training() { 2.0 } else { 1.0 };
        let bytes = directions * self.activations / f64::from(sequence) / f64::from(tensor);
        let ms = bytes / self.gbps(crosses) / 1e6;
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
        let Degrees { data, tensor, pipeline, sequence, expert } = self.degrees;
        let replicas = data * sequence;
        if replicas == 1 || !self.inputs.is_training() {
            return None;
        }
        // Replicas within a node: the sequence-parallel ones, and as many data-parallel ones as fit.
        let near = sequence * (self.cluster().ranks_per_node() / self.degrees.replica_ranks()).clamp(1, data);
        let nodes = replicas.div_ceil(near);
        let (dense, experts) = split_parameters(self.inputs);
        // Gradients of experts are reduced over the ranks that have the same ones, which is a smaller group.
        let parameters = dense + experts / f64::from(expert);
        let gradients = parameters / f64::from(tensor) / f64::from(pipeline) * self.inputs.bytes_per_value;
        let cluster = if nodes > 1 { self.across(replicas, nodes, near) } else { self.within(replicas) };
        let over = over(self.cluster(), nodes > 1);
        let (what, times, ms, hidden) = if self.zero == Zero::Three {
            // Weights are gathered forward and backward, gradients scattered, for each micro-batch.
            let ring = fastest(&cluster, gradients, Algorithm::Ring).map_or(0.0, |way| way.ms);
            let times = 1.5 * self.microbatches;
            ("data: all-gather of weights", times, times * ring, self.compute_ms)
        } else {
            let backward = self.model_ms * 2.0 / 3.0;
            ("data: all-reduce of gradients", 1.0, allreduce_ms(&cluster, gradients), backward)
        };
        let exposed_ms = (ms - hidden).max(0.05 * ms);
        Some(Exchange { what, bytes: times * ring_bytes(gradients, replicas), ms, exposed_ms, over })
    }

    /// Replicas over several nodes, `near` of them per node, with their share of the ports.
    fn across(&self, replicas: u32, nodes: u32, near: u32) -> Cluster {
        let gbps = port_gbps(self.cluster()) * f64::from(near);
        let net =
            self.cluster().net.clone().map(|net| Interconnect { peak_gbps: gbps, nccl_gbps: gbps, ..net });
        Cluster { ranks: replicas, nodes, net, ports: 1, ..self.cluster().clone() }
    }

    fn gbps(&self, crosses: bool) -> f64 {
        if crosses { port_gbps(self.cluster()) } else { self.cluster().link.nccl_gbps }
    }

    /// An exchange within a node that nothing hides.
    fn exposed(&self, what: &'static str, bytes: f64, ms: f64) -> Exchange {
        Exchange { what, bytes, ms, exposed_ms: ms, over: self.cluster().link.name.clone() }
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
        Some(net) if crosses => net.name.clone(),
        _ => cluster.link.name.clone(),
    }
}
