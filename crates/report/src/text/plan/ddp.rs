//! The text of a data-parallel training estimate.

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_whatif::plan::ddp::{CompressedStep, Ddp, DdpStep, FORMULAS};

use super::{PlanTable, PlanText, cluster, large_node, ms, number, percent};
use crate::text::plural;

pub(super) fn text(plan: &Ddp) -> PlanText {
    let inputs = &plan.inputs;
    let mut rows = vec![
        row(vec!["overlapped with backward".to_owned()], &plan.with_overlap),
        row(vec!["after backward".to_owned()], &plan.without_overlap),
    ];
    let compressed = |one: &CompressedStep| row(vec![format!("compressed {}x", one.times)], &one.step);
    rows.extend(plan.compressed.iter().map(compressed));
    rows.push(row(vec!["naive all-reduce".to_owned()], &plan.naive));
    PlanText {
        kind: "ddp",
        statement: statement(plan),
        inputs: vec![
            ("gradients", bytes(inputs.bytes as u64)),
            ("over", cluster(&inputs.cluster)),
            ("buckets", format!("{} of {}", plan.buckets, bytes(inputs.bucket_bytes as u64))),
            (
                "compute",
                format!(
                    "{} per micro-batch, {:.0}% of it backward",
                    ms(inputs.compute_ms),
                    100.0 * inputs.backward_share
                ),
            ),
            ("accumulation", accumulation(plan)),
            (
                "sync",
                format!("{} for all buckets, independent of the batch size", milliseconds(plan.sync_ms)),
            ),
        ],
        tables: vec![PlanTable::new(&titles(&[""], plan), rows)],
        notes: notes(plan).into_iter().chain(large_node([&inputs.cluster])).collect(),
        formulas: FORMULAS,
    }
}

/// Sizes, ranks and links down.
pub(super) fn matrix(plans: &[Ddp]) -> PlanText {
    let line = |plan: &Ddp| {
        let cluster = &plan.inputs.cluster;
        let head = vec![
            bytes(plan.inputs.bytes as u64),
            cluster.ranks.to_string(),
            cluster.link.name.clone(),
            milliseconds(plan.sync_ms),
        ];
        let mut cells = row(head, &plan.with_overlap);
        // What is exposed follows from the step and its share of compute.
        cells.remove(4);
        cells
    };
    let rate = |plan: &&Ddp| plan.with_overlap.samples_per_second.low;
    let best = plans.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let statement = best.map_or(String::new(), |best| {
        let step = &best.with_overlap;
        format!(
            "Highest throughput of the {} compared: {} of gradients on {} GPUs over {}, {} per step, {} of it compute.",
            plans.len(),
            bytes(best.inputs.bytes as u64),
            best.inputs.cluster.ranks,
            best.inputs.cluster.link.name,
            ms(step.step_ms),
            percent(step.efficiency)
        )
    });
    let mut notes = plans.first().map_or(Vec::new(), notes);
    notes.extend(large_node(plans.iter().map(|plan| &plan.inputs.cluster)));
    let sizes =
        plans.first().is_some_and(|first| plans.iter().any(|plan| plan.inputs.bytes != first.inputs.bytes));
    if sizes {
        notes.push(
            "--compute is that of the first model; that of the others is scaled with their parameters."
                .to_owned(),
        );
    }
    PlanText {
        kind: "ddp",
        statement,
        inputs: plans.first().map_or(Vec::new(), |first| {
            vec![
                ("compute", format!("{} per micro-batch", ms(first.inputs.compute_ms))),
                ("accumulation", accumulation(first)),
            ]
        }),
        tables: plans.first().map_or(Vec::new(), |first| {
            let mut titles = titles(&["gradients", "GPUs", "link", "sync"], first);
            titles.remove(4);
            vec![PlanTable::new(&titles, plans.iter().map(line).collect()), other_ways(plans, first)]
        }),
        notes,
        formulas: FORMULAS,
    }
}

/// The steps of each with other ways to synchronize.
fn other_ways(plans: &[Ddp], first: &Ddp) -> PlanTable {
    let compressed: Vec<String> =
        first.compressed.iter().map(|one| format!("compressed {}x", one.times)).collect();
    let head = ["gradients", "GPUs", "step over", "after backward"];
    let titles: Vec<&str> =
        head.into_iter().chain(compressed.iter().map(String::as_str)).chain(["naive all-reduce"]).collect();
    let row = |plan: &Ddp| {
        let cluster = &plan.inputs.cluster;
        let head = [bytes(plan.inputs.bytes as u64), cluster.ranks.to_string(), cluster.link.name.clone()];
        let steps = std::iter::once(&plan.without_overlap)
            .chain(plan.compressed.iter().map(|one| &one.step))
            .chain([&plan.naive]);
        head.into_iter().chain(steps.map(|step| ms(step.step_ms))).collect()
    };
    PlanTable::new(&titles, plans.iter().map(row).collect())
}

fn titles<'a>(head: &[&'a str], plan: &Ddp) -> Vec<&'a str> {
    let rate = if plan.inputs.tokens_per_sample.is_some() { "tokens/s" } else { "samples/s" };
    [head, &["exposed", "step", "compute", rate, "all steps"]].concat()
}

fn row(head: Vec<String>, step: &DdpStep) -> Vec<String> {
    let figures = [
        ms(step.exposed_ms),
        ms(step.step_ms),
        percent(step.efficiency),
        number(step.tokens_per_second.unwrap_or(step.samples_per_second)),
        format!("{} h", number(step.hours_for_all_steps)),
    ];
    head.into_iter().chain(figures).collect()
}

fn accumulation(plan: &Ddp) -> String {
    let inputs = &plan.inputs;
    let each = plural(inputs.samples.round() as u64, "sample", "samples");
    let tokens =
        inputs.tokens_per_sample.map_or(String::new(), |tokens| format!(" of {} tokens", count(tokens)));
    format!(
        "{} per step, each of {each}{tokens} per rank; {} steps",
        plural(u64::from(inputs.accumulation), "micro-batch", "micro-batches"),
        count(inputs.steps)
    )
}

fn notes(plan: &Ddp) -> Vec<String> {
    let mut notes = Vec::new();
    if !plan.compressed.is_empty() {
        notes.push("Compressed gradients: 2x is fp32 sent as bf16 (bf16_compress_hook); more needs PowerSGD or top-k, which change convergence. The time to compress is not included.".to_owned());
    }
    notes
}

fn statement(plan: &Ddp) -> String {
    let inputs = &plan.inputs;
    format!(
        "Gradient synchronization exposes {} of each {} step: {} of the step is compute. {}",
        ms(plan.with_overlap.exposed_ms),
        ms(plan.with_overlap.step_ms),
        percent(plan.with_overlap.efficiency),
        if plan.smallest_accumulation <= u64::from(inputs.accumulation) {
            format!("The target of {:.0}% is met.", 100.0 * inputs.wanted_efficiency)
        } else {
            format!(
                "The target of {:.0}% needs {} micro-batches per step.",
                100.0 * inputs.wanted_efficiency,
                plan.smallest_accumulation
            )
        }
    )
}
