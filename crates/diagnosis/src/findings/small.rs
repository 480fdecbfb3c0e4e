//! Are there so many small copies that their number costs more than their bytes?

use serde_json::json;

use super::{Draft, Saving};
use crate::copies::Copy;
use crate::facts::Facts;
use crate::quantity::{bytes, count, milliseconds};

const SMALL: u64 = 64 << 10;
const MANY_PER_STEP: f64 = 30.0;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    let small: Vec<&Copy<'_>> = facts
        .copies
        .iter()
        .filter(|copy| copy.is_on_bus() && copy.bytes().is_some_and(|bytes| bytes < SMALL))
        .collect();
    let device: f64 = small.iter().map(|copy| copy.event.duration().as_millis()).sum();
    let host: f64 = small.iter().filter_map(|copy| copy.call).map(|call| call.duration().as_millis()).sum();
    let per_step = small.len() as f64 / steps;
    if per_step < MANY_PER_STEP || device + host < 0.02 * facts.time.span_ms {
        return Vec::new();
    }
    let moved: u64 = small.iter().filter_map(|copy| copy.bytes()).sum();
    let exposed = facts.exposed_ms(small.iter().copied());
    let place = small[0].call.and_then(|call| facts.host.around(&call).describe());
    vec![Draft {
        id: "small_copies",
        title: "Many small copies".to_owned(),
        seen: format!(
            "{} copies a {unit} of {} on average: {} on the device and {} of host calls, for {} in all.",
            count(per_step.round() as u64),
            bytes(moved / small.len() as u64),
            milliseconds(device / steps),
            milliseconds(host / steps),
            bytes((moved as f64 / steps) as u64),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "bytes_per_step": moved as f64 / steps,
            "device_ms_per_step": device / steps,
            "host_ms_per_step": host / steps,
            "exposed_ms_per_step": exposed / steps,
            "place": place,
        }),
        precondition: "They are known at the same time.",
        saves: Saving { low: 0.5 * exposed / steps, high: (exposed + host) / steps },
        basis: "bound: their exposed time, and at most their host calls too",
        fix: "Pack them into one pinned buffer, copy it once and take views on the device; make constants on the device.".to_owned(),
    }]
}
