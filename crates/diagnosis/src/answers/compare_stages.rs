//! Did the pipeline gain by overlapping its stages? What the score of one run cannot say.
//!
//! Stages that run at once share the device, and each takes longer for it. Time hidden in the second run
//! that the first did not spend is no gain.

use serde::Serialize;

use crate::analysis::stages::Stages;
use crate::quantity::milliseconds;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageChange {
    pub score_before: f64,
    pub score_after: f64,
    pub period_pct: f64,
    /// Name of each stage, and how much longer it takes.
    pub stages: Vec<(String, f64)>,
    /// Of the time hidden that was not before, the share by which the period fell, 0 to 1.
    pub gained_share: Option<f64>,
    pub statement: String,
}

/// `None` where the two have not the same stages.
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
    // Below a tenth of the period nothing worth a share was hidden.
    let gained_share = (newly_hidden > 0.1 * after.period_ms).then(|| (gain / newly_hidden).clamp(0.0, 1.0));
    let period_pct = pct(before.period_ms, after.period_ms);
    let list: Vec<String> = stages.iter().map(|(name, pct)| format!("{name} {pct:+.0} %")).collect();
    let mut statement = format!(
        "OverlapScore {:.2} → {:.2}, period {} → {} ({period_pct:+.0} %); the stages themselves: {}.",
        before.overlap_score,
        after.overlap_score,
        milliseconds(before.period_ms),
        milliseconds(after.period_ms),
        list.join(", ")
    );
    if let Some(share) = gained_share {
        statement.push_str(&if share < 0.5 {
            format!(
                " Most of that overlap is no gain: {} more is hidden, but the stages slow each other down and the period fell by only {}.",
                milliseconds(newly_hidden),
                milliseconds(gain.max(0.0))
            )
        } else {
            format!(" {:.0} % of the overlap is gain.", 100.0 * share)
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
