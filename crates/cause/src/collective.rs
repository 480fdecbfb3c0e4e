//! Is this kernel communication? Recognized by name, from one table.

use busbound_trace::{NameId, Names};

/// Substrings of communication kernel names, in lower case, and the library they belong to.
///
/// A family is listed only if its kernels are known to move data between GPUs.
const FAMILIES: &[(&str, &str)] = &[
    ("nccl", "NCCL"),
    ("rccl", "RCCL"),
    ("deep_ep", "DeepEP"),
    ("dpsk_ep", "DeepEP"),
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
}
