//! How is it recorded next time with what recorded it? Remedies other than torch.profiler's.

use busbound_trace::SourceFormat;

use crate::limits::id::LimitationId::{self, *};

/// The remedy for what is missing; `None` where the answer is torch.profiler's, or the same for every profiler.
pub(super) fn remedy_of(
    missing: LimitationId,
    format: SourceFormat,
    is_complete: bool,
) -> Option<&'static str> {
    match format {
        SourceFormat::KinetoJson => None,
        SourceFormat::BusboundCapture => with_record(missing),
        SourceFormat::NsysSqlite => with_nsys(missing, is_complete),
    }
}

fn with_record(missing: LimitationId) -> Option<&'static str> {
    Some(match missing {
        Events | GpuActivity | GpuTail | RuntimeCalls => {
            "busbound record -- CMD for longer, or with a later --delay, so that the GPU works meanwhile"
        }
        Operators | Shapes => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\"); torch.profiler has the operators themselves"
        }
        Stacks => {
            "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\"); torch.profiler has stacks"
        }
        Memory => "torch.profiler: profile(…, profile_memory=True); recordings have no allocator samples",
        Steps => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        _ => return None,
    })
}

fn with_nsys(missing: LimitationId, is_complete: bool) -> Option<&'static str> {
    Some(match missing {
        // It may have been in what was lost.
        GpuActivity | GpuTail | RuntimeCalls if !is_complete => "export the report again",
        Events | GpuActivity | RuntimeCalls => "nsys profile --trace=cuda,nvtx,osrt …",
        Correlation | CopyDirection => "use what nsys export wrote; some converters drop the field",
        Operators => "run the loop under torch.autograd.profiler.emit_nvtx()",
        CopyBytes | MemoryKind => "export with a newer nsys; exports of older ones do not say it",
        GpuNames => "keep the table TARGET_INFO_GPU when cutting an export down",
        GpuOfProcess => "keep the table TARGET_INFO_CUDA_DEVICE when cutting an export down",
        Stacks => "mark parts of the program as NVTX ranges: with torch.cuda.nvtx.range(\"load\")",
        Memory => "nsys profile --cuda-memory-usage=true …",
        Synchronisations => "nsys profile --cuda-event-trace=true …",
        Steps => "wrap each step in an NVTX range: with torch.cuda.nvtx.range(\"step\")",
        GraphNodes | GraphWork => "nsys profile --cuda-graph-trace=node …; it slows launches of graphs",
        PageFaults => "nsys profile --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true …",
        _ => return None,
    })
}
