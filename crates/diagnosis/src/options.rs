//! What may be set about a diagnosis.

use busbound_trace::MeasuredKernel;
use regex_lite::Regex;

use crate::analysis::attribution::{BlockChoice, UNASKED_DEPTH};
use crate::analysis::cpu_copies::CpuCopyThresholds;
use crate::analysis::stages::StageChoice;

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
        }
    }
}
