//! The planner of busbound.offload.

use busbound::machine::LinkFacts;
use busbound::whatif::plan::stream::{Block, Component, Stream, StreamInputs, Together, Training, Updates};
use pyo3::prelude::*;

use crate::arguments::machine_of;
use crate::failure::failed;

/// Chooses the blocks that stay on the GPU and predicts a pass; with `resident`, only predicts. Returns JSON.
#[pyfunction]
#[pyo3(signature = (
    bytes, compute_ms, outside_ms, host_ms, gpu_bytes, outside_bytes, activation_bytes,
    measured_gbps = None, machine = None, slots = None, resident = None, training = None
))]
#[expect(clippy::too_many_arguments, reason = "the caller is Python code of this package")]
pub(crate) fn plan_stream(
    bytes: Vec<u64>,
    compute_ms: Vec<f64>,
    outside_ms: f64,
    host_ms: f64,
    gpu_bytes: u64,
    outside_bytes: u64,
    activation_bytes: u64,
    measured_gbps: Option<f64>,
    machine: Option<String>,
    slots: Option<u32>,
    resident: Option<Vec<bool>>,
    training: Option<PyTraining>,
) -> PyResult<String> {
    let alone = PyComponent {
        bytes,
        compute_ms,
        outside_ms,
        host_ms,
        outside_bytes,
        activation_bytes,
        gbps: measured_gbps,
        slots,
        uses: 1.0,
    };
    let inputs = alone.component(&machine_of(machine)?.link_of(None)).inputs;
    let inputs = StreamInputs { gpu_bytes, training: training.map(PyTraining::training), ..inputs };
    let plan = match resident {
        None => Stream::plan(&inputs),
        Some(resident) => Stream::predict(&inputs, resident, slots.unwrap_or(2)),
    };
    serde_json::to_string(&plan.map_err(failed)?).map_err(failed)
}

/// What was measured of a training step after its forward pass, in milliseconds.
#[derive(FromPyObject)]
pub(crate) struct PyTraining {
    backward: Vec<f64>,
    between: f64,
    most_host: f64,
    /// Empty if the CPU updates nothing.
    gradients: Vec<f64>,
    updates: Vec<f64>,
    /// Empty if gradients are not clipped.
    norms: Vec<f64>,
}

impl PyTraining {
    fn training(self) -> Training {
        let norm_ms = (!self.norms.is_empty()).then_some(self.norms);
        let updates = Updates { gradients_ms: self.gradients, update_ms: self.updates, norm_ms };
        let updates = (!updates.update_ms.is_empty()).then_some(updates);
        let (between_ms, most_host_ms) = (self.between, self.most_host);
        Training { backward_ms: self.backward, between_ms, most_host_ms, updates }
    }
}

/// One model of several: what was measured of it, and how often it runs.
#[derive(FromPyObject)]
pub(crate) struct PyComponent {
    bytes: Vec<u64>,
    compute_ms: Vec<f64>,
    outside_ms: f64,
    host_ms: f64,
    outside_bytes: u64,
    activation_bytes: u64,
    gbps: Option<f64>,
    slots: Option<u32>,
    uses: f64,
}

impl PyComponent {
    fn component(self, link: &LinkFacts) -> Component {
        let blocks = self.bytes.into_iter().zip(self.compute_ms);
        Component {
            uses: self.uses,
            inputs: StreamInputs {
                blocks: blocks.map(|(bytes, compute_ms)| Block { bytes, compute_ms }).collect(),
                outside_ms: self.outside_ms,
                host_ms: self.host_ms,
                link: link.clone(),
                measured_gbps: self.gbps,
                gpu_bytes: 0,
                outside_bytes: self.outside_bytes,
                activation_bytes: self.activation_bytes,
                slots: self.slots,
                training: None,
            },
        }
    }
}

/// Shares the GPU's memory out among models that run one after another. Returns JSON.
#[pyfunction]
#[pyo3(signature = (components, gpu_bytes, machine = None))]
pub(crate) fn plan_together(
    components: Vec<PyComponent>,
    gpu_bytes: u64,
    machine: Option<String>,
) -> PyResult<String> {
    let link = machine_of(machine)?.link_of(None);
    let components: Vec<Component> = components.into_iter().map(|one| one.component(&link)).collect();
    let plan = Together::plan(&components, gpu_bytes);
    serde_json::to_string(&plan.map_err(failed)?).map_err(failed)
}
