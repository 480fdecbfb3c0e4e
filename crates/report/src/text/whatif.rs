//! The sentences and tables of a prediction.

use busbound_diagnosis::WhatIf;
use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::replay::{Change, RangeFrom};

use super::Table;

/// What a step takes now: what predictions start from, and as recorded if that differs.
pub(crate) fn now(answer: &WhatIf) -> Vec<(&'static str, f64)> {
    match answer.is_slowed() {
        true => {
            vec![("now, without the profiler", answer.baseline_ms), ("now, as recorded", answer.recorded_ms)]
        }
        false => vec![("now", answer.baseline_ms)],
    }
}

pub(crate) fn table(answer: &WhatIf) -> Table {
    let titles = vec!["change", "step", "low", "high", "speedup", "GPU memory"];
    let none = || "–".to_owned();
    let now = now(answer).into_iter();
    let now = now.map(|(what, ms)| vec![what.to_owned(), milliseconds(ms), none(), none(), none(), none()]);
    let scenarios = answer.scenarios.iter().map(|one| {
        vec![
            one.apply.join(" + "),
            milliseconds(one.step_ms),
            milliseconds(one.low_ms),
            milliseconds(one.high_ms),
            if one.applies { format!("{:.1}x", answer.baseline_ms / one.step_ms) } else { none() },
            if one.extra_bytes > 0 { format!("+{}", bytes(one.extra_bytes)) } else { none() },
        ]
    });
    Table { titles, rows: now.chain(scenarios).collect() }
}

/// How accurate the replay of the unchanged trace is.
pub(crate) fn replay(answer: &WhatIf) -> String {
    let error = 100.0 * answer.replay_error.abs();
    format!("a simulation of the trace without changes reproduces the recorded step (error {error:.1}%)")
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

/// Ranges wider than this share of the step are explained.
const WIDE: f64 = 0.16;

/// Where the range of the first scenario comes from, if it is wide.
pub(crate) fn range_from(answer: &WhatIf) -> Option<String> {
    let first = answer.scenarios.iter().find(|one| one.applies)?;
    (first.high_ms - first.low_ms > WIDE * first.step_ms).then(|| {
        let from = match first.range_from {
            RangeFrom::Power => first.range_from.describe(answer.knows_power),
            other => other.describe(answer.is_measured),
        };
        format!("The range of {} is mostly from {from}.", first.apply.join(" + "))
    })
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
