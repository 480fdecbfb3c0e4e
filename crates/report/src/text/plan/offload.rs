//! The text of a weight-offloading estimate.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::plan::offload::{FORMULAS, Hiding, Offload};

use super::{PlanTable, PlanText, ms, number, percent};

pub(super) fn text(plan: &Offload) -> PlanText {
    let inputs = &plan.inputs;
    let rows = plan
        .depths
        .iter()
        .map(|depth| {
            vec![
                depth.depth.to_string(),
                milliseconds(depth.step_ms),
                milliseconds(depth.exposed_ms),
                bytes(depth.gpu_bytes as u64),
            ]
        })
        .collect();
    let mut notes = vec![
        "Assumes the given kernel times. A GPU that copies while it computes is never idle and may lower its clock: on an H200, the same matrix multiplications took 12% longer.".to_owned(),
    ];
    if !inputs.pinned {
        notes.push("Copies from pageable memory block the host: launch a layer before the copies of the layers after it, or nothing overlaps. From pinned memory they are several times faster.".to_owned());
    }
    PlanText {
        kind: "offload",
        statement: statement(plan),
        inputs: listed(plan),
        tables: vec![PlanTable { titles: vec!["depth", "step", "exposed", "GPU memory for weights"], rows }],
        notes,
        formulas: FORMULAS,
    }
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
        listed.push((
            "all-to-all",
            format!("{} per layer over the same link", bytes(inputs.all_to_all_bytes as u64)),
        ));
    }
    listed
}

fn statement(plan: &Offload) -> String {
    let step = format!("{} per step, compared with {} resident", ms(plan.step_ms), ms(plan.resident_ms));
    match plan.hides {
        Hiding::NothingToHide => format!("All layers stay on the GPU: {} per step.", ms(plan.step_ms)),
        Hiding::All => format!(
            "Prefetching hides all copies except the first: {step}; depth {} is enough and uses {} of GPU memory.",
            plan.enough_depth,
            bytes(
                plan.depths.iter().find(|d| d.depth == plan.enough_depth).map_or(0.0, |d| d.gpu_bytes) as u64
            )
        ),
        Hiding::Partly if plan.short_gbps.high > 0.0 => format!(
            "It depends on the compute time: at the low end of its range {:.1} GB/s of PCIe bandwidth are missing, at the high end prefetching hides the copies; {step}.",
            plan.short_gbps.high
        ),
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
