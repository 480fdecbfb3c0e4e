//! The text of an estimate of contention between host copies and traffic between GPUs.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_machine::bench::ContentionLoad;
use busbound_machine::{ContentionFacts, LinkSource};
use busbound_whatif::plan::contention::{ContentionPlan, FORMULAS, Meeting, Shared, Wired, Wiring};

use super::{PlanTable, PlanText};

pub(super) fn text(plan: &ContentionPlan) -> PlanText {
    let inputs = &plan.inputs;
    let peers = inputs.peer.as_ref().map_or("no links of their own".to_owned(), |peer| {
        format!("{}, {:.0} GB/s per direction", peer.name, peer.peak_gbps)
    });
    PlanText {
        kind: "contention",
        statement: plan.wirings.first().map_or(String::new(), |wired| statement(plan, wired)),
        inputs: vec![
            ("GPUs", format!("{} × {}", inputs.gpus, inputs.gpu)),
            (
                "to the host",
                format!("{}: {:.1} GB/s per direction", inputs.link.name, inputs.link.reachable_gbps()),
            ),
            ("between GPUs", peers),
        ],
        tables: [Some(overview(plan)), plan.wirings.first().and_then(details), measured(plan)]
            .into_iter()
            .flatten()
            .collect(),
        notes: notes(plan),
        formulas: FORMULAS,
    }
}

fn statement(plan: &ContentionPlan, usual: &Wired) -> String {
    match usual.wiring {
        Wiring::NvLink => {
            let wires = format!("on {} collectives use NVLink and host copies PCIe", plan.inputs.gpu);
            match slower_as_measured(usual) {
                Some(slower) => format!(
                    "Not by wires: {wires}. But measured on this machine, host copies take up to {slower:.0}% longer while copies between GPUs run."
                ),
                None => format!("No: {wires}. They overlap without sharing a wire."),
            }
        }
        Wiring::SingleGpu => {
            "A single GPU has no collectives: its copies have the link to themselves.".to_owned()
        }
        Wiring::PcieSwitch | Wiring::PcieRoot => format!(
            "Yes: on {} collectives and host copies share each GPU's PCIe link, direction by direction. With {} they take up to {:.0}% longer while they overlap{}, but they still overlap.",
            plan.inputs.gpu,
            wiring(usual.wiring, plan.inputs.below_switch),
            usual.worst_pct(),
            otherwise(plan, usual)
        ),
    }
}

/// How much it is if the GPUs are connected in another way, for a machine whose wiring was not given.
fn otherwise(plan: &ContentionPlan, usual: &Wired) -> String {
    let others = plan.wirings.iter().filter(|other| other.wiring == Wiring::PcieRoot);
    let other = others.max_by(|a, b| a.worst_pct().total_cmp(&b.worst_pct()));
    other.filter(|other| other.worst_pct() > usual.worst_pct() + 0.5).map_or(String::new(), |other| {
        format!(" ({:.0}% with {})", other.worst_pct(), wiring(other.wiring, plan.inputs.below_switch))
    })
}

/// Slowdowns below this are within the noise of a measurement.
const NOISE_PCT: f64 = 3.0;

/// How much longer host copies take while copies between GPUs run, in percent, if that was measured and is not noise.
fn slower_as_measured(wired: &Wired) -> Option<f64> {
    let measured = wired.meetings.iter().filter(|meeting| meeting.measured);
    measured.map(Meeting::host_slower_pct).max_by(f64::total_cmp).filter(|slower| *slower > NOISE_PCT)
}

/// One row per wiring: do they share a wire, and what does it cost?
fn overview(plan: &ContentionPlan) -> PlanTable {
    let row = |wired: &Wired| {
        let worst = |of: fn(&Meeting) -> f64| {
            let slower = wired.meetings.iter().map(of).fold(0.0, f64::max);
            if wired.meetings.is_empty() { "–".to_owned() } else { format!("{slower:.0}%") }
        };
        vec![
            wiring(wired.wiring, plan.inputs.below_switch),
            shared_wire(wired).to_owned(),
            format!("{:.1}{}", wired.host_gbps, if wired.host_measured { ", measured" } else { "" }),
            worst(Meeting::host_slower_pct),
            worst(Meeting::peers_slower_pct),
        ]
    };
    let titles = [
        "GPUs connected by",
        "shared wire",
        "H2D GB/s per GPU, all at once",
        "copies slower",
        "collectives slower",
    ];
    PlanTable::new(&titles, plan.wirings.iter().map(row).collect())
}

