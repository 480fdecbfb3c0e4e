//! The text of what frees memory, cheapest first.

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{MEMORY_FORMULAS, Measure, MemoryPlan, Relief};

use super::{PlanTable, PlanText};
use crate::text::plural;

pub(super) fn text(plan: &MemoryPlan) -> PlanText {
    let inputs = &plan.inputs;
    let gpus = plural(u64::from(inputs.cluster.ranks), "GPU", "GPUs");
    let mut tables = vec![table("alone", &plan.alone)];
    if !plan.steps.is_empty() {
        tables.push(table("in this order", &plan.steps));
    }
    PlanText {
        kind: "memory",
        statement: statement(plan),
        inputs: vec![
            (
                "model",
                format!(
                    "{:.2} billion parameters, planned as {} layers of {} ({:.2} billion)",
                    plan.parameters / 1e9,
                    inputs.layers,
                    inputs.hidden,
                    plan.planned_parameters / 1e9
                ),
            ),
            (
                "training",
                format!("{} sequences of {} tokens per step on {}", inputs.batch, inputs.sequence, gpus),
            ),
            ("GPU", format!("{}, {:.0} GB; between GPUs {}", inputs.gpu, inputs.gpu_gb, inputs.cluster.link.name)),
            ("to the host", format!("{}, {:.1} GB/s while all ranks copy", plan.host_link, plan.host_gbps)),
            ("needs", needs(plan)),
        ],
        tables,
        notes: vec![
            "The model counts bytes and arithmetic: use it for the order, not as a step time. More micro-batches cost no time here, but small ones use the GPU worse.".to_owned(),
            "For out-of-memory errors of a run: take the first rows that free what is missing. Fragmentation is another cause: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.".to_owned(),
        ],
        formulas: MEMORY_FORMULAS,
    }
}

fn needs(plan: &MemoryPlan) -> String {
    let memory = plan.plain.memory;
    format!(
        "{:.1} GB per GPU: weights {:.1}, gradients {:.1}, optimizer {:.1}, activations {:.1}",
        plan.plain.memory_gb,
        memory.weights_gb,
        memory.gradients_gb,
        memory.optimizer_gb,
        memory.activations_gb
    )
}

fn statement(plan: &MemoryPlan) -> String {
    let gpu_gb = plan.inputs.gpu_gb;
    let need = plan.plain.memory_gb;
    let Some(last) = plan.steps.last() else {
        return format!("It fits: {need:.1} of {gpu_gb:.0} GB, {:.1} GB are free.", gpu_gb - need);
    };
    // 2 micro-batches, then 4: the last one says it.
    let is_last =
        |at: usize| plan.steps[at + 1..].iter().all(|later| later.measure != plan.steps[at].measure);
    let done: Vec<String> =
        (0..plan.steps.len()).filter(|&at| is_last(at)).map(|at| words(&plan.steps[at])).collect();
    let list = done.join(", ");
    let slower = last.step_ms / plan.plain.step_ms;
    if plan.fits {
        format!(
            "It does not fit ({need:.1} of {gpu_gb:.0} GB), but it does with, in this order: {list}. That is {:.1} GB, and a step of {} instead of {} ({slower:.2}x).",
            last.memory_gb,
            milliseconds(last.step_ms),
            milliseconds(plan.plain.step_ms)
        )
    } else {
        format!(
            "It does not fit ({need:.1} of {gpu_gb:.0} GB), and nothing that was tried is enough: {list} leave {:.1} GB. Use more GPUs, or a GPU with more memory (`busbound plan parallel`).",
            last.memory_gb
        )
    }
}

/// What to do.
fn words(relief: &Relief) -> String {
    let to = relief.to.unwrap_or_default();
    match relief.measure {
        Measure::MoreMicrobatches => format!("{to} micro-batches"),
        Measure::Recompute => "recompute activations".to_owned(),
        Measure::Shard if to == 3 => "shard weights too (FSDP)".to_owned(),
        Measure::Shard => format!("shard with ZeRO-{to}"),
        Measure::OffloadOptimizer => "optimizer in host memory".to_owned(),
        Measure::OffloadActivations => "activations in host memory".to_owned(),
        Measure::OffloadWeights => "weights in host memory".to_owned(),
    }
}

/// Less than a microsecond is nothing.
fn cost(relief: &Relief) -> String {
    if relief.costs_ms < 1e-3 { "+0 ms".to_owned() } else { format!("+{}", milliseconds(relief.costs_ms)) }
}

fn table(title: &str, reliefs: &[Relief]) -> PlanTable {
    let row = |relief: &Relief| {
        vec![
            words(relief),
            format!("{:.1}", relief.frees_gb),
            if relief.host_gb > 0.0 { format!("{:.1}", relief.host_gb) } else { "–".to_owned() },
            cost(relief),
            format!("{:.1}", relief.ms_per_gb()),
            format!("{:.1}", relief.memory_gb),
        ]
    };
    let titles = [title, "frees GB", "GB to host and back", "step", "ms per GB", "needs GB then"];
    PlanTable::new(&titles, reliefs.iter().map(row).collect())
}
