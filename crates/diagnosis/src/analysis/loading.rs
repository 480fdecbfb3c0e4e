//! What bounds the loading of weights: the disk, the page cache, deserialization, other work on the CPU, or copies?

use busbound_cause::Host;
use busbound_trace::{Call, Direction, Event, EventKind, Interval, IntervalSet, MemoryKind, Trace};
use serde::Serialize;

use super::files::{self, FileActivity};
use crate::quantity::{bytes, milliseconds, plural};
use crate::steps::phases::FoundPhase;

/// Where the time of loading goes. The parts add up to the phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Loading {
    pub bound: LoadingBound,
    /// Copies to the device run; copies of mapped files wait for the disk meanwhile.
    pub copy_ms: f64,
    /// The host is inside a copy call, and no copy runs.
    pub staging_ms: f64,
    /// Python functions that read and deserialize files.
    pub deserialization_ms: f64,
    /// Other operators on the CPU: casts, initial values.
    pub operator_ms: f64,
    /// No call, operator or function is recorded: reading from disk, page cache, or Python. `files` tells them apart.
    pub unrecorded_ms: f64,
    /// While copies run; `null` without copies.
    pub h2d_gbps: Option<f64>,
    /// The link's peak; `null` if unknown.
    pub link_gbps: Option<f64>,
    /// What was read from files meanwhile; `null` unless `busbound record` recorded it.
    pub files: Option<FileActivity>,
    pub fix: String,
}

/// What takes most of the time of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LoadingBound {
    /// Copies at the link's rate.
    Link,
    /// Copies below it: from pageable memory, or small ones.
    Copies,
    /// Reading from disk, while the CPU waits.
    Disk,
    /// The kernel: copying what is read from the page cache, into new memory.
    PageCache,
    /// The kernel, and hardly anything is read: page faults of new memory, or of mapped files that are in memory.
    PageFaults,
    Deserialization,
    Operators,
    /// Other code of the program on the CPU.
    CpuWork,
    /// Nothing that is recorded.
    Unknown,
}

/// Copies at this share of the link's peak are as fast as pinned ones get.
const AT_LINK: f64 = 0.7;
/// A part bounds the loading if it takes this share of it.
const MOST: f64 = 0.5;
/// The disk bounds it only if the CPU is busy for less than this share of one core: with more, it may be what the disk waits for.
const IDLE_CPU: f64 = 0.5;
/// The kernel works on files in memory if a disk is read for less than this share of the time.
const HARDLY_DISK: f64 = 0.1;

/// Less than this is no loading: libraries, other files.
const LEAST_CACHED: u64 = 1 << 20;

/// Functions that read or deserialize: of torch.load, safetensors and pickle.
fn deserializes(event: &Event<'_>) -> bool {
    const PARTS: [&str; 5] =
        ["torch/serialization.py", "safetensors", "pickle", "torch/storage.py", "_weights_only_unpickler.py"];
    matches!(event.kind(), EventKind::PythonFrame | EventKind::Operator)
        && PARTS.iter().any(|part| event.name().contains(part))
}

/// The parts of a phase that loads.
struct Parts {
    copying: IntervalSet,
    /// Everything but copies of memory that cannot be a mapped file: other copies may wait for the disk.
    may_read: IntervalSet,
    staging: IntervalSet,
    reading: IntervalSet,
    operators: IntervalSet,
    unrecorded: IntervalSet,
}

impl Parts {
    /// `running`: when copies to the device run; `pinned`: those from pinned memory.
    fn of(
        times: &IntervalSet,
        trace: &Trace,
        host: &Host<'_>,
        running: &IntervalSet,
        pinned: &IntervalSet,
    ) -> Self {
        let within = |list: Vec<Interval>| IntervalSet::from_unsorted(list).intersection(times);
        let (mut calls, mut reading, mut operators) = (Vec::new(), Vec::new(), Vec::new());
        for event in trace.threads().flat_map(|track| track.events()) {
            if matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall)
                && host.call_kind(&event) == Call::Copy
            {
                calls.push(event.interval());
            } else if deserializes(&event) {
                reading.push(event.interval());
            } else if event.kind() == EventKind::Operator {
                operators.push(event.interval());
            }
        }
        let copying = running.intersection(times);
        let staging = within(calls).difference(&copying);
        let copied = copying.union(&staging);
        let reading = within(reading).difference(&copied);
        let operators = within(operators).difference(&copied).difference(&reading);
        let unrecorded = times.difference(&copied).difference(&reading).difference(&operators);
        let may_read = times.difference(pinned);
        Self { copying, may_read, staging, reading, operators, unrecorded }
    }
}

