//! The text of a comparison of parallelism layouts.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::plan::parallel::{Arrangement, FORMULAS, Parallel};

use super::{PlanTable, PlanText, cluster};

/// Layouts in the table.
const ROWS: usize = 12;

pub(super) fn text(plan: &Parallel) -> PlanText {
    let inputs = &plan.inputs;
    let row = |a: &Arrangement| {
        let sent: f64 = a.exchanges.iter().map(|exchange| exchange.bytes).sum();
        vec![
            a.name.clone(),
            milliseconds(a.step_ms),
            format!("{:.1}", a.sequences_per_second),
            format!("{:.0}%", 100.0 * a.efficiency),
            bytes(sent as u64),
            format!("{:.0} GB{}", a.memory_gb, if a.fits { "" } else { " (too much)" }),
            a.loses_to.clone().unwrap_or_else(|| "–".to_owned()),
        ]
    };
    let titles = vec!["ranks", "step", "seq/s", "compute", "sent per GPU", "memory", "largest loss"];
    PlanText {
        kind: "parallel",
        statement: statement(plan),
        inputs: vec![
            (
                "model",
                format!(
                    "{} layers of {}, {} heads: {:.2} billion parameters",
                    inputs.layers,
                    inputs.hidden,
                    inputs.heads,
                    plan.parameters / 1e9
                ),
            ),
            (
                "batch",
                format!(
                    "{} sequences of {} tokens, {} micro-batches",
                    inputs.batch, inputs.sequence, inputs.microbatches
                ),
            ),
            ("over", cluster(&inputs.cluster)),
            (
                "GPU",
                format!(
                    "{:.0} TFLOP/s at {:.0}%, {:.0} GB",
                    inputs.tflops,
                    100.0 * inputs.utilization,
                    inputs.gpu_gb
                ),
            ),
        ],
        tables: vec![PlanTable { titles, rows: plan.ranked.iter().take(ROWS).map(row).collect() }],
        notes: vec![format!(
            "{} layouts compared. The model counts bytes: use it to rank layouts, not to predict step times. --format json lists every exchange.",
            plan.ranked.len()
        )],
        formulas: FORMULAS,
    }
}

fn statement(plan: &Parallel) -> String {
    let Some(best) = plan.ranked.first() else { return String::new() };
    if !best.fits {
        return format!(
            "Nothing fits: the smallest layout needs {:.0} GB per GPU ({}), and each GPU has {:.0}.",
            plan.ranked.iter().map(|a| a.memory_gb).fold(f64::INFINITY, f64::min),
            best.name,
            plan.inputs.gpu_gb
        );
    }
    let second = plan.ranked.get(1).filter(|second| second.fits);
    let against = second.map_or(String::new(), |second| {
        let why = second.loses_to.as_ref().map_or(String::new(), |why| format!(" (largest loss: {why})"));
        format!("; next: {}, {:.1}{why}", second.name, second.sequences_per_second)
    });
    format!("Fastest that fits: {}, {:.1} sequences/s{against}.", best.name, best.sequences_per_second)
}
