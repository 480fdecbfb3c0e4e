//! The text of a comparison of parallelism layouts.

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{Handoff, ParallelAnswer};
use busbound_whatif::plan::parallel::{
    Arrangement, FORMULAS, Nearest, Parallel, ParallelInputs, Remedy, Workload,
};

use super::{PlanTable, PlanText, cluster, large_node};
use crate::text::plural;

/// Layouts in the table.
const ROWS: usize = 12;

pub(super) fn text(answer: &ParallelAnswer) -> PlanText {
    let plan = &answer.plan;
    let inputs = &plan.inputs;
    let first = plan.ranked.first();
    // If nothing fits, those that come closest.
    let mut shown: Vec<&Arrangement> = plan.ranked.iter().collect();
    if plan.nearest.is_some() {
        shown.sort_by(|a, b| a.memory_gb.total_cmp(&b.memory_gb));
    }
    // The one whose pipeline is described below the table has a row in it.
    let described =
        |layout: &Arrangement| answer.handoff.as_ref().is_some_and(|handoff| handoff.layout == layout.name);
    let rows = shown.into_iter().enumerate().filter(|(place, layout)| *place < ROWS || described(layout));
    let rows = rows.map(|(_, layout)| row(inputs, layout)).collect();
    let titles: &[&str] = if is_training(inputs) {
        &["ranks", "step", "tokens/s", "compute", "micro batches", "memory", "largest loss"]
    } else {
        &["ranks", "step", "tokens/s", "compute", "sent per GPU", "memory", "largest loss"]
    };
    let mut listed = listed(plan);
    let best = plan.nearest.as_ref().map(|nearest| &nearest.layout).or(first);
    listed.extend(best.map(|layout| ("memory", memory(layout))));
    let mut tables = vec![PlanTable::new(titles, rows)];
    tables.extend(answer.handoff.as_ref().map(handoff));
    PlanText {
        kind: "parallel",
        statement: statement(plan),
        inputs: listed,
        tables,
        notes: std::iter::once(format!(
            "{} compared, each with its best sharding, recomputation (R) and micro-batches. The model counts bytes: use it to rank layouts, not to predict step times. --format json lists every exchange.",
            plural(plan.ranked.len() as u64, "layout", "layouts")
        ))
        .chain(large_node([&inputs.cluster]))
        .collect(),
        formulas: FORMULAS,
    }
}

/// The ways from one pipeline stage to the next.
fn handoff(handoff: &Handoff) -> PlanTable {
    let row = |name: String, ms: f64, exposed: f64| {
        vec![name, bytes(handoff.bytes as u64), milliseconds(ms), milliseconds(exposed)]
    };
    let Handoff { host_link, host_gbps, .. } = handoff;
    let title = format!("activations between stages, {}", handoff.layout);
    let titles = [title.as_str(), "per step", "time", "exposed"];
    let serial = handoff.host_serial_ms / f64::from(handoff.microbatches);
    PlanTable::new(
        &titles,
        vec![
            row(format!("P2P, {}", handoff.over), handoff.peer_ms, handoff.peer_exposed_ms),
            row(
                format!("through the host in chunks, {host_link}, {host_gbps:.1} GB/s"),
                handoff.host_ms,
                handoff.host_exposed_ms,
            ),
            row("through the host, one copy after the other".to_owned(), handoff.host_serial_ms, serial),
        ],
    )
}

fn is_training(inputs: &ParallelInputs) -> bool {
    inputs.workload == Workload::Train
}

fn row(inputs: &ParallelInputs, layout: &Arrangement) -> Vec<String> {
    let mut row = vec![
        layout.name.clone(),
        milliseconds(layout.step_ms),
        count(layout.tokens_per_second.round() as u64),
        format!("{:.0}%", 100.0 * layout.efficiency),
    ];
    row.push(if is_training(inputs) {
        format!("{}{}", layout.microbatches, if layout.recompute { " R" } else { "" })
    } else {
        bytes(layout.exchanges.iter().map(|exchange| exchange.bytes).sum::<f64>() as u64)
    });
    row.extend([
        format!("{:.0} GB", layout.memory_gb),
        layout.loses_to.clone().unwrap_or_else(|| "–".to_owned()),
    ]);
    row
}

