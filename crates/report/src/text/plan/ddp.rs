//! The text of a data-parallel training estimate.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::plan::ddp::{Ddp, DdpStep, FORMULAS};

use super::{PlanTable, PlanText, cluster, ms, number, percent};
use crate::text::plural;

pub(super) fn text(plan: &Ddp) -> PlanText {
    let inputs = &plan.inputs;
    let row = |what: &str, step: &DdpStep| {
        let hours = step.hours_for_all_steps;
        vec![
            what.to_owned(),
            ms(step.exposed_ms),
            ms(step.step_ms),
            percent(step.efficiency),
            number(step.samples_per_second),
            format!("{} h", number(hours)),
        ]
    };
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
            (
                "accumulation",
                format!(
                    "{} per step, each of {} per rank",
                    plural(u64::from(inputs.accumulation), "micro-batch", "micro-batches"),
                    plural(inputs.samples.round() as u64, "sample", "samples")
                ),
            ),
            (
                "sync",
                format!("{} for all buckets, independent of the batch size", milliseconds(plan.sync_ms)),
            ),
        ],
        tables: vec![PlanTable {
            titles: vec!["", "exposed", "step", "efficiency", "samples/s", "all steps"],
            rows: vec![
                row("overlapped with backward", &plan.with_overlap),
                row("after backward", &plan.without_overlap),
            ],
        }],
        notes: Vec::new(),
        formulas: FORMULAS,
    }
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
