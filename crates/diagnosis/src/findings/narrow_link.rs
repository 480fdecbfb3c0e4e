//! Did the link run with fewer lanes, or slower, than GPU and slot allow?

use busbound_machine::LinkSource;
use serde_json::json;

use super::common::copies::times_of;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::{Facts, link_seen};
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "The link ran below what GPU and slot support",
    precondition: "The link is what holds these copies up: pageable copies are held up by the host before it.",
    basis: "bound: exposed copies over the link, sped up as its peak would be",
    candidate: Candidate::None(
        "`link=NAME` replays it with a link that is named; the saving here is a bound because pageable copies among \
         them are limited by the host.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "During the run the driver reported fewer lanes or a lower PCIe generation than GPU and slot can have, \
                  at the highest that was seen. Copies are then judged against the link as it was, not as the GPU's name \
                  suggests.",
        computed: "Evidence: the link state that `busbound record` writes; other traces do not have it. Saving: the \
                   exposed time of host copies, reduced by the ratio of the two peaks, at most.",
        fix: "Find out why the link trained down: another slot or riser, bifurcation in the BIOS, a dirty or loose card \
              (`busbound topo`; `lspci -vv`: LnkSta against LnkCap).",
        code: &[],
        assumes: "The link limits these copies. Pageable copies are limited by the host before it.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let device = facts.timelines.first().map(|timeline| timeline.device);
    // Only what the driver said during the run is evidence, and not where the user states another link.
    let (now, most) = link_seen(facts.trace, device).filter(|_| facts.link.source == LinkSource::Recorded)?;
    if now.peak_gbps() >= most.peak_gbps() {
        return None;
    }
    let over_bus: Vec<&Copy<'_>> = facts.copies.iter().filter(|copy| copy.host_memory().is_some()).collect();
    if over_bus.is_empty() {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let exposed = facts.exposed_ms(over_bus.iter().copied());
    let share = now.peak_gbps() / most.peak_gbps();
    Some(Draft {
        title: Some(format!("The link ran at {}, and could be {}", now.name(), most.name())),
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
        saves: Saving { low: 0.0, high: exposed * (1.0 - share) / steps },
        fix: Fix::new(
            "Find out why it trained down: another slot or riser, bifurcation in the BIOS, a dirty or loose card (busbound topo, lspci -vv: LnkSta beside LnkCap).",
        ),
        at: times_of(&over_bus),
    })
}
