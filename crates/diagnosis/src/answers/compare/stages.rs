//! Did the pipeline get faster by overlapping its stages? The score of one run cannot show that.
//!
//! Stages that run at the same time share the GPU, so each of them takes longer. Overlapping that extra time gains nothing.

use serde::Serialize;

use crate::analysis::stages::Stages;
use crate::quantity::milliseconds;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageChange {
    pub score_before: f64,
    pub score_after: f64,
    pub period_pct: f64,
    /// Name of each stage, and by how many percent it became longer.
    pub stages: Vec<(String, f64)>,
    /// How much of the additional overlap shortened the period, 0 to 1.
    pub gained_share: Option<f64>,
    pub statement: String,
}

/// `None` unless both have the same stages.
pub(crate) fn change(before: Option<&Stages>, after: Option<&Stages>) -> Option<StageChange> {
    let (before, after) = (before?, after?);
    let names = |stages: &Stages| stages.stages.iter().map(|stage| stage.name.clone()).collect::<Vec<_>>();
    if names(before) != names(after) || before.period_ms <= 0.0 {
        return None;
    }
    let pct = |a: f64, b: f64| if a > 0.0 { 100.0 * (b / a - 1.0) } else { 0.0 };
    let stages: Vec<(String, f64)> = before
        .stages
        .iter()
        .zip(&after.stages)
        .map(|(a, b)| (a.name.clone(), pct(a.median_ms, b.median_ms)))
        .collect();
    let newly_hidden = after.hidden_ms - before.hidden_ms.max(0.0);
    let gain = before.period_ms - after.period_ms;
    // Less additional overlap than a tenth of the period is too little for a share.
    let gained_share = (newly_hidden > 0.1 * after.period_ms).then(|| (gain / newly_hidden).clamp(0.0, 1.0));
    let period_pct = pct(before.period_ms, after.period_ms);
    let list: Vec<String> = stages.iter().map(|(name, pct)| format!("{name} {pct:+.0}%")).collect();
    let mut statement = format!(
        "Overlap score {:.2} → {:.2}, period {} → {} ({period_pct:+.0}%). Change of the stages: {}.",
        before.overlap_score,
        after.overlap_score,
        milliseconds(before.period_ms),
        milliseconds(after.period_ms),
        list.join(", ")
    );
    if let Some(share) = gained_share {
        statement.push_str(&if share < 0.5 {
            format!(
                " Most of the overlap gains nothing: {} more is overlapped, but the stages slow each other down and the period is only {} shorter.",
                milliseconds(newly_hidden),
                milliseconds(gain.max(0.0))
            )
        } else {
            format!(" {:.0}% of the additional overlap shortens the period.", 100.0 * share)
        });
    }
    Some(StageChange {
        score_before: before.overlap_score,
        score_after: after.overlap_score,
        period_pct,
        stages,
        gained_share,
        statement,
    })
}
