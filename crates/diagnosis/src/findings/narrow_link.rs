//! Did the link run with fewer lanes, or slower, than GPU and slot allow?

use busbound_machine::LinkSource;
use busbound_trace::Interval;
use serde_json::json;

use super::{Draft, Saving};
use crate::activity::copies::Copy;
use crate::analysis::facts::{Facts, link_seen};
use crate::quantity::milliseconds;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let device = facts.timelines.first().map(|timeline| timeline.device);
    // Only what the driver said during the run is evidence, and not beside what the user says.
    let Some((now, most)) =
        link_seen(facts.trace, device).filter(|_| facts.link.source == LinkSource::Recorded)
    else {
        return Vec::new();
    };
    if now.peak_gbps() >= most.peak_gbps() {
        return Vec::new();
    }
    let over_bus: Vec<&Copy<'_>> = facts.copies.iter().filter(|copy| copy.host_memory().is_some()).collect();
    if over_bus.is_empty() {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let exposed = facts.exposed_ms(over_bus.iter().copied());
    let share = now.peak_gbps() / most.peak_gbps();
    let at: Vec<Interval> = over_bus.iter().map(|copy| copy.interval()).collect();
    vec![Draft {
        at,
        id: "narrow_link",
        title: format!("The link ran at {}, and could be {}", now.name(), most.name()),
        seen: format!(
            "The driver told {} ({:.1} GB/s) during the run and at most {} ({:.1} GB/s) for this GPU in this slot. Copies over it stand alone for {} a {unit}.",
            now.name(),
            now.peak_gbps(),
            most.name(),
            most.peak_gbps(),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "link": now.name(),
            "most": most.name(),
            "peak_gbps": now.peak_gbps(),
            "most_gbps": most.peak_gbps(),
            "exposed_ms_per_step": exposed / steps,
        }),
        precondition: "The link is what holds these copies up: pageable copies are held up by the host before it.",
        saves: Saving { low: 0.0, high: exposed * (1.0 - share) / steps },
        basis: "bound: exposed copies over the link, sped up as its peak would be",
        fix: "Find out why it trained down: another slot or riser, bifurcation in the BIOS, a dirty or loose card (busbound topo, lspci -vv: LnkSta beside LnkCap)."
            .to_owned(),
    }]
}
