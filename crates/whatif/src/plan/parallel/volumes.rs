//! What do a layout's memory and its exchanges follow from?

use super::{Degrees, ParallelInputs, Workload, Zero};

/// Parameters that every rank of a replica shares, and those of the experts; a dense model's MLP is shared.
pub(super) fn split_parameters(inputs: &ParallelInputs) -> (f64, f64) {
    let hidden = f64::from(inputs.hidden);
    let square = f64::from(inputs.layers) * hidden * hidden;
    let vocabulary = if inputs.workload == Workload::Diffusion { 0.0 } else { f64::from(inputs.vocabulary) };
    let embedding = vocabulary * hidden;
    match inputs.experts {
        1 => (12.0 * square + embedding, 0.0),
        experts => (4.0 * square + embedding, 8.0 * f64::from(experts) * square),
    }
}

/// What one arrangement computes and moves per step.
pub(super) struct Volumes<'a> {
    pub(super) inputs: &'a ParallelInputs,
    pub(super) degrees: Degrees,
    pub(super) zero: Zero,
    pub(super) recompute: bool,
    /// With recomputation.
    pub(super) compute_ms: f64,
    /// The model's own arithmetic.
    pub(super) model_ms: f64,
    pub(super) microbatches: f64,
    /// Bytes of one layer's activations in one replica.
    pub(super) activations: f64,
    /// Layers per pipeline stage.
    pub(super) stage_layers: f64,
}