/// The loading of weights in a phase, with its copies and their bytes.
pub(super) fn loading(
    phase: &FoundPhase,
    trace: &Trace,
    host: &Host<'_>,
    copies: &[Event<'_>],
    h2d_bytes: u64,
    link_gbps: Option<f64>,
) -> Loading {
    let is_h2d = |copy: &&Event<'_>| {
        copy.transfer().is_some_and(|transfer| transfer.direction == Direction::HostToDevice)
    };
    let is_of = |copy: &Event<'_>, kind| copy.transfer().is_some_and(|transfer| transfer.src == kind);
    let running = IntervalSet::from_unsorted(copies.iter().filter(is_h2d).map(|copy| copy.interval()));
    let pinned = copies.iter().filter(|copy| is_of(copy, MemoryKind::Pinned)).map(|copy| copy.interval());
    let pinned = IntervalSet::from_unsorted(pinned);
    let h2d_ms = running.length().as_millis();
    let parts = Parts::of(&phase.times, trace, host, &running, &pinned);
    let [copy_ms, staging_ms, deserialization_ms, operator_ms, unrecorded_ms] =
        [&parts.copying, &parts.staging, &parts.reading, &parts.operators, &parts.unrecorded]
            .map(|part| part.length().as_millis());
    let mut loading = Loading {
        bound: LoadingBound::Unknown,
        copy_ms,
        staging_ms,
        deserialization_ms,
        operator_ms,
        unrecorded_ms,
        h2d_gbps: (h2d_ms > 0.0).then(|| h2d_bytes as f64 / (h2d_ms * 1e6)),
        link_gbps,
        files: files::within(trace, &phase.times),
        fix: String::new(),
    };
    loading.bound = loading.decide(phase, trace, &parts, h2d_bytes);
    let is_pageable = copies.iter().any(|copy| is_of(copy, MemoryKind::Pageable));
    let reads_disk = loading.files.map(|read| read.disk_ms >= MOST * phase.times.length().as_millis());
    loading.fix = fix(loading.bound, is_pageable, reads_disk).to_owned();
    loading
}

impl Loading {
    fn decide(&self, phase: &FoundPhase, trace: &Trace, parts: &Parts, h2d_bytes: u64) -> LoadingBound {
        let all = phase.times.length().as_millis();
        let copied = self.copy_ms + self.staging_ms >= MOST * all;
        let at_link = self.h2d_gbps.zip(self.link_gbps).is_some_and(|(rate, peak)| rate >= AT_LINK * peak);
        match () {
            () if copied && at_link && self.staging_ms < self.copy_ms => LoadingBound::Link,
            () if files::within(trace, &parts.may_read).is_some_and(|read| {
                let is_much = read.disk_ms >= MOST * all && read.disk_bytes as f64 >= MOST * h2d_bytes as f64;
                is_much && read.cpu_ms() <= IDLE_CPU * parts.may_read.length().as_millis()
            }) =>
            {
                LoadingBound::Disk
            }
            () if copied => LoadingBound::Copies,
            () if self.deserialization_ms >= MOST * all => LoadingBound::Deserialization,
            () if self.operator_ms >= MOST * all => LoadingBound::Operators,
            () if self.unrecorded_ms >= MOST * all => {
                self.bound_of_unrecorded(trace, &parts.unrecorded, h2d_bytes)
            }
            () => LoadingBound::Unknown,
        }
    }

    /// What most of the time is, in which nothing is recorded but the kernel's counts.
    fn bound_of_unrecorded(&self, trace: &Trace, times: &IntervalSet, h2d_bytes: u64) -> LoadingBound {
        let Some(read) = files::within(trace, times) else { return LoadingBound::Unknown };
        let is_read = read.read_bytes as f64 >= MOST * h2d_bytes as f64;
        match self.unrecorded_ms {
            ms if read.disk_ms <= HARDLY_DISK * ms && read.system_ms >= MOST * ms => match is_read {
                true => LoadingBound::PageCache,
                false => LoadingBound::PageFaults,
            },
            ms if read.disk_ms <= MOST * ms && read.user_ms >= MOST * ms => LoadingBound::CpuWork,
            _ => LoadingBound::Unknown,
        }
    }
}

