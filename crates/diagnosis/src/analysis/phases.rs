//! What do the phases of a run take, apart from its steps, and what bounds the loading of weights?

use busbound_cause::Host;
use busbound_trace::{Call, Direction, Event, EventKind, Interval, IntervalSet, MemoryKind, Trace};
use serde::Serialize;

use crate::quantity::{bytes, milliseconds, plural};
use crate::steps::phases::{FoundPhase, PhaseFound, PhaseKind, span};

/// Loading, evaluation, checkpoints, and what the program marks as a phase. None of it is in the figures of the steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunPhase {
    pub kind: PhaseKind,
    /// The range, function or mark that it was found by.
    pub name: String,
    pub found: PhaseFound,
    /// How often it occurs.
    pub count: usize,
    /// On the host, all together.
    pub ms: f64,
    /// Of the time of the trace, 0 to 1.
    pub share: f64,
    /// Bytes that it copied to the device and back.
    pub h2d_bytes: u64,
    pub d2h_bytes: u64,
    /// What bounds it; only for loading.
    pub loading: Option<Loading>,
    pub statement: String,
}

/// Where the time of loading goes. The parts add up to the phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Loading {
    pub bound: LoadingBound,
    /// Copies to the device run.
    pub copy_ms: f64,
    /// The host is inside a copy call, and no copy runs.
    pub staging_ms: f64,
    /// Python functions that read and deserialize files.
    pub deserialization_ms: f64,
    /// Other operators on the CPU: casts, initial values.
    pub operator_ms: f64,
    /// Nothing is recorded: reading from disk, page cache, or Python.
    pub unrecorded_ms: f64,
    /// While copies run; `null` without copies.
    pub h2d_gbps: Option<f64>,
    /// The link's peak; `null` if unknown.
    pub link_gbps: Option<f64>,
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
    Deserialization,
    Operators,
    /// Nothing that is recorded.
    Unknown,
}

/// Copies at this share of the link's peak are as fast as pinned ones get.
const AT_LINK: f64 = 0.7;
/// A part bounds the loading if it takes this share of it.
const MOST: f64 = 0.5;

/// The phases for the answer. `link_gbps` is the peak of the first GPU's link, if known.
pub(crate) fn phases(
    found: &[FoundPhase],
    trace: &Trace,
    host: &Host<'_>,
    link_gbps: Option<f64>,
) -> Vec<RunPhase> {
    if found.is_empty() {
        return Vec::new();
    }
    let whole_ms = span(trace).map_or(0.0, |span| span.length().as_millis());
    found.iter().map(|phase| run_phase(phase, trace, host, link_gbps, whole_ms)).collect()
}

fn run_phase(
    phase: &FoundPhase,
    trace: &Trace,
    host: &Host<'_>,
    link_gbps: Option<f64>,
    whole_ms: f64,
) -> RunPhase {
    let copies: Vec<Event<'_>> = trace
        .events()
        .filter(|event| event.kind() == EventKind::Copy)
        .filter(|copy| phase.times.covers(host.call_behind(copy).map_or(copy.start(), |call| call.start())))
        .collect();
    let moved = |direction| {
        let of = copies
            .iter()
            .filter_map(|copy| copy.transfer().filter(|transfer| transfer.direction == direction)?.bytes);
        of.fold(0u64, |sum, bytes| sum.saturating_add(bytes.get()))
    };
    let (h2d_bytes, d2h_bytes) = (moved(Direction::HostToDevice), moved(Direction::DeviceToHost));
    let ms = phase.times.length().as_millis();
    let loading = (phase.kind == PhaseKind::Loading)
        .then(|| loading(phase, trace, host, &copies, h2d_bytes, link_gbps));
    let mut made = RunPhase {
        kind: phase.kind,
        name: phase.name.clone(),
        found: phase.found,
        count: phase.times.count(),
        ms,
        share: if whole_ms > 0.0 { ms / whole_ms } else { 0.0 },
        h2d_bytes,
        d2h_bytes,
        loading,
        statement: String::new(),
    };
    made.statement = made.describe();
    made
}

/// Functions that read or deserialize: of torch.load, safetensors and pickle.
fn deserializes(event: &Event<'_>) -> bool {
    const PARTS: [&str; 5] =
        ["torch/serialization.py", "safetensors", "pickle", "torch/storage.py", "_weights_only_unpickler.py"];
    matches!(event.kind(), EventKind::PythonFrame | EventKind::Operator)
        && PARTS.iter().any(|part| event.name().contains(part))
}

