//! The text of an all-reduce estimate.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::plan::allreduce::{Algorithm, AllReduce, FORMULAS, Way as Estimate};

use super::{PlanTable, PlanText, cluster};

pub(super) fn text(links: &[AllReduce]) -> PlanText {
    let rows = links.iter().map(row).collect();
    let titles = vec!["link", "peak GB/s", "NCCL GB/s", "at peak", "ring", "tree", "busbw GB/s"];
    let first = links.first();
    PlanText {
        kind: "allreduce",
        statement: first.map_or(String::new(), |plan| statement(plan, links)),
        inputs: first.map_or(Vec::new(), |plan| {
            vec![("reduced", bytes(plan.bytes as u64)), ("over", cluster(&plan.cluster))]
        }),
        tables: vec![PlanTable { titles, rows }],
        notes: vec![
            "Rates are per direction. NCCL GB/s is the bandwidth that NCCL's own model uses. That model has no contention: other traffic on the link adds to these times.".to_owned(),
        ],
        formulas: FORMULAS,
    }
}

fn statement(plan: &AllReduce, links: &[AllReduce]) -> String {
    let best = plan.best();
    let mut text = format!(
        "All-reduce of {} on {} GPUs: {} ({}, {}), {:.1} GB sent per GPU; the minimum over {} is {}.",
        bytes(plan.bytes as u64),
        plan.cluster.ranks,
        milliseconds(best.ms),
        name(best.algorithm),
        best.protocol.name(),
        plan.bytes_per_gpu / 1e9,
        plan.cluster.link.name,
        milliseconds(plan.at_peak_ms)
    );
    if let Some(fastest) =
        links.iter().min_by(|a, b| a.best().ms.total_cmp(&b.best().ms)).filter(|_| links.len() > 1)
    {
        text.push_str(&format!(
            " Fastest of the {} compared: {}, {}.",
            links.len(),
            fastest.cluster.link.name,
            milliseconds(fastest.best().ms)
        ));
    }
    text
}

fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Ring => "ring",
        Algorithm::Tree => "tree",
    }
}

fn row(plan: &AllReduce) -> Vec<String> {
    let time = |estimate: &Estimate| format!("{} ({})", milliseconds(estimate.ms), estimate.protocol.name());
    vec![
        plan.cluster.link.name.clone(),
        format!("{:.1}", plan.peak_gbps),
        format!("{:.1}", plan.planned_gbps),
        milliseconds(plan.at_peak_ms),
        time(&plan.ring),
        time(&plan.tree),
        format!("{:.1}", plan.best().busbw_gbps),
    ]
}
