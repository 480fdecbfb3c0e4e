//! How is it recorded next time with what recorded it? Remedies other than torch.profiler's.

use busbound_trace::SourceFormat;

/// The remedy for what is missing; `None` where the answer is torch.profiler's, or the same for every profiler.
pub(super) fn remedy(missing: &str, format: SourceFormat, is_whole: bool) -> Option<&'static str> {
    match format {
        SourceFormat::KinetoJson => None,
        SourceFormat::BusboundCapture => with_record(missing),
        SourceFormat::NsysSqlite => with_nsys(missing, is_whole),
    }
}

fn with_record(missing: &str) -> Option<&'static str> {
    Some(match missing {
        "events" | "gpu_activity" | "gpu_tail" | "runtime_calls" => {
            "busbound record -- CMD for longer, or with a later --delay, so that the GPU works meanwhile"
        }
        "operators" | "shapes" => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\"); torch.profiler has the operators themselves"
        }
        "stacks" => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\"); torch.profiler has stacks"
        }
        "memory" => "torch.profiler: profile(…, profile_memory=True); recordings have no allocator samples",
        "steps" => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        _ => return None,
    })
}

fn with_nsys(missing: &str, is_whole: bool) -> Option<&'static str> {
    Some(match missing {
        // It may have been in what was lost.
        "gpu_activity" | "gpu_tail" | "runtime_calls" if !is_whole => "export the report again",
        "events" | "gpu_activity" | "runtime_calls" => "nsys profile --trace=cuda,nvtx,osrt …",
        "correlation" | "copy_direction" => "use what nsys export wrote; some converters drop the field",
        "operators" => "run the loop under torch.autograd.profiler.emit_nvtx()",
        "copy_bytes" | "memory_kind" => "export with a newer nsys; exports of older ones do not say it",
        "gpu_names" => "keep the table TARGET_INFO_GPU when cutting an export down",
        "gpu_of_process" => "keep the table TARGET_INFO_CUDA_DEVICE when cutting an export down",
        "stacks" => "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\")",
        "memory" => "nsys profile --cuda-memory-usage=true …",
        "synchronisations" => "nsys profile --cuda-event-trace=true …",
        "steps" => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        "graph_nodes" | "graph_work" => "nsys profile --cuda-graph-trace=node …; it slows launches of graphs",
        "page_faults" => "nsys profile --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true …",
        _ => return None,
    })
}
