//! How long did each kind of work take? The times in the JSON output: totals, and how much of them is exposed.

use serde::Serialize;

use crate::activity::route::CopyRoute;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::breakdown::{Part, PartTimes};

/// Times in milliseconds: unions per device, summed over devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// From the first to the last work.
    pub span_ms: f64,
    /// All that is analyzed: also what the host does in a step before the first and after the last work. The sum of the exposed
    /// parts and idle time.
    pub analyzed_ms: f64,
    pub busy_ms: f64,
    pub compute_ms: f64,
    pub copy_ms: f64,
    pub comm_ms: f64,
    pub memset_ms: f64,
    pub idle_ms: f64,
    /// Copies while no kernel runs.
    pub exposed_copy_ms: f64,
    /// Of these, copies over the link between host and device.
    pub exposed_bus_copy_ms: f64,
    /// Of these, copies whose direction the trace does not record, while no other copy runs.
    pub exposed_unplaced_copy_ms: f64,
    /// Communication while no compute kernel runs.
    pub exposed_comm_ms: f64,
}

impl Times {
    /// Of one device.
    pub(crate) fn of(timeline: &DeviceTimeline, parts: &PartTimes) -> Self {
        let sum = |wanted: fn(Part) -> bool| parts.sum_of(wanted).as_millis();
        Self {
            span_ms: timeline.busy.hull().map_or(0.0, |hull| hull.length().as_millis()),
            analyzed_ms: parts.span().as_millis(),
            busy_ms: sum(|part| !part.is_idle()),
            compute_ms: sum(|part| part == Part::Compute),
            copy_ms: timeline.copies.length().as_millis(),
            comm_ms: timeline.communication.length().as_millis(),
            memset_ms: timeline.memsets.length().as_millis(),
            idle_ms: sum(Part::is_idle),
            exposed_copy_ms: sum(Part::is_copy),
            exposed_bus_copy_ms: sum(Part::is_bus_copy),
            exposed_unplaced_copy_ms: sum(|part| part == Part::Copy(CopyRoute::Unplaced)),
            exposed_comm_ms: sum(|part| part == Part::Communication),
        }
    }
}

/// Summed over devices.
pub(crate) fn total_times(devices: &[Times]) -> Times {
    let sum = |of: fn(&Times) -> f64| devices.iter().map(of).sum();
    Times {
        span_ms: sum(|t| t.span_ms),
        analyzed_ms: sum(|t| t.analyzed_ms),
        busy_ms: sum(|t| t.busy_ms),
        compute_ms: sum(|t| t.compute_ms),
        copy_ms: sum(|t| t.copy_ms),
        comm_ms: sum(|t| t.comm_ms),
        memset_ms: sum(|t| t.memset_ms),
        idle_ms: sum(|t| t.idle_ms),
        exposed_copy_ms: sum(|t| t.exposed_copy_ms),
        exposed_bus_copy_ms: sum(|t| t.exposed_bus_copy_ms),
        exposed_unplaced_copy_ms: sum(|t| t.exposed_unplaced_copy_ms),
        exposed_comm_ms: sum(|t| t.exposed_comm_ms),
    }
}
