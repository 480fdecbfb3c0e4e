//! Which steps took much longer, and what did they do that the others did not?

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::median;
use busbound_trace::{EventKind, Nanos, Trace};
use serde::Serialize;

use super::Window;
use crate::activity::copies::is_on_bus;
use crate::quantity::{bytes, milliseconds};
use crate::unit::Unit;
use busbound_cause::Host;
use busbound_trace::Call;

/// What a step spends time on, as compared between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StepQuantity {
    /// Calls that allocate or free device or host memory.
    Allocation,
    /// Graph capture and instantiation.
    Capture,
    /// Kernels loaded, or compiled by the framework.
    Compilation,
    /// Streams and events created.
    Creation,
    Synchronization,
    Input,
    /// Calls that launch.
    Launch,
    Copy,
    Kernel,
}

impl StepQuantity {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Allocation => "memory allocation calls",
            Self::Capture => "graph capture",
            Self::Compilation => "loading or compiling kernels",
            Self::Creation => "creating streams or events",
            Self::Synchronization => "synchronization",
            Self::Input => "waiting for input",
            Self::Launch => "launch calls",
            Self::Copy => "copies over the bus",
            Self::Kernel => "kernels",
        }
    }
}

/// A step that took much longer than the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutlierStep {
    /// Index among all steps, from 0.
    pub index: usize,
    pub ms: f64,
    /// What it spent more time on than the median step, most first. The times may overlap.
    pub differences: Vec<Difference>,
    pub statement: String,
}

impl OutlierStep {
    /// Whether what it did more is done once per run: loading, compiling, capturing, creating.
    pub(crate) fn is_start_up(&self) -> bool {
        let is_once = |what: StepQuantity| {
            matches!(what, StepQuantity::Capture | StepQuantity::Compilation | StepQuantity::Creation)
        };
        self.differences.iter().any(|difference| is_once(difference.what))
    }

