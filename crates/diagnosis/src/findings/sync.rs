//! Does the host stop in the middle of the step to wait for the device?

use serde_json::json;

use super::{Draft, Saving};
use crate::activity::gaps::{GapCause, idle_beside_ms};
use crate::activity::syncs::SyncReason;
use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    // Only the idle time after these waits; that after the last of a step, or after a blocking copy, is not
    // theirs.
    let idle = idle_beside_ms(&facts.gaps, GapCause::Synchronisation, &facts.syncs.avoidable_times);
    // Where no steps are marked, the one at the end of each step cannot be told from others.
    let fewest = if facts.window.steps.is_empty() { 10.0 } else { steps };
    let of = |reason| facts.syncs.of(reason).filter(|total| total.within_step as f64 >= fewest);
    let (read, explicit) = (of(SyncReason::ValueRead), of(SyncReason::Explicit));
    let count: u64 = [read, explicit].iter().flatten().map(|total| total.within_step).sum();
    let waited: f64 = [read, explicit].iter().flatten().map(|total| total.within_step_ms).sum();
    if count == 0 {
        return Vec::new();
    }
    // Streams that only take turns because of it could run side by side; copies gain most of that,
    // kernels that fill the GPU nothing.
    let beside = facts.streams_that_take_turns().map_or(0.0, |_| facts.part_ms(Part::is_transfer));
    if idle + beside < 0.02 * facts.time.span_ms {
        return Vec::new();
    }
    let place = read.or(explicit).and_then(|total| total.place.clone());
    let at = place.as_ref().map_or(String::new(), |place| {
        let by = if place.starts_with("under ") || place.starts_with("at ") { "" } else { "by " };
        format!(", most of it {by}{place}")
    });
    let fix = if read.is_some() {
        "Keep values on the device: add losses up in a tensor and read it every N steps, not .item() in the loop."
    } else {
        "Wait for an event on the stream (stream.wait_event) instead of stopping the host; synchronise once at the end."
    };
    vec![Draft {
        at: facts.syncs.avoidable_times.values().flat_map(|times| times.iter()).collect(),
        id: "sync_in_loop",
        title: if read.is_some() {
            "Values are read back within the step".to_owned()
        } else {
            "The host synchronises within the step".to_owned()
        },
        seen: format!(
            "{:.0} times a {unit} the host waits for the GPU before it goes on, {} in all{at}; the GPU then stands still for {}{}.",
            count as f64 / steps,
            milliseconds(waited / steps),
            milliseconds(idle / steps),
            if beside > 0.0 { ", and its streams take turns" } else { "" },
        ),
        evidence: json!({
            "syncs_per_step": count as f64 / steps,
            "host_waits_ms_per_step": waited / steps,
            "idle_after_ms_per_step": idle / steps,
            "exposed_copy_between_streams_ms_per_step": beside / steps,
            "place": place,
        }),
        precondition: "The value waited for is not needed to decide what runs next.",
        saves: Saving { low: 0.4 * (idle + beside) / steps, high: (idle + beside) / steps },
        basis: "bound: idle time after synchronisations, and exposed copies of streams that take turns",
        fix: fix.to_owned(),
    }]
}
