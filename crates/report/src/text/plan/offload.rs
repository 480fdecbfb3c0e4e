//! Offloaded weights in words.

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
        "Kernels are taken at the time given. A GPU that copies while it computes never rests and may clock down: measured on an H200, the same products took 12 % longer.".to_owned(),
    ];
    if !inputs.pinned {
        notes.push("Copies from pageable memory hold the host: launch a layer before the copies of those behind it, or nothing overlaps. Pinned, they would be several times faster.".to_owned());
    }
    PlanText {
        kind: "offload",
        statement: statement(plan),
        inputs: listed(plan),
        tables: vec![PlanTable { titles: vec!["depth", "step", "waited", "GPU memory for weights"], rows }],
        notes,
        formulas: FORMULAS,
    }
}

/// What goes in.
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
        ("compute", format!("{} a layer", ms(inputs.compute_ms))),
        (
            "link",
            format!(
                "{} ({how}), {memory} host memory: {:.1} GB/s, {} a copy",
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
            format!("{} a layer over the same link", bytes(inputs.all_to_all_bytes as u64)),
        ));
    }
    listed
}

fn statement(plan: &Offload) -> String {
    let step = format!("{} a step against {} resident", ms(plan.step_ms), ms(plan.resident_ms));
    match plan.hides {
        Hiding::NothingToHide => format!("Everything stays on the GPU: {}.", ms(plan.step_ms)),
        Hiding::All => format!(
            "Prefetch hides it, but for the first copy: {step}; depth {} is enough, and takes {} of GPU memory.",
            plan.enough_depth,
            bytes(
                plan.depths.iter().find(|d| d.depth == plan.enough_depth).map_or(0.0, |d| d.gpu_bytes) as u64
            )
        ),
        Hiding::Partly if plan.short_gbps.high > 0.0 => format!(
            "It depends on compute: at the lower end of the range the bus is short by {:.1} GB/s, at the upper end prefetch hides it; {step}.",
            plan.short_gbps.high
        ),
        Hiding::Partly => format!(
            "Prefetch hides it down to {} more than resident: {step}; depth {} would do better.",
            ms(plan.overhead_ms),
            plan.enough_depth
        ),
        Hiding::Cannot if !plan.inputs.pinned => format!(
            "No prefetch hides copies from pageable memory: the host stages {} GB/s less than that takes; {step}. Pin the buffers.",
            number(plan.short_gbps)
        ),
        Hiding::Cannot => format!(
            "No prefetch hides it: the bus is short by {} GB/s; {step}. Keep {} of the layers on the GPU, or send fewer bytes.",
            number(plan.short_gbps),
            percent(plan.resident_that_hides)
        ),
    }
}