fn loading(
    phase: &FoundPhase,
    trace: &Trace,
    host: &Host<'_>,
    copies: &[Event<'_>],
    h2d_bytes: u64,
    link_gbps: Option<f64>,
) -> Loading {
    let within = |list: Vec<Interval>| IntervalSet::from_unsorted(list).intersection(&phase.times);
    let is_h2d = |copy: &&Event<'_>| {
        copy.transfer().is_some_and(|transfer| transfer.direction == Direction::HostToDevice)
    };
    let running = IntervalSet::from_unsorted(copies.iter().filter(is_h2d).map(|copy| copy.interval()));
    let h2d_ms = running.length().as_millis();
    let copying = running.intersection(&phase.times);
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
    let staging = within(calls).difference(&copying);
    let copied = copying.union(&staging);
    let reading = within(reading).difference(&copied);
    let operators = within(operators).difference(&copied).difference(&reading);
    let parts = [&copying, &staging, &reading, &operators].map(|part| part.length().as_millis());
    let [copy_ms, staging_ms, deserialization_ms, operator_ms] = parts;
    let all = phase.times.length().as_millis();
    let h2d_gbps = (h2d_ms > 0.0).then(|| h2d_bytes as f64 / (h2d_ms * 1e6));
    let is_pageable = copies
        .iter()
        .any(|copy| copy.transfer().is_some_and(|transfer| transfer.src == MemoryKind::Pageable));
    let at_link = h2d_gbps.zip(link_gbps).is_some_and(|(rate, peak)| rate >= AT_LINK * peak);
    let bound = match () {
        () if copy_ms + staging_ms >= MOST * all && at_link && staging_ms < copy_ms => LoadingBound::Link,
        () if copy_ms + staging_ms >= MOST * all => LoadingBound::Copies,
        () if deserialization_ms >= MOST * all => LoadingBound::Deserialization,
        () if operator_ms >= MOST * all => LoadingBound::Operators,
        () => LoadingBound::Unknown,
    };
    Loading {
        bound,
        copy_ms,
        staging_ms,
        deserialization_ms,
        operator_ms,
        unrecorded_ms: (all - parts.iter().sum::<f64>()).max(0.0),
        h2d_gbps,
        link_gbps,
        fix: fix(bound, is_pageable).to_owned(),
    }
}

fn fix(bound: LoadingBound, is_pageable: bool) -> &'static str {
    match bound {
        LoadingBound::Link => {
            "Copy fewer bytes: load the weights in the type that the model computes in, or quantized."
        }
        LoadingBound::Copies if is_pageable => {
            "The weights are copied from pageable memory: `busbound run -- CMD` stages such copies without code changes; \
             busbound.offload.load reads safetensors into pinned memory."
        }
        LoadingBound::Copies => "Copy in larger pieces: many small copies do not reach the link's rate.",
        LoadingBound::Deserialization => {
            "Save the weights as safetensors, or load with torch.load(mmap=True), so that tensors are not unpickled one by one."
        }
        LoadingBound::Operators => {
            "Create the model on the meta device, load with assign=True, and save the weights in the type that is used: then nothing is initialized or cast."
        }
        LoadingBound::Unknown => {
            "What the host did is not recorded: disk, page cache and Python look the same here. Load twice: if the second time is much shorter, the disk \
             bounds the first. torch.profiler with with_stack=True shows the Python functions."
        }
    }
}

impl LoadingBound {
    fn describe(self) -> &'static str {
        match self {
            Self::Link => "copies at the link's rate",
            Self::Copies => "copies below the link's rate",
            Self::Deserialization => "deserialization",
            Self::Operators => "operators on the CPU",
            Self::Unknown => "inconclusive",
        }
    }
}

impl RunPhase {
    fn describe(&self) -> String {
        let what = match self.kind {
            PhaseKind::Loading => "loading",
            PhaseKind::Evaluation => "evaluation",
            PhaseKind::Checkpoint => "checkpoints",
            PhaseKind::Other => "phase",
        };
        let times = plural(self.count as u64, "time", "times");
        let mut text = format!(
            "{what} (`{}`, {times}): {}, {:.0}% of the trace",
            self.name,
            milliseconds(self.ms),
            100.0 * self.share
        );
        for (what, moved) in [("H2D", self.h2d_bytes), ("D2H", self.d2h_bytes)] {
            if moved > 0 {
                text.push_str(&format!("; {} {what}", bytes(moved)));
            }
        }
        match &self.loading {
            Some(loading) => format!("{text}. {}", loading.describe()),
            None => text,
        }
    }
}

impl Loading {
    fn describe(&self) -> String {
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
        format!("Bound by: {} ({}).{rate} {}", self.bound.describe(), parts.join(", "), self.fix)
    }
}
