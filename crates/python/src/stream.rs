//! The planner of busbound.offload.

use busbound::machine::LinkFacts;
use busbound::whatif::plan::stream::{Block, Component, Stream, StreamInputs, Together};
use pyo3::prelude::*;

use crate::arguments::machine_of;
use crate::failure::failed;

/// Chooses the blocks that stay on the GPU and predicts a pass; with `resident`, only predicts. Returns JSON.
#[pyfunction]
#[pyo3(signature = (
    bytes, compute_ms, outside_ms, host_ms, gpu_bytes, outside_bytes, activation_bytes,
    measured_gbps = None, machine = None, slots = None, resident = None
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
    let inputs = StreamInputs { gpu_bytes, ..alone.component(&machine_of(machine)?.link_of(None)).inputs };
    let plan = match resident {
        None => Stream::plan(&inputs),
        Some(resident) => Stream::predict(&inputs, resident, slots.unwrap_or(2)),
    };
    serde_json::to_string(&plan.map_err(failed)?).map_err(failed)
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
