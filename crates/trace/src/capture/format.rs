//! What is `busbound record`'s file called, and how can the next recording include what this trace lacks?

use crate::model::format::{Format, Recordable};

pub(super) static FORMAT: Format = Format {
    id: "busbound-capture",
    profiler: "busbound record",
    files: ".bbt of busbound record",
    suffixes: &[".bbt"],
    supersedes: &[],
    is_json: false,
    records_shapes: false,
    record_gpu: "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)",
    no_gpu_activity: None,
    remedy,
};

fn remedy(missing: Recordable, _: bool) -> Option<&'static str> {
    Some(match missing {
        Recordable::Events | Recordable::GpuActivity | Recordable::GpuTail | Recordable::RuntimeCalls => {
            "busbound record -- CMD for longer, or with a later --delay, so that it covers GPU work"
        }
        Recordable::Kernels | Recordable::KernelRecords | Recordable::CallRecords | Recordable::GraphWork => {
            "busbound record -- CMD for a shorter part (--delay, --duration)"
        }
        Recordable::Operators | Recordable::Shapes => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\"); torch.profiler has the operators themselves"
        }
        Recordable::Stacks => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\"); torch.profiler has stacks"
        }
        Recordable::Memory => {
            "torch.profiler: profile(…, profile_memory=True); recordings have no allocator samples"
        }
        Recordable::Steps => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        _ => return None,
    })
}
