//! What is a file format called, and how does its profiler record what a trace lacks? One [`Format`] per reader.

use serde::{Serialize, Serializer};

/// The facts of a file format that texts are made from.
#[derive(Debug)]
pub struct Format {
    /// As in JSON output: `nsys-sqlite`.
    pub id: &'static str,
    /// What writes it: `Nsight Systems`.
    pub profiler: &'static str,
    /// What its files are, for lists of what is read: `.sqlite of nsys export`.
    pub files: &'static str,
    /// How the names of its files end.
    pub suffixes: &'static [&'static str],
    /// Files of the same name with these endings hold the same run and are left out where a directory has both.
    pub supersedes: &'static [&'static str],
    /// Whether it is JSON text, so that sizes and offsets count bytes of text.
    pub is_json: bool,
    /// Whether its profiler can record the shapes of operators' inputs.
    pub records_shapes: bool,
    /// How a run is recorded so that GPU activity is in the file.
    pub record_gpu: &'static str,
    /// Why a whole file may hold no GPU activity, where that is known of this profiler.
    pub no_gpu_activity: Option<&'static str>,
    /// How to record next time what is missing now, by the id of what is missing and whether the file was whole; `None`
    /// where the answer is torch.profiler's, or the same for every profiler.
    pub remedy: fn(missing: &str, is_whole: bool) -> Option<&'static str>,
}

impl Format {
    /// A trace that [`TraceBuilder`](crate::TraceBuilder) made, from no file.
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

/// A format is its id.
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
