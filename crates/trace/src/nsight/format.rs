//! What is Nsight Systems' export called, and how can nsys record what a trace lacks?

use crate::model::format::{Format, Recordable};

pub(crate) const FORMAT: Format = Format {
    id: "nsys-sqlite",
    profiler: "Nsight Systems",
    files: ".sqlite of nsys export",
    suffixes: &[".sqlite"],
    supersedes: &[".nsys-rep", ".qdrep"],
    is_json: false,
    records_shapes: false,
    record_gpu: "nsys profile --trace=cuda,nvtx",
    no_gpu_activity: Some("nsys did not trace CUDA"),
    remedy,
};

fn remedy(missing: Recordable, is_whole: bool) -> Option<&'static str> {
    Some(match missing {
        // It may be in what was lost.
        Recordable::GpuActivity | Recordable::GpuTail | Recordable::RuntimeCalls if !is_whole => {
            "export the report again"
        }
        Recordable::Events | Recordable::GpuActivity | Recordable::RuntimeCalls => {
            "nsys profile --trace=cuda,nvtx,osrt …"
        }
        Recordable::Kernels => {
            "nsys profile --trace=cuda,nvtx …, and export all tables: nsys export --type sqlite without --tables"
        }
        Recordable::Correlation | Recordable::CopyDirection => {
            "use the file that nsys export wrote; some converters drop the field"
        }
        Recordable::Operators => "run the loop under torch.autograd.profiler.emit_nvtx()",
        Recordable::CopyBytes | Recordable::MemoryKind => {
            "export with a newer nsys; older versions do not export it"
        }
        Recordable::GpuNames => "keep the table TARGET_INFO_GPU when trimming an export",
        Recordable::GpuOfProcess => "keep the table TARGET_INFO_CUDA_DEVICE when trimming an export",
        Recordable::Stacks => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\")"
        }
        Recordable::Memory => "nsys profile --cuda-memory-usage=true …",
        Recordable::Synchronizations => "nsys profile --cuda-event-trace=true …",
        Recordable::Steps => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        Recordable::GraphNodes | Recordable::GraphWork => {
            "nsys profile --cuda-graph-trace=node …; it slows down graph launches"
        }
        Recordable::KernelRecords | Recordable::CallRecords => {
            "record a shorter part: nsys profile --capture-range=cudaProfilerApi …, or --delay and --duration"
        }
        Recordable::PageFaults => {
            "nsys profile --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true …"
        }
        _ => return None,
    })
}
