//! What does one layout need of each GPU's memory?

use serde::Serialize;

use super::volumes::{Volumes, split_parameters};
use super::{Degrees, Workload, Zero};

/// GB on each GPU, by what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    pub weights_gb: f64,
    pub gradients_gb: f64,
    /// Adam's state and the weights in fp32.
    pub optimizer_gb: f64,
    pub activations_gb: f64,
    pub kv_cache_gb: f64,
}

impl Memory {
    pub fn total_gb(self) -> f64 {
        self.weights_gb + self.gradients_gb + self.optimizer_gb + self.activations_gb + self.kv_cache_gb
    }

    /// Without the optimizer's state, if that is in host memory.
    pub fn without_optimizer_gb(self) -> f64 {
        self.total_gb() - self.optimizer_gb
    }
}

/// Bytes per parameter of weights, gradients and Adam in mixed precision.
const STATE_BYTES: f64 = 16.0;

pub(super) fn memory(volumes: &Volumes<'_>) -> Memory {
    let (inputs, degrees, of) = (volumes.inputs, volumes.degrees, f64::from);
    let Degrees { data, tensor, pipeline, sequence, expert } = degrees;
    let (dense, experts) = split_parameters(inputs);
    let parameters = (dense + experts / of(expert)) / of(tensor) / of(pipeline);
    let shares = |from: Zero| if volumes.zero >= from { of(data * sequence) } else { 1.0 };
    let value = inputs.bytes_per_value;
    let (gradients, optimizer) =
        if inputs.is_training() { (value, (STATE_BYTES - 2.0 * value).max(0.0)) } else { (0.0, 0.0) };
    // FSDP gathers the layer that runs and the next one.
    let gathered = if volumes.zero == Zero::Three {
        2.0 * (dense + experts / of(expert)) / of(inputs.layers) / of(tensor)
    } else {
        0.0
    };
    Memory {
        weights_gb: value * (parameters / shares(Zero::Three) + gathered) / 1e9,
        gradients_gb: gradients * parameters / shares(Zero::Two) / 1e9,
        optimizer_gb: optimizer * parameters / shares(Zero::One) / 1e9,
        activations_gb: activations(volumes) / 1e9,
        kv_cache_gb: kv_cache(volumes) / 1e9,
    }
}

/// Bytes that the backward pass needs, or that one layer of a forward pass holds.
fn activations(volumes: &Volumes<'_>) -> f64 {
    let (inputs, of) = (volumes.inputs, f64::from);
    let Degrees { tensor, pipeline, sequence, .. } = volumes.degrees;
    let input = volumes.activations / volumes.microbatches / of(sequence);
    // A layer keeps 17 values per value of its input; tensor parallelism divides 12 of them. Attention keeps no matrix.
    let layer = input * (5.0 + 12.0 / of(tensor));
    let in_flight = of(pipeline).min(volumes.microbatches);
    // Logits and their gradient in fp32, on the last stage.
    let tokens = input / of(inputs.hidden) / inputs.bytes_per_value;
    let logits = if inputs.is_training() { 8.0 * tokens * of(inputs.vocabulary) / of(tensor) } else { 0.0 };
    match (inputs.is_training(), volumes.recompute) {
        (true, true) => volumes.stage_layers * input * in_flight + layer + logits,
        (true, false) => volumes.stage_layers * layer * in_flight + logits,
        (false, _) => layer,
    }
}

/// Keys and values of every token of a replica's sequences.
fn kv_cache(volumes: &Volumes<'_>) -> f64 {
    let (inputs, of) = (volumes.inputs, f64::from);
    if !matches!(inputs.workload, Workload::Prefill | Workload::Decode) {
        return 0.0;
    }
    let Degrees { data, tensor, sequence, .. } = volumes.degrees;
    let tokens = of(inputs.batch) / of(data) * of(inputs.sequence);
    let width = of(inputs.hidden) * of(inputs.kv_heads) / of(inputs.heads);
    // Each rank has at least one head of keys and values.
    let parts = of((tensor * sequence).min(inputs.kv_heads));
    2.0 * volumes.stage_layers * tokens * width * inputs.bytes_per_value / parts
}
