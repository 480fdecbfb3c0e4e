//! The text of a weight-offloading estimate.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::plan::offload::{DepthStep, FORMULAS, Hiding, Offload};

use super::{PlanTable, PlanText, ms, number, percent};
use crate::text::plural;

pub(super) fn text(plan: &Offload) -> PlanText {
    let inputs = &plan.inputs;
    let row = |depth: &DepthStep| {
        let more = if depth.depth == plan.enough_depth { " and more" } else { "" };
        vec![
            format!("{}{more}", depth.depth),
            ms(depth.step_ms),
            ms(depth.exposed_ms),
            bytes(depth.gpu_bytes as u64),
        ]
    };
    // Deeper than what is enough: the same time with more memory.
    let rows =
        plan.depths.iter().filter(|depth| depth.depth <= plan.enough_depth || depth.depth == inputs.depth);
    let mut notes = vec![
        "Assumes the given kernel times. A GPU that copies while it computes is never idle and may lower its clock: on an H200, the same matrix multiplications took 12% longer.".to_owned(),
    ];
    if !inputs.pinned {
        notes.push("Copies from pageable memory block the host: launch a layer before the copies of the layers after it, or nothing overlaps. From pinned memory they are several times faster.".to_owned());
    }
    notes.extend(exchange_note(plan));
    PlanText {
        kind: "offload",
        statement: statement(plan),
        inputs: listed(plan),
        tables: vec![PlanTable::new(
            &["depth", "step", "exposed", "GPU memory for weights"],
            rows.map(row).collect(),
        )],
        notes,
        formulas: FORMULAS,
    }
}

/// What sharing the link with the all-to-all costs, and what to do about it.
fn exchange_note(plan: &Offload) -> Option<String> {
    let spread = plan.spread_ms.filter(|_| plan.all_to_all_slowed_ms > 0.0)?;
    Some(format!(
        "Copies and all-to-all share the link in one direction: the exchanges take {} longer per step. Copies wait for an exchange if their stream waits for its event: then the step takes {}. Another depth moves the same bytes.",
        milliseconds(plan.all_to_all_slowed_ms),
        ms(spread)
    ))
}

/// The inputs.
fn listed(plan: &Offload) -> Vec<(&'static str, String)> {
    let inputs = &plan.inputs;
    let how = inputs.link.source.describe();
    let memory = if inputs.pinned { "pinned" } else { "pageable" };
    let mut listed = vec![
        (
            "layers",
            format!(
                "{} of {}, {} of them copied",
                inputs.layers,
                bytes(inputs.layer_bytes as u64),
                plan.offloaded_layers
            ),
        ),
        ("compute", format!("{} per layer", ms(inputs.compute_ms))),
        (
            "link",
            format!(
                "{} ({how}), {memory} host memory: {:.1} GB/s, {} per copy",
                inputs.link.name,
                plan.copy_gbps,
                milliseconds(plan.copy_ms)
            ),
        ),
        ("depth", inputs.depth.to_string()),
    ];
    if inputs.sharing > 1 {
        listed.push(("shared", format!("by {} ranks", inputs.sharing)));
    }
    if inputs.all_to_all_bytes > 0.0 {
        let over = if plan.all_to_all_shares_link { "the same link" } else { "NVLink" };
        listed.push((
            "all-to-all",
            format!(
                "{} per layer over {over}, before its kernels: {} per step",
                bytes(inputs.all_to_all_bytes as u64),
                milliseconds(plan.all_to_all_ms)
            ),
        ));
    }
    listed
}

fn statement(plan: &Offload) -> String {
    let step = format!("{} per step, compared with {} resident", ms(plan.step_ms), ms(plan.resident_ms));
    let memory = |depth: u32| {
        let found = plan.depths.iter().find(|d| d.depth == depth);
        bytes(found.map_or(0.0, |d| d.gpu_bytes) as u64)
    };
    match plan.hides {
        _ if plan.inputs.depth == 0 && plan.offloaded_layers > 0 => without_prefetch(plan, &step),
        Hiding::NothingToHide => format!("All layers stay on the GPU: {} per step.", ms(plan.step_ms)),
        Hiding::All => format!(
            "Prefetching hides all copies except the first: {step}; depth {} is enough and uses {} of GPU memory.",
            plan.enough_depth,
            memory(plan.enough_depth)
        ),
        Hiding::Partly if plan.short_gbps.high > 0.0 => format!(
            "It depends on the compute time: at the low end of its range {:.1} GB/s of PCIe bandwidth are missing, at the high end prefetching hides the copies; {step}.",
            plan.short_gbps.high
        ),
        Hiding::Partly if plan.spread_ms.is_some_and(|spread| spread.high < plan.step_ms.high) => format!(
            "Copies and all-to-all share the link: {step}, {} more. Let copies wait while an exchange runs: {}.",
            ms(plan.overhead_ms),
            plan.spread_ms.map_or(String::new(), ms)
        ),
        Hiding::Partly if plan.enough_depth <= plan.inputs.depth => {
            format!("Prefetching hides all but {} of the copies: {step}.", ms(plan.overhead_ms))
        }
        Hiding::Partly => format!(
            "Prefetching hides all but {} of the copies: {step}; depth {} would hide more.",
            ms(plan.overhead_ms),
            plan.enough_depth
        ),
        Hiding::Cannot if !plan.inputs.pinned => format!(
            "Prefetching cannot hide copies from pageable memory: host staging is {} GB/s too slow; {step}. Pin the buffers.",
            number(plan.short_gbps)
        ),
        Hiding::Cannot => format!(
            "Not enough PCIe bandwidth to hide the copies: {} GB/s are missing; {step}. Keep {} of the layers on the GPU, or copy fewer bytes.",
            number(plan.short_gbps),
            percent(plan.resident_that_hides)
        ),
    }
}

/// Depth 0: every layer waits for its own copy.
fn without_prefetch(plan: &Offload, step: &str) -> String {
    let enough = plan.depths.iter().find(|depth| depth.depth == plan.enough_depth);
    let better =
        enough.filter(|depth| depth.step_ms.high < plan.step_ms.high).map_or(String::new(), |depth| {
            format!(
                " Prefetching {} ahead gives {}.",
                plural(u64::from(depth.depth), "layer", "layers"),
                ms(depth.step_ms)
            )
        });
    format!("Without prefetching, each layer waits for its copy: {step}.{better}")
}