fn wiring(wiring: Wiring, below_switch: u32) -> String {
    match wiring {
        Wiring::NvLink => "NVLink (SXM)".to_owned(),
        Wiring::PcieSwitch => format!("a PCIe switch, {below_switch} GPUs per uplink"),
        Wiring::PcieRoot => "root ports of the host".to_owned(),
        Wiring::SingleGpu => "nothing: a single GPU".to_owned(),
    }
}

fn shared_wire(wired: &Wired) -> &'static str {
    match wired.wiring {
        Wiring::NvLink | Wiring::SingleGpu => "none",
        Wiring::PcieSwitch => "the GPU's link; copies also share the uplink",
        Wiring::PcieRoot => "the GPU's link",
    }
}

/// Each pair of traffic, in the usual wiring.
fn details(wired: &Wired) -> Option<PlanTable> {
    let row = |meeting: &Meeting| {
        let from_to = |alone: f64, together: f64| format!("{alone:.1} → {together:.1}");
        vec![
            meeting.host.name().to_owned(),
            meeting.peers.name().to_owned(),
            shares(meeting.shares).to_owned(),
            from_to(meeting.host_alone_gbps, meeting.host_together_gbps)
                + if meeting.measured { ", measured" } else { "" },
            from_to(meeting.peers_alone_gbps, meeting.peers_together_gbps),
        ]
    };
    let titles = ["copies", "with", "share", "copies GB/s", "other GB/s"];
    let rows: Vec<Vec<String>> = wired.meetings.iter().map(row).collect();
    (!rows.is_empty()).then(|| PlanTable::new(&titles, rows))
}

/// What `busbound bench --suite contention` measured on this machine.
fn measured(plan: &ContentionPlan) -> Option<PlanTable> {
    let is_load = |facts: &&ContentionFacts| facts.load != ContentionLoad::Nothing;
    let row = |facts: &ContentionFacts| {
        let total = if facts.others_gbps.is_empty() {
            "–".to_owned()
        } else {
            format!("{:.1}", facts.total_gbps())
        };
        vec![
            format!("{} copies {}", facts.direction.words(), facts.load.while_it_runs(facts.direction)),
            format!("{:.1} → {:.1}", facts.alone_gbps, facts.gbps),
            format!("{:+.0}%", 100.0 * (facts.slowdown - 1.0)),
            total,
        ]
    };
    let rows: Vec<Vec<String>> = plan.measured.iter().filter(is_load).map(row).collect();
    let titles = ["measured on this machine", "GB/s", "time", "total GB/s"];
    (!rows.is_empty()).then(|| PlanTable::new(&titles, rows))
}

fn shares(shared: Shared) -> &'static str {
    match shared {
        Shared::LinkIn => "link, towards the GPU",
        Shared::LinkOut => "link, from the GPU",
        Shared::Duplex => "opposite directions",
        Shared::Nothing => "nothing",
    }
}

fn notes(plan: &ContentionPlan) -> Vec<String> {
    let basis = match (plan.inputs.link.source, plan.measured.is_empty()) {
        (LinkSource::Measured, true) => Some(
            "The profile has no slowdowns, so that these are computed: `busbound bench --suite contention --save FILE` adds measured ones to it.",
        ),
        (LinkSource::Measured, false) => Some(
            "Rates marked as measured are those of the profile, and so is what both directions of the link carry; the others are computed.",
        ),
        _ => None,
    };
    let mut notes: Vec<String> = basis.map(str::to_owned).into_iter().collect();
    notes.extend([
        format!(
            "With sequence parallelism without NVLink: let copies wait while an all-to-all runs (what-if `spread`), in chunks of {}, which keep 90% of the rate and delay an exchange by at most {}. A lower prefetch depth moves the same bytes: take the depth that `plan offload --all-to-all` calls enough.",
            bytes(plan.chunk_bytes),
            milliseconds(plan.chunk_ms)
        ),
        "Below one PCIe switch, traffic between GPUs does not use the uplink, unless access control (ACS) redirects it; between sockets it also shares the link between them, which is not part of this estimate.".to_owned(),
        "Host memory and copy engines can still cost something on separate wires: one report has collectives 8–11% slower while D2H copies run (nccl#2218).".to_owned(),
    ]);
    notes
}
