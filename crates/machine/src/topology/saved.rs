//! How are the GPUs connected in a saved topology? Reads the output of `busbound topo` or NCCL, detected by content.

use serde::Deserialize;

use super::{
    Connection, Found, GpuPlace, Iommu, NcclError, Pair, PciDevice, SYSFS, TOPOLOGY_SCHEMA, Topology,
    from_nccl,
};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    #[error(transparent)]
    Nccl(#[from] NcclError),
    #[error("is damaged, or not the output of `busbound topo --format json`: write it again ({0})")]
    Json(#[from] serde_json::Error),
    #[error("is JSON, but its schema is not {TOPOLOGY_SCHEMA}")]
    OtherSchema,
    #[error(
        "is neither JSON nor XML: pass the output of `busbound topo --format json` or NCCL_TOPO_DUMP_FILE \
         (the nvidia-smi table does not list links)"
    )]
    Neither,
}

#[derive(Deserialize)]
struct Labeled {
    schema: String,
}

/// What a saved topology says about the machine; the rest follows from it.
#[derive(Deserialize)]
struct Saved {
    source: String,
    devices: Vec<PciDevice>,
    gpus: Vec<GpuPlace>,
    pairs: Vec<Pair>,
    numa_nodes: Option<u32>,
    iommu: Iommu,
    virtual_machine: Option<String>,
    is_virtual: bool,
    pinned_limit: Option<u64>,
    memory_limit: Option<u64>,
    driver: bool,
    #[serde(default)]
    processor: Option<String>,
}

impl Saved {
    fn found(self) -> Found {
        let device = |gpu: &GpuPlace| self.devices.iter().position(|device| device.address == gpu.address);
        let bonded = |pair: &Pair| match pair.connection {
            Connection::NvLink(links) => Some((pair.a.clone(), pair.b.clone(), links)),
            _ => None,
        };
        Found {
            links_at_both_ends: self.source == SYSFS,
            ranks: self.gpus.iter().filter_map(|gpu| Some((device(gpu)?, gpu.rank?))).collect(),
            facts: self.gpus.iter().filter_map(|gpu| Some((device(gpu)?, gpu.facts))).collect(),
            nvlinks: self.pairs.iter().filter_map(bonded).collect(),
            source: self.source,
            devices: self.devices,
            printed_pairs: self.pairs,
            numa_nodes: self.numa_nodes,
            iommu: Some(self.iommu),
            virtual_machine: self.virtual_machine,
            is_virtual: self.is_virtual,
            pinned_limit: self.pinned_limit,
            memory_limit: self.memory_limit,
            driver: self.driver,
            processor: self.processor,
        }
    }
}

/// A saved topology, as it was written.
///
/// # Errors
/// If the text is neither format.
pub fn saved_topology(text: &str) -> Result<Topology, SavedError> {
    match text.trim_start().chars().next() {
        Some('<') => Ok(from_nccl(text)?.topology()),
        Some('{') => {
            let labeled: Labeled = serde_json::from_str(text)?;
            if labeled.schema != TOPOLOGY_SCHEMA {
                return Err(SavedError::OtherSchema);
            }
            Ok(serde_json::from_str::<Saved>(text)?.found().topology())
        }
        _ => Err(SavedError::Neither),
    }
}

/// The GPUs of a saved topology, each with its path to the host.
///
/// # Errors
/// If the text is neither format.
pub fn gpu_places(text: &str) -> Result<Vec<GpuPlace>, SavedError> {
    saved_topology(text).map(|topology| topology.gpus)
}
