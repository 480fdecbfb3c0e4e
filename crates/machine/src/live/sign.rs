//! What is a warning sign? A statement with its evidence and the next step.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SignKind {
    IdleWithFullMemory,
    StepsOutgrowBatch,
    BusNearPeak,
    NearWatchdog,
    CollectiveTrouble,
    GpuLost,
}

impl SignKind {
    /// The name in JSON and metrics.
    pub fn id(self) -> &'static str {
        match self {
            Self::IdleWithFullMemory => "idle_with_full_memory",
            Self::StepsOutgrowBatch => "steps_outgrow_batch",
            Self::BusNearPeak => "bus_near_peak",
            Self::NearWatchdog => "near_watchdog",
            Self::CollectiveTrouble => "collective_trouble",
            Self::GpuLost => "gpu_lost",
        }
    }
}

/// Something to investigate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sign {
    pub id: SignKind,
    /// The GPU that it is about, if any.
    pub gpu: Option<u32>,
    /// The file that reported it, if any.
    pub file: Option<String>,
    pub statement: String,
    pub evidence: String,
    pub next: String,
}
