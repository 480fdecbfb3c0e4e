//! How full was the memory? Allocator samples, recorded with `profile_memory=True`.

use serde::Serialize;

use crate::model::time::Timestamp;

/// One allocation or release, with the allocator's totals after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySample {
    pub at: Timestamp,
    pub owner: MemoryOwner,
    /// Negative for a release.
    pub change: i64,
    /// Zero in traces from before PyTorch 1.10, which did not write the totals.
    pub allocated: u64,
    pub reserved: u64,
}

/// Whose memory a sample is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryOwner {
    Host,
    Device(i32),
}
