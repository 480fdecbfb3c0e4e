//! What did a collective exchange? Newer PyTorch versions record it on operators and NCCL kernels, and NCCL on its NVTX ranges.

use crate::model::names::NameId;

/// The message of one collective, as recorded in the trace. Texts that are not recorded are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collective {
    /// `allreduce`, `_allgather_base` and so on.
    pub name: NameId,
    pub dtype: NameId,
    /// Bytes per element of that type.
    pub element_bytes: Option<u32>,
    /// The process group's name.
    pub group: NameId,
    /// What the process group is for, e.g. `default_pg`.
    pub group_description: NameId,
    /// The ranks of the process group as written: `[0, 1]`, shortened if there are many.
    pub group_ranks: NameId,
    pub group_size: Option<u32>,
    /// Its number within the process group, the same on all ranks.
    pub sequence: Option<u64>,
    pub elements_in: Option<u64>,
    pub elements_out: Option<u64>,
    /// `sum`, `avg` and so on. Only NCCL's own ranges, in Nsight's exports, record this and the next two.
    pub reduction: NameId,
    /// The rank that has the data, or gets it.
    pub root: Option<u32>,
    /// The other rank of a single send or receive.
    pub peer: Option<u32>,
}

impl Collective {
    pub(crate) fn with_names(self, name: impl Fn(NameId) -> NameId) -> Self {
        Self {
            name: name(self.name),
            dtype: name(self.dtype),
            group: name(self.group),
            group_description: name(self.group_description),
            group_ranks: name(self.group_ranks),
            reduction: name(self.reduction),
            ..self
        }
    }

    /// Bytes that this rank passes in.
    pub fn bytes_in(&self) -> Option<u64> {
        self.elements_in?.checked_mul(u64::from(self.element_bytes?))
    }

    /// Bytes that this rank gets back.
    pub fn bytes_out(&self) -> Option<u64> {
        self.elements_out?.checked_mul(u64::from(self.element_bytes?))
    }
}
