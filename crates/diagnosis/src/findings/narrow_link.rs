//! Did the link run with fewer lanes, or at a lower speed, than the GPU and slot support?

use busbound_cause::Resource;
use busbound_machine::LinkSource;
use serde_json::json;

use super::common::copies::times_of;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::links::link_seen;
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Downgraded PCIe link",
    doing: "restoring the full width of the link",
    precondition: "The link limits these copies. The host limits pageable copies before the link does.",
    basis: "bound: exposed copies over the link, scaled by the ratio of the peak rates",
    candidate: Candidate::None(
        "`link=NAME` replays the trace with another link. The saving here is a bound, because the host limits the \
         pageable copies among them.",
    ),
    effort: Effort::Machine,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Even at its highest during the run, the link that the driver reported had fewer lanes or a lower PCIe \
                  generation than the GPU and slot support. Copies are compared with the link as it was, not with the link \
                  that the GPU's name implies.",
        computed: "Evidence: the link state that `busbound record` writes; other traces do not contain it. Saving: at most the \
                   exposed time of bus copies, multiplied by one minus the ratio of the two peak rates.",
        fix: "Find out why the link is downgraded: the slot or riser, bifurcation in the BIOS, a dirty or loose card \
              (`busbound topo`; in `lspci -vv`, compare LnkSta with LnkCap).",
        code: &[],
        assumes: "The link limits these copies. The host limits pageable copies before the link does.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let device = facts.timelines.first().map(|timeline| timeline.device);
    // Only what the driver reported during the run is evidence, and only if the user does not state another link.
    let (now, max) = link_seen(facts.trace, device).filter(|_| facts.link.source == LinkSource::Recorded)?;
    if now.peak_gbps() >= max.peak_gbps() {
        return None;
    }
    let over_bus: Vec<&Copy<'_>> = facts.copies.iter().filter(|copy| copy.host_memory().is_some()).collect();
    if over_bus.is_empty() {
        return None;
    }
    let (steps, per) = (facts.steps(), facts.unit().per());
    let exposed = facts.exposed_ms(over_bus.iter().copied());
    let share = now.peak_gbps() / max.peak_gbps();
    Some(Draft {
        title: Some(format!("Downgraded link: {} instead of {}", now.name(), max.name())),
        seen: format!(
            "The driver reported {} ({:.1} GB/s) during the run, and a max of {} ({:.1} GB/s) for this GPU in this slot. Copies over the link are exposed for {}{per}.",
            now.name(),
            now.peak_gbps(),
            max.name(),
            max.peak_gbps(),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "link": now.name(),
            "most": max.name(),
            "peak_gbps": now.peak_gbps(),
            "most_gbps": max.peak_gbps(),
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving { low: 0.0, high: exposed * (1.0 - share) / facts.gpu_steps() },
        fix: Fix::new(
            "Find out why the link is downgraded: the slot or riser, bifurcation in the BIOS, a dirty or loose card (busbound topo; in lspci -vv, compare LnkSta with LnkCap).",
        ),
        at: times_of(&over_bus),
    })
}
