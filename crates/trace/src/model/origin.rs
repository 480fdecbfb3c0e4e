//! Who wrote this trace, on what machine, with which settings?

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::environment::Environment;
use crate::model::format::Format;
use crate::model::numa::Numa;
use crate::model::size::Bytes;

/// What the trace says about how it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Origin {
    /// The format of the file it was read from.
    pub format: &'static Format,
    /// Versions by the name used in the trace, e.g. `cuda_runtime_version`.
    pub versions: BTreeMap<String, String>,
    /// What the profiler was asked to record (`record_shapes`, `with_stack`, …).
    pub settings: BTreeMap<String, bool>,
    pub gpus: Vec<Gpu>,
    /// Device numbers used by several processes that may or may not refer to the same GPU.
    pub ambiguous_devices: BTreeSet<i32>,
    /// GPUs that other processes used during the recording.
    pub shared_gpus: BTreeSet<i32>,
    pub distributed: Option<Distributed>,
    /// Whether the program ran in confidential computing, as far as it is recorded.
    pub is_confidential: bool,
    /// Nanoseconds since the Unix epoch at timestamp zero.
    pub base_time_ns: Option<i64>,
    pub trace_name: Option<String>,
    /// Warnings and errors the profiler wrote into the file.
    pub profiler_messages: Vec<String>,
    /// What `busbound.profiler_handler` or `busbound record` wrote about the process.
    pub environment: Option<Environment>,
    /// The NUMA nodes of the machine; `None` if they are not recorded.
    pub numa: Option<Numa>,
    /// Allocations of pinned and managed memory by their size in bytes, of the whole process; `None` if they are not recorded. The
    /// counts are correct to a factor of two.
    pub pinned_sizes: Option<BTreeMap<u64, u32>>,
    /// Durations of steps of the same run that were timed while nothing was recorded; each is above zero.
    pub unprofiled_step_ms: Vec<f64>,
}

/// Settings of torch.profiler that make recording slower.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfilerFlags {
    /// `record_shapes`.
    pub shapes: bool,
    /// `with_stack`.
    pub stack: bool,
    /// `profile_memory`.
    pub memory: bool,
}

impl Origin {
    /// The profiler's own message that it could not record the GPU: its first line.
    pub fn why_no_gpu(&self) -> Option<&str> {
        // A message that names a cause says more than one that only says what is missing.
        const CAUSES: &[&str] = &["not supported", "error", "fail", "insufficient", "unable"];
        const SIGNS: &[&str] = &["no cuda events collected", "not have been started"];
        let says = |words: &'static [&str]| {
            self.profiler_messages.iter().find(|text| {
                let text = text.to_ascii_lowercase();
                let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
                has(&["cuda", "cupti"]) && has(words)
            })
        };
        says(CAUSES).or_else(|| says(SIGNS))?.lines().next()
    }

    /// Which settings that make recording slower were on.
    pub fn profiled_with(&self) -> ProfilerFlags {
        let on = |setting: &str| self.settings.get(setting).is_some_and(|on| *on);
        ProfilerFlags { shapes: on("record_shapes"), stack: on("with_stack"), memory: on("profile_memory") }
    }

    /// The environment of the process: what was written about it, and what the profiler wrote anyway.
    pub fn environment(&self) -> Environment {
        let mut environment = self.environment.clone().unwrap_or_default();
        // The version of the file's own format says nothing about the run.
        let versions = self.versions.iter().filter(|(name, _)| *name != "schemaVersion");
        environment.versions.extend(versions.map(|(name, version)| (name.clone(), version.clone())));
        if !self.gpus.is_empty() {
            environment.gpus = self.gpus.iter().map(|gpu| gpu.name.clone()).collect();
        }
        environment
    }

    /// The environment, with the links and limits of the GPUs that the process used.
    pub fn environment_with(&self, is_used: impl Fn(i32) -> bool) -> Environment {
        let used = self.gpus.iter().filter(|gpu| is_used(gpu.id));
        let mut environment = self.environment();
        let mut add = |name: &str, values: BTreeSet<String>| {
            if !values.is_empty() {
                environment.hardware.insert(name.to_owned(), Vec::from_iter(values).join(", "));
            }
        };
        let link = |gpu: &Gpu| gpu.link.map(|link| format!("{} x{}", link.generation, link.lanes));
        add("PCIe link", used.clone().filter_map(link).collect());
        let clock = |gpu: &Gpu| gpu.limits.clock_mhz.map(|mhz| format!("{mhz} MHz"));
        add("clock limit", used.clone().filter_map(clock).collect());
        let power = |gpu: &Gpu| gpu.limits.power_watts.map(|watts| format!("{watts} W"));
        add("power limit", used.filter_map(power).collect());
        environment
    }
}

/// One device from `deviceProperties`. All devices of the machine are listed, used or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gpu {
    pub id: i32,
    pub name: String,
    pub memory: Option<Bytes>,
    pub multiprocessors: Option<u32>,
    pub compute_capability: Option<(u32, u32)>,
    /// Its PCIe link during the run, if recorded.
    pub link: Option<RecordedLink>,
    /// What the driver keeps it within, if recorded.
    #[serde(default)]
    pub limits: GpuLimits,
}

/// Settings of a GPU that may differ between machines of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuLimits {
    /// The highest clock of the multiprocessors.
    pub clock_mhz: Option<u32>,
    pub power_watts: Option<u32>,
}

/// A PCIe link as reported by the driver during the run. The generation is the highest one seen: links save power
/// while they are unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedLink {
    pub generation: u32,
    pub lanes: u32,
    /// The max that GPU and slot support.
    pub most_generation: u32,
    pub most_lanes: u32,
}

/// The distributed job that this process belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distributed {
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    pub backend: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_limits_of_the_gpus_in_use_are_compared_whatever_their_numbers() {
        let gpu = |id: i32, lanes: u32, power: u32| Gpu {
            id,
            name: "NVIDIA H200".to_owned(),
            memory: None,
            multiprocessors: None,
            compute_capability: None,
            link: Some(RecordedLink { generation: 5, lanes, most_generation: 5, most_lanes: 16 }),
            limits: GpuLimits { clock_mhz: Some(1980), power_watts: Some(power) },
        };
        let gpus = [gpu(0, 16, 700), gpu(1, 16, 700), gpu(4, 8, 400)];
        let origin = Origin { gpus: gpus.to_vec(), ..Origin::default() };
        let ranks = [0, 1, 4].map(|id| (format!("rank {id}"), origin.environment_with(|used| used == id)));
        let all: Vec<(String, &Environment)> = ranks.iter().map(|(who, one)| (who.clone(), one)).collect();
        assert_eq!(
            Environment::differences(&all),
            ["rank 4: PCIe link=5 x8, others 5 x16", "rank 4: power limit=400 W, others 700 W"]
        );
    }
}
