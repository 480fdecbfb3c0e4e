//! What may be set about a diagnosis.

use regex::Regex;

use crate::cpu_copies::CpuCopyThresholds;

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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            histogram_edges: vec![5.0, 20.0, 50.0, 80.0],
            cpu_copies: CpuCopyThresholds::default(),
            steps: None,
            warmup: None,
        }
    }
}
