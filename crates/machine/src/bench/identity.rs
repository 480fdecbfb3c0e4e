//! Which machine was measured?

use serde::{Deserialize, Serialize};

/// The measured machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// As the driver reports it.
    pub gpu: String,
    pub pci_address: String,
    /// Number of GPUs in the machine.
    pub gpus: u32,
    pub driver: String,
    /// The newest CUDA version that the driver supports, such as 12.8.
    pub cuda: String,
    pub memory_bytes: u64,
    pub multiprocessors: u32,
    pub power_limit_watts: Option<f64>,
    /// The GPU's own link, read while copies ran.
    pub link: Option<LinkSeen>,
    pub host_cpu: String,
    /// Bytes that the process may use: the machine's, or what its container allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory_bytes: Option<u64>,
    pub kernel: String,
    pub numa_node: Option<u32>,
    /// The CPUs that the measuring thread was bound to, as sysfs lists them.
    pub pinned_to_cpus: Option<String>,
    /// Whether the system reports that it is a virtual machine.
    pub virtual_machine: Option<bool>,
}

/// A link as trained, and the maximum of both of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSeen {
    pub generation: u32,
    pub lanes: u32,
    pub max_generation: u32,
    pub max_lanes: u32,
}
