//! The planner of busbound.offload.

use busbound::whatif::plan::stream::{Block, Stream, StreamInputs};
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
    let blocks = bytes.into_iter().zip(compute_ms).map(|(bytes, compute_ms)| Block { bytes, compute_ms });
    let inputs = StreamInputs {
        blocks: blocks.collect(),
        outside_ms,
        host_ms,
        link: machine_of(machine)?.link_of(None),
        measured_gbps,
        gpu_bytes,
        outside_bytes,
        activation_bytes,
        slots,
    };
    let plan = match resident {
        None => Stream::plan(&inputs),
        Some(resident) => Stream::predict(&inputs, resident, slots.unwrap_or(2)),
    };
    serde_json::to_string(&plan.map_err(failed)?).map_err(failed)
}
