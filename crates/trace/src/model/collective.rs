//! What did a collective exchange? Newer PyTorch versions record it on operators and NCCL kernels.

use crate::model::names::NameId;

/// The message of one collective, as recorded in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// `allreduce`, `_allgather_base` and so on.
    pub name: NameId,
    pub dtype: NameId,
    /// The process group's name.
    pub group: NameId,
    pub group_size: Option<u32>,
    pub elements_in: Option<u64>,
    pub elements_out: Option<u64>,
}
