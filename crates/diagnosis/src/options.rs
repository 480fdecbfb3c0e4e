//! Which options does a diagnosis take?

use busbound_machine::Machine;
use busbound_machine::compile_log::CompileLog;
use busbound_machine::flight_recorder::FlightRecorder;
use busbound_machine::nccl_log::NcclLog;
use busbound_trace::{MeasuredKernel, Trace};
use regex_lite::Regex;

use crate::per_step::PerStep;

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Edges of the bandwidth histogram in GB/s. The first bin starts at 0 and the last is open.
    pub histogram_edges: Vec<f64>,
    pub cpu_copies: CpuCopyThresholds,
    /// Annotations that mark steps. Without it, annotations that look like steps, or else a detected iteration.
    pub steps: Option<Regex>,
    /// Number of warm-up steps to drop. Without it, the first steps are dropped if they are clearly longer.
    pub warmup: Option<usize>,
    /// Annotations that time is attributed to.
    pub blocks: BlockChoice,
    /// The stages of a pipeline, two or more. Without them, annotations named `stage0`, `stage1` and so on.
    pub stages: Vec<StageChoice>,
    /// Nsight Compute measurements of this program's kernels.
    pub measured_kernels: Option<Vec<MeasuredKernel>>,
    /// What NCCL printed about this run's connections.
    pub nccl_log: Option<NcclLog>,
    /// What PyTorch's flight recorder wrote about the collectives of this run.
    pub flight_recorder: Option<FlightRecorder>,
    /// What torch.compile printed about this run's graph breaks and recompilations.
    pub compile_log: Option<CompileLog>,
    /// What one step processes, for figures per second.
    pub per_step: Vec<PerStep>,
    /// Milliseconds of a step without the profiler, if the user timed it.
    pub wall_ms: Option<f64>,
    /// Bytes of host memory that the run may use, if the user says so; else what the trace or the measured machine says.
    pub host_memory: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            histogram_edges: vec![5.0, 20.0, 50.0, 80.0],
            cpu_copies: CpuCopyThresholds::default(),
            steps: None,
            warmup: None,
            blocks: BlockChoice::Depth(DEFAULT_DEPTH),
            stages: Vec::new(),
            measured_kernels: None,
            nccl_log: None,
            flight_recorder: None,
            compile_log: None,
            per_step: Vec::new(),
            wall_ms: None,
            host_memory: None,
        }
    }
}

impl Options {
    /// Bytes of host memory that the run may use: given, recorded, or of the measured machine.
    pub(crate) fn host_memory_of(&self, trace: &Trace, machine: &Machine) -> Option<u64> {
        let recorded = || trace.origin().environment().memory;
        self.host_memory.or_else(recorded).or_else(|| machine.host_memory())
    }
}

/// Which annotations are blocks.
#[derive(Debug, Clone)]
pub enum BlockChoice {
    /// Annotations whose name matches.
    Matching(Regex),
    /// All annotations down to this many levels below the step.
    Depth(usize),
}

/// Levels shown by default.
pub(crate) const DEFAULT_DEPTH: usize = 2;

/// One stage: its name, and which annotations are its items.
#[derive(Debug, Clone)]
pub struct StageChoice {
    pub name: String,
    pub matching: Regex,
}

/// How copy operators are classified if the trace has no GPU events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuCopyThresholds {
    /// A faster copy cannot have crossed the bus: it stayed on the GPU, or did nothing.
    pub internal_gbps: f64,
    /// Below this multiple of the link's peak rate, a copy can have crossed the bus.
    pub bus_share_of_peak: f64,
    /// Shorter operators are mostly overhead, so their rate means nothing.
    pub shortest_ms: f64,
}

impl Default for CpuCopyThresholds {
    fn default() -> Self {
        Self { internal_gbps: 200.0, bus_share_of_peak: 1.2, shortest_ms: 0.5 }
    }
}
