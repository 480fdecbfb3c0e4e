//! How far ahead of the device is the host? Work launched but not started, over time.

use busbound_trace::{Nanos, Timestamp, Trace};
use serde::Serialize;

use crate::activity::timeline::{self, DeviceTimeline};
use busbound_cause::Host;

/// Number of kernels, copies and memsets launched but not started, over all streams of all devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchQueue {
    /// Weighted by time.
    pub mean_depth: f64,
    pub max_depth: u64,
    /// Share of the time with an empty queue, 0 to 1.
    pub empty_share: f64,
    /// Mean depth in equal slices of the time, in order.
    pub over_time: Vec<f64>,
}

/// Slices of `over_time`.
const SLICES: usize = 60;

/// `None` if launches cannot be matched to GPU work.
pub(crate) fn queue(trace: &Trace, host: &Host<'_>, timelines: &[DeviceTimeline]) -> Option<LaunchQueue> {
    let whole = timeline::whole(timelines)?;
    if whole.length().get() <= 0 {
        return None;
    }
    let (mut launched, mut started): (Vec<Timestamp>, Vec<Timestamp>) = (Vec::new(), Vec::new());
    for stream in trace.streams() {
        for work in stream.events().filter(|event| event.kind().is_gpu_work()) {
            if let Some(call) = host.call_behind(&work) {
                // Some calls return after their work has started.
                launched.push(call.end().min(work.start()));
                started.push(work.start());
            }
        }
    }
    if launched.is_empty() {
        return None;
    }
    // Streams and threads are already in order, so these sorts only merge a few runs.
    launched.sort();
    started.sort();
    let mut sums = [0i128; SLICES];
    let part = |at: Timestamp| {
        let share = (at - whole.start).get() as f64 / whole.length().get() as f64;
        ((share * SLICES as f64) as usize).min(SLICES - 1)
    };
    let edge: [Timestamp; SLICES + 1] = std::array::from_fn(|part| {
        whole.start + Nanos::new((whole.length().get() as i128 * part as i128 / SLICES as i128) as i64)
    });
    let (mut depth, mut max_depth, mut empty) = (0i64, 0, Nanos::ZERO);
    let mut at = whole.start;
    let (mut i, mut j) = (0, 0);
    while i < launched.len() || j < started.len() {
        // Work that starts the moment it is launched has not waited.
        let next_launch = launched.get(i).copied();
        let launch_first = next_launch.is_some_and(|l| started.get(j).is_none_or(|&b| l <= b));
        let next = if launch_first { launched[i] } else { started[j] }.max(whole.start).min(whole.end);
        if next > at {
            if depth == 0 {
                empty += next - at;
            } else {
                // Split the interval over the slices it touches.
                let (first, last) = (part(at), part(next));
                for (touched, sum) in (first..=last).zip(&mut sums[first..=last]) {
                    let (from, to) = (edge[touched].max(at), edge[touched + 1].min(next));
                    if to > from {
                        *sum += i128::from((to - from).get()) * i128::from(depth);
                    }
                }
                max_depth = max_depth.max(depth);
            }
            at = next;
        }
        if launch_first {
            depth += 1;
            i += 1;
        } else {
            depth -= 1;
            j += 1;
        }
    }
    if whole.end > at {
        empty += whole.end - at;
    }
    let length = whole.length().get() as f64;
    Some(LaunchQueue {
        mean_depth: sums.iter().sum::<i128>() as f64 / length,
        max_depth: max_depth as u64,
        empty_share: empty.get() as f64 / length,
        over_time: sums.iter().map(|&sum| sum as f64 * SLICES as f64 / length).collect(),
    })
}
