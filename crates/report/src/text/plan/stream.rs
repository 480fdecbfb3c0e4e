//! The text of how a GPU's memory is shared out among layers that are streamed.

use busbound_diagnosis::quantity::{bytes, milliseconds, milliseconds_range};
use busbound_whatif::plan::stream::{FORMULAS, Placed, Placement, Stream, StreamBound};

use super::{PlanTable, PlanText, ms};

/// More resident layers than this are not listed: the JSON has them.
const LISTED_LAYERS: usize = 16;

pub(super) fn text(plan: &Placement) -> PlanText {
    let mut notes: Vec<String> = plan.models.iter().filter_map(resident_layers).collect();
    notes.extend(plan.models.iter().filter_map(more_memory));
    notes.push(
        "`busbound.offload(model, gpu_memory=…)` plans in the same way, from measured compute times, and streams the layers."
            .to_owned(),
    );
    PlanText {
        kind: "stream",
        statement: statement(plan),
        inputs: inputs(plan),
        tables: vec![table(plan)],
        notes,
        formulas: FORMULAS,
    }
}

fn statement(plan: &Placement) -> String {
    let [one] = plan.models.as_slice() else { return statement_of_several(plan) };
    let pass = milliseconds(one.plan.expected_ms);
    let (layers, resident) = (one.model.layers, resident(&one.plan));
    if one.plan.streamed_bytes == 0 {
        return format!(
            "All {layers} layers fit: they need {} of {}, and nothing is copied; {pass} per pass.",
            bytes(one.plan.used_bytes),
            bytes(one.gpu_bytes)
        );
    }
    let range = milliseconds_range(one.plan.step_ms.low, one.plan.step_ms.high);
    let pass = format!("{pass} per pass ({range})");
    let what =
        format!("Keep {resident} of {layers} layers on the GPU and stream {}", layers as usize - resident);
    match one.plan.bound {
        StreamBound::Bus => format!(
            "{what}: {pass}, limited by PCIe copies; compute alone takes {}.",
            milliseconds(one.plan.compute_ms)
        ),
        _ => format!("{what}: {pass}, limited by compute, which hides the copies."),
    }
}

fn statement_of_several(plan: &Placement) -> String {
    let share = |one: &Placed| format!("{} to {}", bytes(own(plan, one.plan.used_bytes)), name(one));
    let shares: Vec<String> = plan.models.iter().map(share).collect();
    let all = match plan.inputs.outside_bytes {
        0 => String::new(),
        outside => format!(" and keep {} for all of them", bytes(outside)),
    };
    format!(
        "Give {}{all}: all passes take {} ({}).",
        shares.join(", "),
        milliseconds(plan.expected_ms),
        milliseconds_range(plan.total_ms.low, plan.total_ms.high)
    )
}

/// Without what several models use in turns.
fn own(plan: &Placement, bytes: u64) -> u64 {
    if plan.models.len() > 1 { bytes.saturating_sub(plan.inputs.outside_bytes) } else { bytes }
}

fn inputs(plan: &Placement) -> Vec<(&'static str, String)> {
    let inputs = &plan.inputs;
    let mut listed: Vec<(&'static str, String)> = plan
        .models
        .iter()
        .map(|one| {
            let model = &one.model;
            let layers =
                format!("{} of {}, {} each", model.layers, bytes(model.layer_bytes), ms(model.compute_ms));
            match &model.name {
                Some(name) => ("layers", format!("{name}: {layers}")),
                None => ("layers", layers),
            }
        })
        .collect();
    let source = inputs.link.source.describe();
    let copied = plan.models.iter().map(|one| one.plan.copy_gbps).find(|gbps| *gbps > 0.0);
    let rate = copied.map_or(String::new(), |gbps| format!(": {gbps:.1} GB/s"));
    listed.push(("link", format!("{} ({source}), pinned host memory{rate}", inputs.link.name)));
    if inputs.sharing > 1 {
        listed.push(("shared", format!("by {} ranks", inputs.sharing)));
    }
    let outside = match inputs.outside_bytes {
        0 => "for layers and ring; weights outside of the layers and activations come on top (--outside)"
            .to_owned(),
        outside => format!("with {} for weights outside of the layers and activations", bytes(outside)),
    };
    listed.push(("GPU memory", format!("{}, {outside}", bytes(inputs.gpu_bytes))));
    listed
}

fn table(plan: &Placement) -> PlanTable {
    let row = |one: &Placed| {
        let bound = match one.plan.bound {
            StreamBound::Bus => "PCIe copies",
            StreamBound::Compute => "compute",
            StreamBound::Host => "launches",
            StreamBound::Updates => "CPU updates",
        };
        vec![
            name(one).to_owned(),
            format!("{}", one.model.uses),
            bytes(own(plan, one.plan.used_bytes)),
            format!("{} of {}", resident(&one.plan), one.model.layers),
            one.plan.slots.to_string(),
            ms(one.plan.step_ms),
            milliseconds(one.plan.limit_ms),
            bound.to_owned(),
        ]
    };
    let titles = ["model", "passes", "GPU memory", "resident", "slots", "per pass", "limit", "limited by"];
    let rows: Vec<Vec<String>> = plan.models.iter().map(row).collect();
    if plan.models.len() > 1 {
        return PlanTable::new(&titles, rows);
    }
    // A single model has no name, and its passes are not compared.
    PlanTable::new(&titles[2..], rows.into_iter().map(|row| row[2..].to_vec()).collect())
}

/// Which layers stay, if they are few.
fn resident_layers(one: &Placed) -> Option<String> {
    let stays: Vec<String> = (0..one.plan.resident.len())
        .filter(|&layer| one.plan.resident[layer])
        .map(|layer| layer.to_string())
        .collect();
    let is_listed = !stays.is_empty() && one.plan.streamed_bytes > 0 && stays.len() <= LISTED_LAYERS;
    is_listed
        .then(|| format!("{}: layers {}, counted from 0.", subject("Resident", "of", one), stays.join(", ")))
}

/// What more memory would give.
fn more_memory(one: &Placed) -> Option<String> {
    let faster = one.plan.one_gb_more_ms.filter(|ms| *ms < 0.995 * one.plan.expected_ms)?;
    let hides = one
        .plan
        .hides_all_bytes
        .map_or(String::new(), |enough| format!("; with {} compute hides all copies", bytes(enough)));
    Some(format!("{}: {} per pass{hides}.", subject("1 GB more", "for", one), milliseconds(faster)))
}

/// `Resident`, or `Resident of denoiser`.
fn subject(what: &str, joined_by: &str, one: &Placed) -> String {
    one.model.name.as_ref().map_or(what.to_owned(), |name| format!("{what} {joined_by} {name}"))
}

fn name(one: &Placed) -> &str {
    one.model.name.as_deref().unwrap_or("model")
}

fn resident(plan: &Stream) -> usize {
    plan.resident.iter().filter(|stays| **stays).count()
}