fn listed(plan: &Parallel) -> Vec<(&'static str, String)> {
    let inputs = &plan.inputs;
    let experts = match inputs.experts {
        1 => String::new(),
        experts => format!(", {experts} experts, {} active", inputs.active_experts),
    };
    vec![
        (
            "model",
            format!(
                "{} layers of {}, {} heads{experts}: {:.2} billion parameters",
                inputs.layers,
                inputs.hidden,
                inputs.heads,
                plan.parameters / 1e9
            ),
        ),
        ("workload", workload(inputs)),
        ("over", cluster(&inputs.cluster)),
        (
            "GPU",
            format!(
                "{}: {:.0} TFLOP/s at {:.0}%, {:.0} GB",
                inputs.gpu,
                inputs.tflops,
                100.0 * inputs.utilization,
                inputs.gpu_gb
            ),
        ),
    ]
}

fn workload(inputs: &ParallelInputs) -> String {
    let (batch, tokens) = (inputs.batch, inputs.sequence);
    match inputs.workload {
        Workload::Train => format!("training, {batch} sequences of {tokens} tokens per step"),
        Workload::Prefill => format!("prefill, {batch} prompts of {tokens} tokens"),
        Workload::Decode => format!("decoding, {batch} sequences with {tokens} tokens in the KV cache"),
        Workload::Diffusion => format!("diffusion, {batch} samples of {tokens} tokens"),
    }
}

/// What the memory of each GPU holds.
fn memory(layout: &Arrangement) -> String {
    let memory = layout.memory;
    let parts = [
        ("weights", memory.weights_gb),
        ("gradients", memory.gradients_gb),
        ("optimizer", memory.optimizer_gb),
        ("activations", memory.activations_gb),
        ("KV cache", memory.kv_cache_gb),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(_, gb)| *gb > 0.0).map(|(what, gb)| format!("{what} {gb:.1}")).collect();
    format!("{} GB on each GPU with {}", parts.join(", "), layout.name)
}

fn statement(plan: &Parallel) -> String {
    if let Some(nearest) = &plan.nearest {
        return nothing_fits(plan, nearest);
    }
    let Some(best) = plan.ranked.first() else { return String::new() };
    let second = plan.ranked.get(1).filter(|second| second.fits);
    let against = second.map_or(String::new(), |second| {
        let why = second.loses_to.as_ref().map_or(String::new(), |why| format!(" (largest loss: {why})"));
        format!("; next: {}, {}{why}", second.name, count(second.tokens_per_second.round() as u64))
    });
    let tokens = count(best.tokens_per_second.round() as u64);
    format!("Fastest that fits: {}{}, {tokens} tokens/s{against}.", best.name, choices(best, &plan.inputs))
}

/// ` with 16 micro-batches and recomputation`.
fn choices(layout: &Arrangement, inputs: &ParallelInputs) -> String {
    if !is_training(inputs) {
        return String::new();
    }
    let microbatches = plural(u64::from(layout.microbatches), "micro-batch", "micro-batches");
    let recompute = if layout.recompute { " and recomputation" } else { "" };
    format!(" with {microbatches}{recompute}")
}

fn nothing_fits(plan: &Parallel, nearest: &Nearest) -> String {
    let remedies: Vec<String> = nearest.remedies.iter().map(remedy).collect();
    let help = match remedies.as_slice() {
        [] => String::new(),
        some => format!(" It fits with {}.", some.join("; or with ")),
    };
    format!(
        "Nothing fits: the closest layout, {}{}, needs {:.0} GB per GPU, {:.0} GB more than the {:.0} GB of {}.{help}",
        nearest.layout.name,
        choices(&nearest.layout, &plan.inputs),
        nearest.layout.memory_gb,
        nearest.missing_gb.ceil(),
        plan.inputs.gpu_gb,
        plan.inputs.gpu,
    )
}

fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Search { layout, microbatches, recompute } => {
            let recompute = if *recompute { " and recomputation" } else { "" };
            format!(
                "{layout}, {}{recompute}",
                plural(u64::from(*microbatches), "micro-batch", "micro-batches")
            )
        }
        Remedy::OffloadOptimizer { layout, host_gb_per_gpu } => {
            format!("the optimizer in host memory ({host_gb_per_gpu:.0} GB per GPU, {layout})")
        }
        Remedy::MoreGpus { ranks, layout } => format!("{ranks} GPUs ({layout}, batch scaled)"),
        Remedy::LargerGpu { gpu, gpu_gb, layout } => format!("{gpu} ({gpu_gb:.0} GB, {layout})"),
    }
}
