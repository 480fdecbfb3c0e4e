//! The sentences and tables of a prediction.

use busbound_diagnosis::WhatIf;
use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::replay::Change;

use super::Table;

pub(crate) fn table(answer: &WhatIf) -> Table {
    let titles = vec!["change", "predicted", "low", "high", "gain", "GPU memory"];
    let rows = answer
        .scenarios
        .iter()
        .map(|one| {
            vec![
                one.apply.join(" + "),
                milliseconds(one.step_ms),
                milliseconds(one.low_ms),
                milliseconds(one.high_ms),
                if one.applies {
                    format!("{:.0}%", 100.0 * one.gain_ms / answer.baseline_ms)
                } else {
                    "–".to_owned()
                },
                if one.extra_bytes > 0 { format!("+{}", bytes(one.extra_bytes)) } else { "–".to_owned() },
            ]
        })
        .collect();
    Table { titles, rows }
}

/// How accurate the replay of the unchanged trace is.
pub(crate) fn replay(answer: &WhatIf) -> String {
    format!(
        "replay error {:+.1}%; {} waits recorded, {} inferred from timing",
        100.0 * answer.replay_error,
        answer.recorded_waits,
        answer.inferred_waits
    )
}

/// The effort and the assumptions of each change in the listed scenarios, each change once.
pub(crate) fn to_do(answer: &WhatIf) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for one in answer.scenarios.iter().filter(|one| one.applies) {
        for about in one.changes.iter().map(Change::about) {
            if !lines.iter().any(|(known, _)| known == about.name) {
                let words = format!("{}. Assumes: {}.", about.effort, about.precondition);
                lines.push((about.name.to_owned(), words));
            }
        }
    }
    lines
}

/// The effect of the power limit, if there is one.
pub(crate) fn power(answer: &WhatIf) -> Option<String> {
    let most = answer.scenarios.iter().map(|one| one.power).fold(1.0, f64::max);
    (most > 1.005).then(|| {
        format!(
            "The GPU is then idle less and lowers its clock: matrix kernels take up to {:.0}% longer, included here.",
            100.0 * (most - 1.0)
        )
    })
}
