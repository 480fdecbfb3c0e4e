//! What does recording cost? A profiled step is longer than the same step without the profiler, by what the host spends
//! on each thing it records.

use serde::{Deserialize, Serialize};

/// A profiler whose cost can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ProfilerTool {
    TorchProfiler,
    Nsight,
    BusboundRecord,
}

/// Host time that recording adds, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfilerCost {
    pub tool: ProfilerTool,
    /// Per recorded CPU operator.
    pub operator_us: f64,
    /// Per recorded call of the CUDA runtime or driver.
    pub call_us: f64,
    /// Per recorded kernel, copy or memset, in addition to its call.
    pub work_us: f64,
    /// Per operator, in addition, with `record_shapes`.
    pub shapes_us: f64,
    /// Per Python frame, with `with_stack`.
    pub frame_us: f64,
    /// Per step, for what the profiler does between steps.
    #[serde(default)]
    pub step_us: f64,
    /// Per kernel of a CUDA graph, on the device.
    #[serde(default)]
    pub node_us: f64,
    /// Per copy that follows another one on its stream, on the device: without timestamps, the next one is set up in the meantime.
    #[serde(default = "ProfilerCost::usual_copy_us")]
    pub copy_us: f64,
    /// Machine, date, command.
    pub measured: String,
}

impl ProfilerCost {
    /// What torch.profiler costs on a host that was not measured.
    pub fn usual_of_torch() -> Self {
        Self {
            tool: ProfilerTool::TorchProfiler,
            operator_us: 3.0,
            call_us: 1.25,
            work_us: 4.4,
            shapes_us: 1.0,
            frame_us: 0.5,
            step_us: 129.0,
            node_us: 0.18,
            copy_us: Self::usual_copy_us(),
            measured: "fitted to the runs marked learn in fixtures/frameworks: NVIDIA H200, Xeon host, PyTorch 2.11, \
                       2026-11-16; cargo run --release -p busbound-report --example fit_profiler"
                .to_owned(),
        }
    }

    /// What CUPTI costs per copy on the device. Measured on an H200 (`kv_swap-…-loop_pinned` and `small_copies-…-loop_pinned` in
    /// fixtures/frameworks, 48 to 512 copies of 64 KiB to 4 MiB in a row): recorded steps are longer by 1.7 to 2.9 µs per copy.
    pub fn usual_copy_us() -> f64 {
        2.0
    }

    /// Whether every cost can be a time.
    pub(crate) fn is_possible(&self) -> bool {
        let all = [self.operator_us, self.call_us, self.work_us, self.shapes_us, self.frame_us];
        all.iter().chain([&self.step_us, &self.node_us, &self.copy_us]).all(|us| us.is_finite() && *us >= 0.0)
    }
}
