//! Is this kernel communication, and of which kind? Recognized by name, from one table each.

use busbound_trace::{Collective, NameId, Names};
use serde::{Deserialize, Serialize};

/// Substrings of communication kernel names, in lower case, and the library they belong to.
///
/// A family is listed only if its kernels are known to move data between GPUs.
const FAMILIES: &[(&str, &str)] = &[
    ("nccl", "NCCL"),
    ("rccl", "RCCL"),
    ("deep_ep", "DeepEP"),
    ("dpsk_ep", "DeepEP"),
    ("dpsk::ep::", "DeepEP"),
    ("nvshmem", "NVSHMEM"),
    ("rocshmem", "rocSHMEM"),
    ("mscclpp", "MSCCL++"),
    ("msccl", "MSCCL"),
    ("oneccl", "oneCCL"),
    // Custom all-reduces in vLLM, SGLang and TensorRT-LLM.
    ("cross_device_reduce", "custom all-reduce"),
    ("allreduce_fusion_kernel", "custom all-reduce"),
    ("one_shot_all_reduce", "symmetric memory"),
    ("two_shot_all_reduce", "symmetric memory"),
    ("multimem_all_reduce", "symmetric memory"),
];

/// The family of a kernel name.
pub fn family(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    FAMILIES.iter().find(|(needle, _)| name.contains(needle)).map(|&(_, family)| family)
}

/// What a collective does with the data of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CollectiveOp {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    SendRecv,
    Barrier,
    /// Communication whose name does not say what it does.
    Other,
}

/// Parts of names in lower case without underscores, and what they mean. The first match counts.
const OPERATIONS: &[(&str, CollectiveOp)] = &[
    ("allreduce", CollectiveOp::AllReduce),
    ("crossdevicereduce", CollectiveOp::AllReduce),
    ("reducescatter", CollectiveOp::ReduceScatter),
    ("allgather", CollectiveOp::AllGather),
    ("alltoall", CollectiveOp::AllToAll),
    ("broadcast", CollectiveOp::Broadcast),
    ("barrier", CollectiveOp::Barrier),
    ("sendrecv", CollectiveOp::SendRecv),
    ("send", CollectiveOp::SendRecv),
    ("recv", CollectiveOp::SendRecv),
    ("gather", CollectiveOp::Gather),
    ("scatter", CollectiveOp::Scatter),
    ("reduce", CollectiveOp::Reduce),
];

impl CollectiveOp {
    pub const ALL: [Self; 11] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllToAll,
        Self::Broadcast,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::SendRecv,
        Self::Barrier,
        Self::Other,
    ];

    /// By the name that PyTorch recorded (`_allgather_base`), or by that of a kernel or an NCCL call.
    pub fn named(name: &str) -> Self {
        let plain: String = name.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
        OPERATIONS.iter().find(|(part, _)| plain.contains(part)).map_or(Self::Other, |&(_, op)| op)
    }

    /// The name that nccl-tests and PyTorch users know.
    pub fn label(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::SendRecv => "send/recv",
            Self::Barrier => "barrier",
            Self::Other => "communication",
        }
    }

    /// Bus bandwidth over algorithm bandwidth for this many ranks, as nccl-tests defines it; `None` if it defines none.
    pub fn bus_factor(self, ranks: u32) -> Option<f64> {
        let n = f64::from(ranks);
        match self {
            _ if ranks == 0 => None,
            Self::AllReduce => Some(2.0 * (n - 1.0) / n),
            Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::Gather | Self::Scatter => {
                Some((n - 1.0) / n)
            }
            Self::Broadcast | Self::Reduce | Self::SendRecv => Some(1.0),
            Self::Barrier | Self::Other => None,
        }
    }

    /// The size that nccl-tests divides by the time: the buffer that is largest on any rank.
    pub fn message_bytes(self, message: &Collective) -> Option<u64> {
        let (bytes_in, bytes_out) = (message.bytes_in(), message.bytes_out());
        let of_all = |bytes: Option<u64>| bytes?.checked_mul(u64::from(message.group_size?));
        match self {
            Self::AllReduce | Self::ReduceScatter | Self::AllToAll | Self::Broadcast | Self::Reduce => {
                bytes_in
            }
            Self::AllGather => bytes_out,
            // Only the root has the large buffer.
            Self::Gather => of_all(bytes_in),
            Self::Scatter => of_all(bytes_out),
            Self::SendRecv => bytes_in.max(bytes_out),
            Self::Barrier | Self::Other => None,
        }
    }

    /// Whether no rank can finish before the last one has started.
    pub fn synchronizes(self) -> bool {
        matches!(
            self,
            Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::Barrier
        )
    }
}

