//! The text of an all-reduce estimate.

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_whatif::plan::allreduce::{Algorithm, AllReduce, FORMULAS, Way as Estimate};

use super::{PlanTable, PlanText, cluster, large_node};

pub(super) fn text(plans: &[AllReduce]) -> PlanText {
    let Some(first) = plans.first() else { return empty() };
    let same = |plan: &AllReduce| plan.bytes == first.bytes && plan.cluster.ranks == first.cluster.ranks;
    let is_matrix = !plans.iter().all(same);
    let mut inputs = Vec::new();
    if !is_matrix {
        inputs.push(("reduced", bytes(first.bytes as u64)));
        inputs.push(("over", cluster(&first.cluster)));
        inputs.extend(first.bisection_gbps.map(|gbps| ("fabric", fabric(gbps))));
    }
    PlanText {
        kind: "allreduce",
        statement: statement(first, plans),
        inputs,
        tables: if is_matrix { vec![matrix(plans, BEST), matrix(plans, NAIVE)] } else { vec![links(plans)] },
        notes: notes(plans),
        formulas: FORMULAS,
    }
}

fn empty() -> PlanText {
    PlanText {
        kind: "allreduce",
        statement: String::new(),
        inputs: Vec::new(),
        tables: Vec::new(),
        notes: Vec::new(),
        formulas: FORMULAS,
    }
}

pub(crate) fn fabric(gbps: f64) -> String {
    format!("NVSwitch: {} GB/s per direction between two halves of a node's GPUs", count(gbps.round() as u64))
}

fn statement(plan: &AllReduce, plans: &[AllReduce]) -> String {
    let best = plan.best();
    let mut text = format!(
        "All-reduce of {} on {} GPUs: {} ({}, {:.0} GB/s busbw), limited by {}.",
        bytes(plan.bytes as u64),
        plan.cluster.ranks,
        milliseconds(best.ms),
        way(best),
        best.busbw_gbps,
        plan.limited_by,
    );
    if best.algorithm == Algorithm::Ring {
        text.push_str(&format!(
            " Each GPU sends {}; at line rate that takes {}.",
            bytes(plan.bytes_per_gpu as u64),
            milliseconds(plan.at_peak_ms)
        ));
    } else {
        text.push_str(&format!(" A ring takes {}.", milliseconds(plan.ring.ms)));
    }
    let same = |other: &&AllReduce| other.bytes == plan.bytes && other.cluster.ranks == plan.cluster.ranks;
    let compared: Vec<&AllReduce> = plans.iter().filter(same).collect();
    if let Some(fastest) = compared.iter().min_by(|a, b| a.best().ms.total_cmp(&b.best().ms))
        && compared.len() > 1
    {
        text.push_str(&format!(
            " Fastest of the {} compared: {}, {}.",
            compared.len(),
            fastest.cluster.link.name,
            milliseconds(fastest.best().ms)
        ));
    }
    text
}

/// `ring, Simple`; NVLS has one protocol.
fn way(estimate: &Estimate) -> String {
    match estimate.algorithm {
        Algorithm::Nvls => estimate.algorithm.name().to_owned(),
        other => format!("{}, {}", other.name(), estimate.protocol.name()),
    }
}

/// One row per link; with several nodes by what limits them.
fn links(plans: &[AllReduce]) -> PlanTable {
    let several_nodes = plans.iter().any(|plan| plan.hierarchical.is_some());
    let has_nvls = plans.iter().any(|plan| plan.nvls.is_some());
    let time = |estimate: Option<&Estimate>| estimate.map_or("–".to_owned(), |way| milliseconds(way.ms));
    let row = |plan: &AllReduce| {
        let name = if several_nodes { plan.limited_by.clone() } else { plan.cluster.link.name.clone() };
        let all = [
            (true, if several_nodes { "limited by" } else { "link" }, name),
            (!several_nodes, "peak GB/s", format!("{:.1}", plan.peak_gbps)),
            (true, "NCCL GB/s", format!("{:.1}", plan.planned_gbps)),
            (true, "ring at peak", milliseconds(plan.at_peak_ms)),
            (true, "ring", time(Some(&plan.ring))),
            (true, "tree", time(Some(&plan.tree))),
            (has_nvls, "NVLS", time(plan.nvls.as_ref())),
            (several_nodes, "hierarchical", time(plan.hierarchical.as_ref())),
            (!several_nodes, "naive", time(Some(&plan.naive))),
            (true, "busbw GB/s", format!("{:.1}", plan.best().busbw_gbps)),
        ];
        all.into_iter().filter(|(is_shown, ..)| *is_shown).map(|(_, title, cell)| (title, cell)).collect()
    };
    let rows: Vec<Vec<(&str, String)>> = plans.iter().map(row).collect();
    let titles: Vec<&str> =
        rows.first().map_or(Vec::new(), |row| row.iter().map(|(title, _)| *title).collect());
    let cells = rows.into_iter().map(|row| row.into_iter().map(|(_, cell)| cell).collect()).collect();
    PlanTable::new(&titles, cells)
}

/// One way of each, and the title of its table.
type Shown = (&'static str, fn(&AllReduce) -> &Estimate);
const BEST: Shown = ("reduced", AllReduce::best);
const NAIVE: Shown = ("reduced, naive", |plan| &plan.naive);

/// Sizes and ranks down, links across: one way of each.
fn matrix(plans: &[AllReduce], (title, way): Shown) -> PlanTable {
    let mut links: Vec<&str> = Vec::new();
    let mut lines: Vec<(f64, u32)> = Vec::new();
    for plan in plans {
        if !links.contains(&plan.cluster.link.name.as_str()) {
            links.push(&plan.cluster.link.name);
        }
        if !lines.contains(&(plan.bytes, plan.cluster.ranks)) {
            lines.push((plan.bytes, plan.cluster.ranks));
        }
    }
    let cell = |line: &(f64, u32), link: &str| {
        let found = plans
            .iter()
            .find(|plan| (plan.bytes, plan.cluster.ranks) == *line && plan.cluster.link.name == link);
        found.map_or("–".to_owned(), |plan| milliseconds(way(plan).ms))
    };
    let row = |line: &(f64, u32)| {
        let head = [bytes(line.0 as u64), line.1.to_string()];
        head.into_iter().chain(links.iter().map(|link| cell(line, link))).collect()
    };
    let rows = lines.iter().map(row).collect();
    PlanTable::new(&[&[title, "GPUs"], links.as_slice()].concat(), rows)
}

fn notes(plans: &[AllReduce]) -> Vec<String> {
    let mut notes = vec![
        "Rates are per direction. NCCL GB/s is the bandwidth that NCCL's own model uses. That model has no contention: other traffic on the link adds to these times.".to_owned(),
    ];
    if plans.iter().any(|plan| plan.nvls.is_some()) {
        notes.push("NVLS assumes NVSwitches that reduce, as in HGX and DGX machines of this generation; --no-nvls plans without them. nccl-tests on 8 × H100 reach 475–480 GB/s busbw with NVLS and 360–370 without.".to_owned());
    }
    if plans.iter().any(|plan| plan.cluster.nodes > 1) {
        notes.push("Results over several nodes are often 10–20% lower: 8 × H100 with 8 ports of 400 Gb/s reached 430 GB/s busbw on 2 nodes and 320 on 4 (nccl#1221).".to_owned());
    }
    notes.extend(large_node(plans.iter().map(|plan| &plan.cluster)));
    notes
}
