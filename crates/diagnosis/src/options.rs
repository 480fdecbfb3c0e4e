//! What may be set about a diagnosis.

use busbound_trace::MeasuredKernel;
use regex_lite::Regex;

use crate::per_step::PerStep;

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Edges of the bandwidth histogram in GB/s, between 0 and no end.
    pub histogram_edges: Vec<f64>,
    pub cpu_copies: CpuCopyThresholds,
    /// Annotations that mark steps; without it those that look like steps do, or what repeats.
    pub steps: Option<Regex>,
    /// Steps at the beginning to leave out of everything; without it those that are clearly longer.
    pub warmup: Option<usize>,
    /// Annotations that time is laid to.
    pub blocks: BlockChoice,
    /// The stages of a pipeline, two or more; without them those that the program calls `stage0`, `stage1`
    /// and so on.
    pub stages: Vec<StageChoice>,
    /// What Nsight Compute measured of this program's kernels.
    pub measured_kernels: Option<Vec<MeasuredKernel>>,
    /// What one step processes, for figures per second.
    pub per_step: Vec<PerStep>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            histogram_edges: vec![5.0, 20.0, 50.0, 80.0],
            cpu_copies: CpuCopyThresholds::default(),
            steps: None,
            warmup: None,
            blocks: BlockChoice::Depth(UNASKED_DEPTH),
            stages: Vec::new(),
            measured_kernels: None,
            per_step: Vec::new(),
        }
    }
}

/// Which annotations are blocks.
#[derive(Debug, Clone)]
pub enum BlockChoice {
    /// Those whose name matches.
    Matching(Regex),
    /// All, down to this many levels below the step.
    Depth(usize),
}

/// Levels shown where nobody asks for any.
pub(crate) const UNASKED_DEPTH: usize = 2;

/// One stage: what it is called, and which annotations are its items.
#[derive(Debug, Clone)]
pub struct StageChoice {
    pub name: String,
    pub matching: Regex,
}

/// How copy operators without GPU events are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuCopyThresholds {
    /// Above this a copy cannot have crossed the bus: it stayed within the GPU (or did nothing).
    pub internal_gbps: f64,
    /// Below this multiple of the link's peak it can have.
    pub bus_share_of_peak: f64,
    /// Shorter operators are mostly overhead and tell no rate.
    pub shortest_ms: f64,
}

impl Default for CpuCopyThresholds {
    fn default() -> Self {
        Self { internal_gbps: 200.0, bus_share_of_peak: 1.2, shortest_ms: 0.5 }
    }
}