/// `reads_disk`: whether a disk is read for most of the time; `None` if what is read is not recorded.
fn fix(bound: LoadingBound, is_pageable: bool, reads_disk: Option<bool>) -> &'static str {
    match bound {
        LoadingBound::Link => {
            "Copy fewer bytes: load the weights in the type that the model computes in, or quantized."
        }
        LoadingBound::Copies if is_pageable => {
            "The weights are copied from pageable memory: `busbound run -- CMD` stages such copies without code changes; \
             busbound.offload.load reads safetensors into pinned memory."
        }
        LoadingBound::Copies => "Copy in larger pieces: many small copies do not reach the link's rate.",
        LoadingBound::Disk => {
            "Read fewer bytes (only the shards that this rank needs, or quantized weights), several files at the same time, or from a faster disk."
        }
        LoadingBound::PageCache => {
            "The files are in memory already, and the kernel copies them into new memory. busbound.offload.load reads safetensors into pinned memory, once."
        }
        LoadingBound::PageFaults => {
            "The kernel maps pages, and hardly anything is read. Either new memory: each tensor that is cast, cloned or initialized on the CPU takes it; create the model on \
             the meta device, and save the weights in the type that is used. Or mapped files that are in memory: busbound.offload.load reads safetensors into pinned memory, once."
        }
        LoadingBound::Deserialization => {
            "Save the weights as safetensors, or load with torch.load(mmap=True), so that tensors are not unpickled one by one."
        }
        LoadingBound::Operators => {
            "Create the model on the meta device, load with assign=True, and save the weights in the type that is used: then nothing is initialized or cast."
        }
        LoadingBound::CpuWork => {
            "The program computes on the CPU: it deserializes, casts or initializes. Save the weights as safetensors in the type that is used, and create the \
             model on the meta device. torch.profiler with with_stack=True shows the functions."
        }
        LoadingBound::Unknown if reads_disk == Some(true) => {
            "A disk is read while the CPU is busy: either may wait for the other. Load twice in one run: the second time, the files are in memory, and the difference is the disk's."
        }
        LoadingBound::Unknown if reads_disk.is_some() => {
            "Neither disk, page cache nor CPU alone takes half of the time. torch.profiler with with_stack=True shows the Python functions."
        }
        LoadingBound::Unknown => {
            "What the host did is not recorded: disk, page cache and Python look the same here. `busbound record` tells them apart; \
             torch.profiler with with_stack=True shows the Python functions."
        }
    }
}

impl LoadingBound {
    fn describe(self) -> &'static str {
        match self {
            Self::Link => "copies at the link's rate",
            Self::Copies => "copies below the link's rate",
            Self::Disk => "the disk",
            Self::PageCache => "the page cache",
            Self::PageFaults => "page faults",
            Self::Deserialization => "deserialization",
            Self::Operators => "operators on the CPU",
            Self::CpuWork => "code on the CPU",
            Self::Unknown => "inconclusive",
        }
    }
}

impl FileActivity {
    fn cpu_ms(&self) -> f64 {
        self.user_ms + self.system_ms
    }

    /// One sentence, with a space before it.
    fn describe(&self) -> String {
        let from_disk = match self.disk_gbps {
            Some(rate) => format!("{} from disk at {rate:.2} GB/s", bytes(self.disk_bytes)),
            None => "nothing from disk".to_owned(),
        };
        // What came from disk for mapped files is in one count only.
        let cached = self.read_bytes.saturating_sub(self.disk_bytes);
        let cached = match cached {
            _ if cached < LEAST_CACHED => String::new(),
            _ => format!(", {} from the page cache", bytes(cached)),
        };
        let faults =
            plural(self.major_faults, "page fault that waited for it", "page faults that waited for it");
        let faults = if self.major_faults > 0 { format!(" ({faults})") } else { String::new() };
        let cpu = format!(
            "CPU {} in the program, {} in the kernel",
            milliseconds(self.user_ms),
            milliseconds(self.system_ms)
        );
        format!(" Files: {from_disk}{faults}{cached}; {cpu}.")
    }
}

impl Loading {
    pub(super) fn describe(&self) -> String {
        let parts = [
            ("copies", self.copy_ms),
            ("inside copy calls", self.staging_ms),
            ("deserialization", self.deserialization_ms),
            ("operators", self.operator_ms),
            ("not recorded", self.unrecorded_ms),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, ms)| *ms > 0.0)
            .map(|(what, ms)| format!("{what} {}", milliseconds(*ms)))
            .collect();
        let rate = match (self.h2d_gbps, self.link_gbps) {
            (Some(rate), Some(peak)) => format!(" Copies run at {rate:.1} of {peak:.1} GB/s."),
            (Some(rate), None) => format!(" Copies run at {rate:.1} GB/s."),
            (None, _) => String::new(),
        };
        let files = self.files.map_or_else(String::new, |files| files.describe());
        format!("Bound by: {} ({}).{rate}{files} {}", self.bound.describe(), parts.join(", "), self.fix)
    }
}
