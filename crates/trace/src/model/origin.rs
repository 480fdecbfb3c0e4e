//! Who wrote this trace, on what machine, with which settings?

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::format::Format;
use crate::model::size::Bytes;

/// What the trace says about its own making.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Origin {
    /// The format of the file that it was read from.
    pub format: &'static Format,
    /// Versions by the name the trace gives them, e.g. `cuda_runtime_version`.
    pub versions: BTreeMap<String, String>,
    /// What the profiler was asked to record (`record_shapes`, `with_stack`, …).
    pub settings: BTreeMap<String, bool>,
    pub gpus: Vec<Gpu>,
    /// Device numbers of several processes of which nothing tells whether they mean one GPU.
    pub ambiguous_devices: BTreeSet<i32>,
    pub distributed: Option<Distributed>,
    /// Nanoseconds since the Unix epoch at timestamp zero.
    pub base_time_ns: Option<i64>,
    pub trace_name: Option<String>,
    /// Warnings and errors the profiler wrote into the file.
    pub profiler_messages: Vec<String>,
}

/// One device as `deviceProperties` lists it. All of the machine's devices are listed, used or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gpu {
    pub id: i32,
    pub name: String,
    pub memory: Option<Bytes>,
    pub multiprocessors: Option<u32>,
    pub compute_capability: Option<(u32, u32)>,
    /// Its PCIe link during the run, where the file tells.
    pub link: Option<RecordedLink>,
}

/// A PCIe link as the driver told it during the run. The generation is the highest that was seen: links save power when nothing crosses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedLink {
    pub generation: u32,
    pub lanes: u32,
    /// What GPU and slot could have.
    pub most_generation: u32,
    pub most_lanes: u32,
}

/// The job this trace is one process of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distributed {
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    pub backend: Option<String>,
}
