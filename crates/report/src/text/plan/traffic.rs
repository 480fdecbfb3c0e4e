//! The text of what copies and collectives share on a machine whose topology is known.

use busbound_machine::topology::{
    Assumption, GpuTraffic, Meeting, PeerRoute, SharedWire, TrafficKind, TrafficPlan, Via,
};

use super::{PlanTable, PlanText};
use crate::text::plural;

pub(super) fn text(plan: &TrafficPlan) -> PlanText {
    PlanText {
        kind: "contention",
        statement: statement(plan),
        inputs: inputs(plan),
        tables: [Some(gpus(plan)), routes(plan), meetings(plan)].into_iter().flatten().collect(),
        notes: notes(plan),
        formulas: FORMULAS,
    }
}

pub(super) const FORMULAS: &[&str] = &[
    "a link carries 88% of its line peak per direction as pinned copies, 76% as NCCL plans, and 1.78 times one direction in both (98.6 of 55.4 GB/s, measured on an H200)",
    "host copies cross every link up to the host; copies between GPUs cross what is below their common switch, or everything up to the host bridge; access control (ACS) and refused peer access send them to the host and back",
    "all GPUs do the same at the same time; a wire is shared max-min fairly; a collective is as fast as its slowest part",
    "time lost while two transfers overlap for t ms and one takes 1 + s times as long: t × s / (1 + s)",
];

fn statement(plan: &TrafficPlan) -> String {
    if plan.gpus.len() == 1 {
        return "A single GPU has no collectives: its copies have the link to themselves.".to_owned();
    }
    let uplink = uplink(plan);
    let refused = plan.routes.iter().filter(|route| route.via == Via::HostMemory).count();
    if plan.is_all_nvlink() {
        return format!(
            "No: the GPUs exchange over NVLink and copy from the host over PCIe, and share no wire.{uplink}"
        );
    }
    let slower = |of, with| format!("{:.0}%", plan.worst_pct(of, with));
    let through = if refused > 0 {
        " The driver refuses peer access, so that exchanges go through host memory."
    } else {
        ""
    };
    format!(
        "Yes: collectives and host copies share PCIe links.{through} While they overlap, H2D copies take up to {} longer, an all-to-all {} and an all-reduce {}; they still overlap.{uplink}",
        slower(TrafficKind::H2d, TrafficKind::AllToAll),
        slower(TrafficKind::AllToAll, TrafficKind::H2d),
        slower(TrafficKind::AllReduce, TrafficKind::H2d),
    )
}

/// What GPUs on one uplink cost each other.
fn uplink(plan: &TrafficPlan) -> String {
    let slowest = plan.gpus.iter().min_by(|a, b| a.h2d_all_gbps.total_cmp(&b.h2d_all_gbps));
    slowest.filter(|gpu| !gpu.shares_uplink_with.is_empty()).map_or(String::new(), |gpu| {
        format!(
            " {} share an uplink: while all copy, each gets {:.1} of {:.1} GB/s.",
            plural(gpu.shares_uplink_with.len() as u64 + 1, "GPU", "GPUs"),
            gpu.h2d_all_gbps,
            gpu.alone_gbps
        )
    })
}

/// What the plan was made for.
pub(super) fn inputs(plan: &TrafficPlan) -> Vec<(&'static str, String)> {
    let name = plan.gpus.first().and_then(|gpu| gpu.name.clone()).unwrap_or_else(|| "GPUs".to_owned());
    let mut listed = vec![("machine", format!("{} × {name}, from: {}", plan.gpus.len(), plan.source))];
    if !plan.ring.is_empty() {
        let ring: Vec<String> = plan.ring.iter().map(u32::to_string).collect();
        listed.push(("ring", format!("GPU {} → …", ring.join(" → "))));
    }
    let rate = |gbps: Option<f64>| gbps.map(|gbps| format!("{gbps:.1} GB/s per GPU"));
    listed.extend(
        rate(plan.all_reduce_gbps).map(|rate| ("all-reduce", format!("{rate} alone (busbw), in a ring"))),
    );
    listed.extend(rate(plan.all_to_all_gbps).map(|rate| ("all-to-all", format!("{rate} alone"))));
    listed
}

fn gpus(plan: &TrafficPlan) -> PlanTable {
    let row = |gpu: &GpuTraffic| {
        let shares: Vec<String> = gpu.shares_uplink_with.iter().map(|other| format!("GPU{other}")).collect();
        vec![
            format!("GPU{}", gpu.index),
            gpu.link.name(),
            if shares.is_empty() { "–".to_owned() } else { shares.join(" ") },
            if gpu.nvlink_gbps > 0.0 { format!("{:.0}", gpu.nvlink_gbps) } else { "–".to_owned() },
            format!("{:.1}", gpu.alone_gbps),
            format!("{:.1}", gpu.h2d_all_gbps),
            format!("{:.1}", gpu.h2d_duplex_gbps),
        ]
    };
    let titles =
        ["GPU", "to the host", "shares uplink with", "NVLink GB/s", "H2D GB/s", "all", "all, and D2H"];
    PlanTable::new(&titles, plan.gpus.iter().map(row).collect())
}

