//! What did a collective exchange? Recorded by newer PyTorch on operators and NCCL kernels.

use crate::model::names::NameId;

/// The message of one collective, as the trace gives it.
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
