//! Are there so many small copies that their number costs more than their bytes?

use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, count, milliseconds};
use busbound_cause::idle::GapCause;

const SMALL: u64 = 64 << 10;
const MANY_PER_STEP: f64 = 30.0;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    let small: Vec<&Copy<'_>> = facts
        .issued_copies()
        .filter(|copy| copy.is_on_bus() && copy.bytes().is_some_and(|bytes| bytes < SMALL))
        .collect();
    let device: f64 = small.iter().map(|copy| copy.event.duration().as_millis()).sum();
    let waiting = facts
        .idle
        .iter()
        .find(|idle| idle.cause == GapCause::Launch)
        .map_or(0.0, |idle| idle.before_copies_ms);
    let host: f64 = small.iter().filter_map(|copy| copy.call).map(|call| call.duration().as_millis()).sum();
    let per_step = small.len() as f64 / steps;
    if per_step < MANY_PER_STEP || device + host < 0.02 * facts.time.span_ms {
        return Vec::new();
    }
    let moved: u64 = small.iter().filter_map(|copy| copy.bytes()).sum();
    let exposed = facts.exposed_ms(small.iter().copied());
    let place = small[0].call.and_then(|call| facts.host.around(&call).describe());
    vec![Draft {
        at: times_of(&small),
        id: "small_copies",
        title: "Many small copies".to_owned(),
        seen: format!(
            "{} copies a {unit} of {} on average, {} in all: {} on the device, {} of host calls, and {} in which the GPU waits for the next of them.",
            count(per_step.round() as u64),
            bytes(moved / small.len() as u64),
            bytes((moved as f64 / steps) as u64),
            milliseconds(device / steps),
            milliseconds(host / steps),
            milliseconds(waiting / steps),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "bytes_per_step": moved as f64 / steps,
            "device_ms_per_step": device / steps,
            "host_ms_per_step": host / steps,
            "exposed_ms_per_step": exposed / steps,
            "idle_before_them_ms_per_step": waiting / steps,
            "place": place,
        }),
        precondition: "They are known at the same time.",
        saves: Saving { low: 0.5 * (exposed + waiting) / steps, high: (exposed + waiting.max(host)) / steps },
        basis: "bound: their exposed time, and the time in which the host made their calls",
        fix: "Pack them into one pinned buffer, copy it once and take views on the device; make constants on the device.".to_owned(),
    }]
}
