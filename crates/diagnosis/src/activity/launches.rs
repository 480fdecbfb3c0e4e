//! How much do launches cost, and how short are the launched kernels?

use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{EventKind, Interval, Nanos, Trace};
use serde::Serialize;

use crate::activity::compiled::{self, Compiled};
use crate::activity::queue::{self, LaunchQueue};
use crate::activity::timeline::DeviceTimeline;
use busbound_cause::Host;
use busbound_cause::launches_graph;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launches {
    pub kernels: u64,
    /// Over the time from the first to the last work of each device.
    pub kernels_per_second: f64,
    pub median_kernel_us: f64,
    /// Host calls that launch.
    pub calls: u64,
    /// Host time of a launch call, median.
    pub median_call_us: f64,
    /// Calls longer than 1 ms: kernels loaded on first use, or a full launch queue.
    pub long_calls: u64,
    pub long_calls_ms: f64,
    pub graph_launches: u64,
    /// Host time inside launch calls, per step.
    pub calls_ms_per_step: f64,
    /// Work launched but not started; `null` if launches cannot be matched to GPU work.
    pub queue: Option<LaunchQueue>,
    pub compiled: Compiled,
    /// Operators that launched the most kernels.
    pub operators: Vec<LaunchingOperator>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchingOperator {
    pub operator: String,
    /// Share of the launches, 0 to 1; from a sample if the trace has many.
    pub share: f64,
}

/// How many launches, approximately, get their operator looked up.
const SAMPLED: usize = 2_000;

/// `steps` is the number of steps whose work is in the trace.
pub(crate) fn launches(trace: &Trace, host: &Host<'_>, timelines: &[DeviceTimeline], steps: f64) -> Launches {
    let kernels =
        trace.streams().flat_map(|track| track.events()).filter(|event| event.kind() == EventKind::Kernel);
    let durations: Vec<Nanos> = kernels.map(|event| event.duration()).collect();
    let calls: Vec<_> = host.launches().collect();
    let long: Vec<Nanos> =
        calls.iter().map(|call| call.duration()).filter(|time| time.get() > 1_000_000).collect();
    let mut operators: BTreeMap<&str, u64> = BTreeMap::new();
    let every = calls.len().div_ceil(SAMPLED).max(1);
    let mut sampled = 0;
    for (i, call) in calls.iter().enumerate() {
        // Loops launch periodically: a regular sample would hit the same operator every time.
        if !scattered(i).is_multiple_of(every) {
            continue;
        }
        sampled += 1;
        if let Some(operator) = host.operator_around(call) {
            *operators.entry(operator.name()).or_default() += 1;
        }
    }
    let share = |launches: u64| launches as f64 / f64::from(sampled.max(1));
    let mut operators: Vec<_> = operators
        .into_iter()
        .map(|(operator, n)| LaunchingOperator { operator: operator.to_owned(), share: share(n) })
        .collect();
    operators.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.operator.cmp(&b.operator)));
    operators.truncate(5);
    let span: Nanos = timelines.iter().filter_map(DeviceTimeline::hull).map(Interval::length).sum();
    let seconds = span.as_millis() / 1e3;
    Launches {
        kernels: durations.len() as u64,
        kernels_per_second: if seconds > 0.0 { durations.len() as f64 / seconds } else { 0.0 },
        calls_ms_per_step: calls.iter().map(|call| call.duration()).sum::<Nanos>().as_millis() / steps,
        queue: queue::queue(trace, host, timelines),
        compiled: compiled::compiled(trace, host),
        median_kernel_us: median_us(durations.iter().copied()),
        calls: calls.len() as u64,
        median_call_us: median_us(calls.iter().map(|call| call.duration())),
        long_calls: long.len() as u64,
        long_calls_ms: long.into_iter().sum::<Nanos>().as_millis(),
        graph_launches: calls.iter().filter(|call| launches_graph(call.name())).count() as u64,
        operators,
    }
}

fn median_us(times: impl Iterator<Item = Nanos>) -> f64 {
    median(times.map(Nanos::as_micros)).unwrap_or(0.0)
}

/// A deterministic number without a period in the index.
fn scattered(index: usize) -> usize {
    (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) & 0xff_ffff
}