/// The result for every name of a trace, computed once per name.
#[derive(Debug, Clone)]
pub struct CollectiveNames {
    is_communication: Vec<bool>,
}

impl CollectiveNames {
    pub fn of(names: &Names) -> Self {
        Self { is_communication: names.iter().map(|name| family(name).is_some()).collect() }
    }

    pub fn contains(&self, name: NameId) -> bool {
        self.is_communication[name.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_recognized_in_real_names() {
        for (name, expected) in [
            ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", Some("NCCL")),
            ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", Some("NCCL")),
            ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", Some("DeepEP")),
            ("void dpsk::ep::combine<4, 7168>(void*, float*)", Some("DeepEP")),
            ("nvshmemi_transfer_rma_nbi_warp", Some("NVSHMEM")),
            ("mscclKernel_Sum_half_Simple_true", Some("MSCCL")),
            (
                "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*)",
                Some("custom all-reduce"),
            ),
            ("void at::native::reduce_kernel<512, 1>(float)", None),
        ] {
            assert_eq!(family(name), expected, "{name}");
        }
    }

    #[test]
    fn operations_are_recognized_in_recorded_names_and_kernels() {
        for (name, expected) in [
            ("allreduce", CollectiveOp::AllReduce),
            ("allreduce_coalesced", CollectiveOp::AllReduce),
            ("_allgather_base", CollectiveOp::AllGather),
            ("all_gather_single", CollectiveOp::AllGather),
            ("_reduce_scatter_base", CollectiveOp::ReduceScatter),
            ("all_to_allv", CollectiveOp::AllToAll),
            ("broadcast", CollectiveOp::Broadcast),
            ("reduce", CollectiveOp::Reduce),
            ("send", CollectiveOp::SendRecv),
            ("barrier", CollectiveOp::Barrier),
            (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
                CollectiveOp::AllReduce,
            ),
            ("ncclKernel_ReduceScatter_RING_LL_Sum_float", CollectiveOp::ReduceScatter),
            ("ncclDevKernel_SendRecv", CollectiveOp::SendRecv),
            ("ncclDevKernel_Generic_4", CollectiveOp::Other),
            ("void sglang::cross_device_reduce_1stage<bf16, 8>", CollectiveOp::AllReduce),
        ] {
            assert_eq!(CollectiveOp::named(name), expected, "{name}");
        }
        assert!(CollectiveOp::ALL.iter().enumerate().all(|(i, &op)| op as usize == i));
    }

    /// The table of nccl-tests' PERFORMANCE.md, for eight ranks.
    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        let factor = |op: CollectiveOp| op.bus_factor(8);
        assert_eq!(factor(CollectiveOp::AllReduce), Some(1.75));
        for op in [CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::AllToAll] {
            assert_eq!(factor(op), Some(0.875));
        }
        for op in [CollectiveOp::Broadcast, CollectiveOp::Reduce, CollectiveOp::SendRecv] {
            assert_eq!(factor(op), Some(1.0));
        }
        assert_eq!((factor(CollectiveOp::Barrier), CollectiveOp::AllReduce.bus_factor(0)), (None, None));
    }

    #[test]
    fn message_sizes_are_those_of_the_largest_buffer() {
        let message = Collective {
            element_bytes: Some(2),
            group_size: Some(4),
            elements_in: Some(100),
            elements_out: Some(400),
            ..Collective::default()
        };
        let bytes = |op: CollectiveOp| op.message_bytes(&message);
        assert_eq!(bytes(CollectiveOp::AllReduce), Some(200));
        assert_eq!(bytes(CollectiveOp::AllGather), Some(800));
        assert_eq!(bytes(CollectiveOp::ReduceScatter), Some(200));
        assert_eq!((bytes(CollectiveOp::Gather), bytes(CollectiveOp::Scatter)), (Some(800), Some(3200)));
        assert_eq!(CollectiveOp::AllReduce.message_bytes(&Collective::default()), None);
    }
}
