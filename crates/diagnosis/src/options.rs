//! What may be set about a diagnosis.

use crate::cpu_copies::CpuCopyThresholds;

#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Edges of the bandwidth histogram in GB/s, between 0 and no end.
    pub histogram_edges: Vec<f64>,
    pub cpu_copies: CpuCopyThresholds,
}

impl Default for Options {
    fn default() -> Self {
        Self { histogram_edges: vec![5.0, 20.0, 50.0, 80.0], cpu_copies: CpuCopyThresholds::default() }
    }
}
