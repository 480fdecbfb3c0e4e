//! Who waited for what? The targets that `cuda_sync` events name.

use crate::model::names::NameId;

/// What a synchronisation waited for. Recorded only when the profiler was asked for sync events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synchronisation {
    /// `Event Sync`, `Stream Wait Event`, `Stream Sync` or `Context Sync`, as the trace writes it.
    pub what: NameId,
    /// The stream whose work was waited for.
    pub waits_on_stream: Option<i64>,
    /// The correlation of the `cudaEventRecord` that was waited for.
    pub waits_on_record: Option<u64>,
    /// The CUDA event that was waited for.
    pub waits_on_event: Option<u64>,
}
