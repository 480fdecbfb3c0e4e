//! What is Nsight Systems' export called, and how can nsys record what a trace lacks?

use crate::model::format::Format;

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

fn remedy(missing: &str, is_whole: bool) -> Option<&'static str> {
    Some(match missing {
        // It may be in what was lost.
        "gpu_activity" | "gpu_tail" | "runtime_calls" if !is_whole => "export the report again",
        "events" | "gpu_activity" | "runtime_calls" => "nsys profile --trace=cuda,nvtx,osrt …",
        "correlation" | "copy_direction" => {
            "use the file that nsys export wrote; some converters drop the field"
        }
        "operators" => "run the loop under torch.autograd.profiler.emit_nvtx()",
        "copy_bytes" | "memory_kind" => "export with a newer nsys; older versions do not export it",
        "gpu_names" => "keep the table TARGET_INFO_GPU when trimming an export",
        "gpu_of_process" => "keep the table TARGET_INFO_CUDA_DEVICE when trimming an export",
        "stacks" => "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\")",
        "memory" => "nsys profile --cuda-memory-usage=true …",
        "synchronizations" => "nsys profile --cuda-event-trace=true …",
        "steps" => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        "graph_nodes" | "graph_work" => {
            "nsys profile --cuda-graph-trace=node …; it slows down graph launches"
        }
        "page_faults" => "nsys profile --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true …",
        _ => return None,
    })
}
