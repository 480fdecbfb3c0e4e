//! How are the GPUs connected in a saved topology? Reads the output of `busbound topo` or NCCL, detected by content.

use serde::Deserialize;

use super::{GpuPlace, NcclError, TOPOLOGY_SCHEMA, from_nccl};

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
struct Saved {
    schema: String,
    gpus: Vec<GpuPlace>,
}

/// The GPUs of a saved topology, each with its path to the host.
///
/// # Errors
/// If the text is neither format.
pub fn gpu_places(text: &str) -> Result<Vec<GpuPlace>, SavedError> {
    match text.trim_start().chars().next() {
        Some('<') => Ok(from_nccl(text)?.topology().gpus),
        Some('{') => {
            let saved: Saved = serde_json::from_str(text)?;
            if saved.schema == TOPOLOGY_SCHEMA { Ok(saved.gpus) } else { Err(SavedError::OtherSchema) }
        }
        _ => Err(SavedError::Neither),
    }
}
