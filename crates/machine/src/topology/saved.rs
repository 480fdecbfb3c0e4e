//! Where do the GPUs of a machine hang that somebody has looked at before? What `busbound topo` or NCCL wrote, told by its
//! content.

use serde::Deserialize;

use super::{GpuPlace, NcclError, TOPOLOGY_SCHEMA, from_nccl};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    #[error(transparent)]
    Nccl(#[from] NcclError),
    #[error("is not what `busbound topo --format json` writes: {0}")]
    Json(#[from] serde_json::Error),
    #[error("is JSON of something else: its schema is not {TOPOLOGY_SCHEMA}")]
    OtherSchema,
    #[error(
        "is neither JSON nor XML: give what `busbound topo --format json` or NCCL_TOPO_DUMP_FILE writes \
         (nvidia-smi's table has no links)"
    )]
    Neither,
}

#[derive(Deserialize)]
struct Saved {
    schema: String,
    gpus: Vec<GpuPlace>,
}

/// The GPUs of a saved topology, each with its way to the host.
///
/// # Errors
/// If the text is neither of the two.
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