    /// Whether it runs many more kernels than the others.
    pub(crate) fn launches_more(&self) -> bool {
        let is_more = |difference: &Difference| {
            difference.what == StepQuantity::Kernel && difference.count >= MANY_MORE * difference.median_count
        };
        self.differences.iter().any(is_more)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    pub what: StepQuantity,
    pub ms: f64,
    pub median_ms: f64,
    pub count: u64,
    pub median_count: u64,
    pub bytes: u64,
    pub median_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    time: Nanos,
    count: u64,
    bytes: u64,
}

/// A step is an outlier above this multiple of the median, if that is also beyond the usual spread.
const LONGER: f64 = 1.25;
const SPREADS: f64 = 5.0;
/// An iteration with this many times as many kernels is not like the others.
const MANY_MORE: u64 = 2;
/// Fewest steps for a meaningful median.
const FEWEST: usize = 5;
/// Shares of the step's excess time: a smaller difference is not worth a mention, and one that is at least the other explains it.
const MENTIONED: f64 = 0.1;
const EXPLAINS: f64 = 0.5;

/// All outlier steps, in order.
pub(super) fn outliers(window: &Window, trace: &Trace, host: &Host<'_>) -> Vec<OutlierStep> {
    if window.steps.len() < FEWEST {
        return Vec::new();
    }
    let lengths: Vec<f64> = window.steps.iter().map(|step| step.length().as_millis()).collect();
    let usual_ms = median(lengths.iter().copied()).unwrap_or(0.0);
    let deviations = lengths.iter().map(|length| (length - usual_ms).abs());
    let spread = 1.4826 * median(deviations).unwrap_or(0.0);
    let limit = (usual_ms * LONGER).max(usual_ms + SPREADS * spread);
    let slow: Vec<usize> = (0..lengths.len()).filter(|&i| lengths[i] > limit).collect();
    if slow.is_empty() {
        return Vec::new();
    }
    let usual = Usual::of(usual_ms, profiles(window, trace, host));
    let unit = window.unit();
    slow.into_iter().map(|i| outlier((unit, window.numbers[i]), i, lengths[i], &usual)).collect()
}

type Profile = BTreeMap<StepQuantity, Sum>;

/// What each step did, and the medians.
struct Usual {
    ms: f64,
    profiles: Vec<Profile>,
    medians: BTreeMap<StepQuantity, UsualSum>,
}

#[derive(Debug, Clone, Copy)]
struct UsualSum {
    ms: f64,
    count: u64,
    bytes: u64,
}

impl Usual {
    fn of(ms: f64, profiles: Vec<Profile>) -> Self {
        let quantities: BTreeSet<StepQuantity> = profiles.iter().flat_map(BTreeMap::keys).copied().collect();
        let usual = |what: StepQuantity| {
            let usual = |of: fn(&Sum) -> f64| {
                median(profiles.iter().map(|profile| profile.get(&what).map_or(0.0, of))).unwrap_or(0.0)
            };
            let count = usual(|sum| sum.count as f64).round() as u64;
            let bytes = usual(|sum| sum.bytes as f64).round() as u64;
            (what, UsualSum { ms: usual(|sum| sum.time.as_millis()), count, bytes })
        };
        let medians = quantities.into_iter().map(usual).collect();
        Self { ms, profiles, medians }
    }
}

fn outlier((unit, number): (Unit, u64), index: usize, ms: f64, usual: &Usual) -> OutlierStep {
    let excess = ms - usual.ms;
    let all = usual.profiles[index].iter().map(|(&what, sum)| {
        let median = usual.medians[&what];
        Difference {
            what,
            ms: sum.time.as_millis(),
            median_ms: median.ms,
            count: sum.count,
            median_count: median.count,
            bytes: sum.bytes,
            median_bytes: median.bytes,
        }
    });
    // Few calls of a capture or a compilation are recorded: that they occur at all explains more.
    let is_telling = |d: &Difference| {
        matches!(d.what, StepQuantity::Capture | StepQuantity::Compilation) && d.count > d.median_count
    };
    let mut differences: Vec<Difference> =
        all.filter(|d| d.more_ms() > MENTIONED * excess || is_telling(d)).collect();
    let explains = |d: &Difference| d.more_ms() >= EXPLAINS * excess || is_telling(d);
    // Waiting for the device is an effect of the device's work, if that work explains the excess.
    let by_device = |d: &Difference| matches!(d.what, StepQuantity::Copy | StepQuantity::Kernel);
    if differences.iter().any(|d| by_device(d) && explains(d)) {
        differences.retain(|d| d.what != StepQuantity::Synchronization || d.count > d.median_count + 1);
    }
    differences.sort_by(|a, b| b.more_ms().total_cmp(&a.more_ms()));
    let reasons: Vec<String> = differences.iter().filter(|d| explains(d)).map(clause).collect();
    let why = match (reasons.is_empty(), differences.first()) {
        (false, _) => reasons.join("; "),
        (true, Some(largest)) => {
            format!("no single difference explains it; the largest: {}", clause(largest))
        }
        (true, None) => {
            "GPU work took no longer than usual but ran later; the cause is not visible in this trace"
                .to_owned()
        }
    };
    let statement =
        format!("{unit} {number} took {} (median {}): {why}", milliseconds(ms), milliseconds(usual.ms));
    OutlierStep { index, ms, differences, statement }
}

impl Difference {
    fn more_ms(&self) -> f64 {
        self.ms - self.median_ms
    }
}

fn clause(d: &Difference) -> String {
    let usual = if d.median_ms > 0.0 { milliseconds(d.median_ms) } else { "none".to_owned() };
    let (what, times) = (d.what.describe(), format!("{} vs. {usual}", milliseconds(d.ms)));
    let more_bytes = d.bytes > d.median_bytes + d.median_bytes / 20;
    match d.what {
        StepQuantity::Copy if more_bytes => {
            format!("{what} {times} ({} vs. {})", bytes(d.bytes), bytes(d.median_bytes))
        }
        StepQuantity::Copy => format!("{what} {times} for the same {}, at a lower rate", bytes(d.bytes)),
        // The first launch of a kernel loads it.
        StepQuantity::Launch if d.ms > 3.0 * d.median_ms => {
            format!("{what} {times}: kernels loaded on first use, or a full launch queue")
        }
        _ if d.count != d.median_count => format!("{what} {times} ({} vs. {})", d.count, d.median_count),
        StepQuantity::Kernel => format!("{what} {times}: the same number, but slower"),
        _ => format!("{what} {times}"),
    }
}

/// The totals of each step, by quantity.
fn profiles(window: &Window, trace: &Trace, host: &Host<'_>) -> Vec<Profile> {
    let mut profiles = vec![Profile::new(); window.steps.len()];
    let mut add = |step: Option<usize>, what, time, bytes| {
        if let Some(profile) = step.and_then(|step| profiles.get_mut(step)) {
            let sum = profile.entry(what).or_default();
            sum.time += time;
            sum.count += 1;
            sum.bytes += bytes;
        }
    };
    for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
        let step = window.step_of_work(&work);
        match work.kind() {
            EventKind::Kernel => add(step, StepQuantity::Kernel, work.duration(), 0),
            EventKind::Copy => {
                if let Some(transfer) = work.transfer().filter(|transfer| is_on_bus(transfer.direction)) {
                    let bytes = transfer.bytes.map_or(0, |bytes| bytes.get());
                    add(step, StepQuantity::Copy, work.duration(), bytes);
                }
            }
            _ => {}
        }
    }
    for call in host.rare_calls() {
        let what = match host.call_kind(&call) {
            Call::Allocate => StepQuantity::Allocation,
            Call::Capture => StepQuantity::Capture,
            Call::Create => StepQuantity::Creation,
            _ => StepQuantity::Compilation,
        };
        add(window.step_at(call.start()), what, call.duration(), 0);
    }
    for call in host.launches() {
        add(window.step_at(call.start()), StepQuantity::Launch, call.duration(), 0);
    }
    for call in host.synchronizations() {
        add(window.step_at(call.start()), StepQuantity::Synchronization, call.duration(), 0);
    }
    for compilation in host.compilations() {
        let step = window.step_at(compilation.start);
        add(step, StepQuantity::Compilation, compilation.length(), 0);
    }
    for input in host.inputs() {
        add(window.step_at(input.start), StepQuantity::Input, input.length(), 0);
    }
    profiles
}
