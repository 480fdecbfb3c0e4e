//! The reader of Kineto's JSON, which is what `torch.profiler` writes.

mod assemble;
mod batch;
mod cursor;
mod envelope;
mod event;
mod list;
mod names;
mod number;
mod operands;
mod pipeline;
#[cfg(test)]
mod properties;
mod scan;
mod segment;
mod text;

use std::path::Path;

use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::format::Format;
use crate::model::stats::{ImportStats, LossKind};
use crate::reader::{Confidence, ReadOptions, Reader, Source, Watch};

/// torch.profiler's JSON, complete or damaged.
pub(crate) struct Kineto;

static FORMAT: Format = Format {
    id: "kineto-json",
    profiler: "torch.profiler (Kineto)",
    files: ".json and .json.gz of torch.profiler",
    suffixes: &[".json", ".json.gz", ".trace", ".trace.gz"],
    supersedes: &[],
    is_json: true,
    records_shapes: true,
    record_gpu: "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)",
    no_gpu_activity: None,
    remedy: |_, _| None,
};

impl Reader for Kineto {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    /// Text that is damaged at its beginning is also worth trying.
    fn sniff(&self, head: &[u8], _: &Path) -> Confidence {
        match head.first() {
            Some(b'{' | b'[') => Confidence::ByContent,
            _ => Confidence::Fallback,
        }
    }

    fn read(
        &self,
        source: Source<'_>,
        trace: &mut TraceBuilder,
        options: &ReadOptions,
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError> {
        let assembler = pipeline::read_all(source.stream, trace, options, watch);
        if assembler.event_count() == 0 && assembler.stats().reached_memory_bound() {
            return Err(OpenError::MemoryTooSmall { path: source.path.to_owned(), takes: None });
        }
        if assembler.is_empty() && !assembler.envelope().is_trace {
            return Err(not_a_trace(source.path, assembler.stats(), &assembler.envelope().keys));
        }
        assembler.finish();
        Ok(())
    }
}

fn not_a_trace(path: &Path, stats: &ImportStats, keys: &[String]) -> OpenError {
    let path = path.to_owned();
    if let Some(cut) = stats.losses.iter().find(|loss| loss.what == LossKind::EndsBeforeEvents) {
        return OpenError::CutBeforeEvents { path, offset: cut.first_offset };
    }
    if keys.iter().any(|key| key == "rocprofiler-sdk-tool") {
        let (what, hint) =
            ("rocprofv3's own JSON", "record with torch.profiler, which has ROCm's copies and kernels too");
        return OpenError::Unsupported { path, what, hint };
    }
    if keys.iter().any(|key| key == "traceEvents") {
        return OpenError::EventsAreNoList { path };
    }
    if keys.is_empty() {
        OpenError::NoEvents { path }
    } else {
        OpenError::OtherJson { path, keys: keys.join(", ") }
    }
}
