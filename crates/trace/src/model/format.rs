//! What is a file format called, and how can its profiler record what a trace lacks? One [`Format`] per reader.

use serde::{Serialize, Serializer};

/// The facts about a file format that messages are built from.
#[derive(Debug)]
pub struct Format {
    /// As in JSON output, e.g. `nsys-sqlite`.
    pub id: &'static str,
    /// The tool that writes it, e.g. `Nsight Systems`.
    pub profiler: &'static str,
    /// Its files, for lists of supported formats, e.g. `.sqlite of nsys export`.
    pub files: &'static str,
    /// File name suffixes.
    pub suffixes: &'static [&'static str],
    /// Files with the same name and these suffixes contain the same run. They are skipped if a directory has both.
    pub supersedes: &'static [&'static str],
    /// Whether it is JSON text, so that sizes and offsets count bytes of text.
    pub is_json: bool,
    /// Whether its profiler can record the input shapes of operators.
    pub records_shapes: bool,
    /// How to record a run with GPU activity.
    pub record_gpu: &'static str,
    /// Why a complete file may have no GPU activity, if there is a known reason for this profiler.
    pub no_gpu_activity: Option<&'static str>,
    /// How to record next time what is missing now, by what is missing and whether the file is complete;
    /// `None` if the answer is torch.profiler's, or the same for every profiler.
    pub remedy: fn(missing: Recordable, is_whole: bool) -> Option<&'static str>,
}

/// What a profiler can record, and a file may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recordable {
    Events,
    /// The end of a file that was cut off.
    EndOfFile,
    GpuActivity,
    /// GPU events up to the end of the run.
    GpuTail,
    RuntimeCalls,
    /// The ids that join GPU events to the calls that launched them.
    Correlation,
    Operators,
    CopyBytes,
    CopyDirection,
    /// Whether host memory was pageable or pinned.
    MemoryKind,
    GpuNames,
    GpuOfProcess,
    /// The nodes of CUDA graphs, instead of one event per graph.
    GraphNodes,
    /// Any kernels.
    Kernels,
    /// Kernels that were launched, and copies that were issued.
    KernelRecords,
    /// The calls that launched recorded work.
    CallRecords,
    /// One clock for host and GPU.
    Clocks,
    /// One kernel or copy at a time on a stream.
    StreamOrder,
    /// Times and sizes of copies that some link can reach.
    CopyRates,
    /// Each event once.
    OneOfEach,
    /// The work of CUDA graphs that were launched.
    GraphWork,
    PageFaults,
    Shapes,
    Stacks,
    /// Samples of the allocator.
    Memory,
    Synchronizations,
    /// Marks of steps.
    Steps,
}

impl Format {
    /// A trace built with [`TraceBuilder`](crate::TraceBuilder), not read from a file.
    pub(crate) const BUILT: Self = Self {
        id: "built",
        profiler: "TraceBuilder",
        files: "no file",
        suffixes: &[],
        supersedes: &[],
        is_json: false,
        records_shapes: true,
        record_gpu: "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)",
        no_gpu_activity: None,
        remedy: |_, _| None,
    };
}

impl Default for &'static Format {
    fn default() -> Self {
        &Format::BUILT
    }
}

/// Formats are compared by id.
impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Format {}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id)
    }
}