/// One row for the routes that are alike.
fn routes(plan: &TrafficPlan) -> Option<PlanTable> {
    let cells = |route: &PeerRoute| {
        let with = |gbps: f64, shares: &[SharedWire]| format!("{gbps:.1}, {}", shared(shares));
        vec![
            format!("{} ({})", via(route.via), route.connection.word()),
            format!("{:.1}", route.alone_gbps),
            with(route.with_h2d_gbps, &route.shares_with_h2d),
            with(route.with_d2h_gbps, &route.shares_with_d2h),
        ]
    };
    let mut rows: Vec<(Vec<&PeerRoute>, Vec<String>)> = Vec::new();
    for route in &plan.routes {
        let cells = cells(route);
        match rows.iter_mut().find(|(_, known)| *known == cells) {
            Some((alike, _)) => alike.push(route),
            None => rows.push((vec![route], cells)),
        }
    }
    let row = |(alike, cells): (Vec<&PeerRoute>, Vec<String>)| {
        std::iter::once(named(&alike)).chain(cells).collect::<Vec<String>>()
    };
    let titles = ["P2P", "via", "GB/s", "with H2D", "with D2H"];
    let rows: Vec<Vec<String>> = rows.into_iter().map(row).collect();
    (!rows.is_empty()).then(|| PlanTable::new(&titles, rows))
}

/// `0→1 1→0 and 10 more`.
fn named(alike: &[&PeerRoute]) -> String {
    let one = |route: &&PeerRoute| format!("{}→{}", route.from, route.to);
    let first: Vec<String> = alike.iter().take(2).map(one).collect();
    match alike.len() {
        0..=2 => first.join(" "),
        n => format!("{} and {} more", first.join(" "), n - 2),
    }
}

fn meetings(plan: &TrafficPlan) -> Option<PlanTable> {
    let row = |met: &Meeting| {
        let from_to =
            |alone: f64, together: f64, percent: f64| format!("{alone:.1} → {together:.1} (+{percent:.0}%)");
        vec![
            met.first.name().to_owned(),
            met.second.name().to_owned(),
            shared(&met.shares),
            from_to(met.first_alone_gbps, met.first_together_gbps, met.first_slower_pct()),
            from_to(met.second_alone_gbps, met.second_together_gbps, met.second_slower_pct()),
        ]
    };
    let titles = ["all GPUs", "with", "share", "first, GB/s", "second, GB/s"];
    let rows: Vec<Vec<String>> = plan.meetings.iter().map(row).collect();
    (!rows.is_empty()).then(|| PlanTable::new(&titles, rows))
}

fn via(via: Via) -> &'static str {
    match via {
        Via::NvLink => "NVLink",
        Via::PcieSwitch => "PCIe switch",
        Via::Redirected => "host, by ACS",
        Via::HostBridge => "host bridge",
        Via::Sockets => "both sockets",
        Via::HostMemory => "host memory",
    }
}

fn shared(wires: &[SharedWire]) -> String {
    let word = |wire: &SharedWire| match wire {
        SharedWire::LinkIn => "link in",
        SharedWire::LinkOut => "link out",
        SharedWire::UplinkIn => "uplink in",
        SharedWire::UplinkOut => "uplink out",
        SharedWire::Duplex => "opposite directions",
        SharedWire::NvLink => "NVLink",
    };
    let words: Vec<&str> = wires.iter().map(word).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

pub(super) fn notes(plan: &TrafficPlan) -> Vec<String> {
    let mut notes: Vec<String> = plan.assumptions.iter().map(|one| assumption(*one).to_owned()).collect();
    if plan.fabric.nvls_efficiency().is_some() {
        notes.push("The all-reduce is a ring between GPUs. NVSwitches that reduce (NVLS) make a large one faster: `busbound plan allreduce` plans with them.".to_owned());
    }
    if plan.gpus.len() > 1 {
        notes.push("\"In\" is towards the GPUs, \"out\" is from them. Separate wires can still cost something: one report has collectives 8–11% slower while D2H copies run (nccl#2218).".to_owned());
    }
    notes
}

fn assumption(assumption: Assumption) -> &'static str {
    match assumption {
        Assumption::NoNvlinks => {
            "Assumed: no NVLinks. A tree of /sys does not list them; `busbound topo -o topo.json` on the machine does."
        }
        Assumption::NvlinkRate => {
            "Assumed: NVLinks of 25 GB/s per direction. The GPU's generation is not known."
        }
        Assumption::SocketsAreFree => {
            "Some routes cross the link between sockets, whose rate is not known: they may be slower than this."
        }
        Assumption::AsTheHypervisorShows => {
            "Assumed: the switches are as this virtual machine shows them. The host may have others."
        }
        Assumption::PeerAccess => {
            "Assumed: GPUs may access each other's memory. The driver was not asked; where it refuses, exchanges go through host memory."
        }
    }
}
