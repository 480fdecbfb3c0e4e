//! What changed since the last trace of a directory that is watched, and did the step come out as predicted?

use serde::Serialize;

use crate::answers::compare::{Change, compare};
use crate::answers::diagnosis::Diagnosis;
use crate::findings::{FindingId, Prize};
use crate::verdict::Bound;

pub const WATCH_SCHEMA: &str = "busbound.watch/1";

/// A new trace, and what changed since the last one.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Watched {
    pub schema: &'static str,
    pub diagnosis: Diagnosis,
    /// `null` for the first trace.
    pub since: Option<SinceLast>,
}

/// How a trace differs from the one before it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SinceLast {
    pub path: String,
    pub statement: String,
    /// `null` if the two cannot be compared.
    pub change: Option<Change>,
    /// The verdict of the trace before.
    pub bound: Bound,
    /// Findings of the trace before that the new one does not have.
    pub gone: Vec<FindingId>,
    /// Findings that the trace before does not have.
    pub appeared: Vec<FindingId>,
    /// What the trace before predicted for the fixes that were made since; `null` if none was.
    pub prediction: Option<CheckedPrediction>,
}

/// A predicted step, and the one that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CheckedPrediction {
    /// The findings that were fixed.
    pub fixed: Vec<FindingId>,
    /// What was done, to follow "by".
    #[serde(skip)]
    pub doing: Vec<&'static str>,
    pub low_ms: f64,
    pub high_ms: f64,
    /// Milliseconds per step of the new trace, without the profiler where that is known.
    pub measured_ms: f64,
    pub inside: bool,
}

/// A new trace after the one before it.
pub fn watched(diagnosis: Diagnosis, before: Option<&Diagnosis>) -> Watched {
    let since = before.map(|before| since(before, &diagnosis));
    Watched { schema: WATCH_SCHEMA, diagnosis, since }
}

fn since(before: &Diagnosis, after: &Diagnosis) -> SinceLast {
    let comparison = compare(&[before.clone(), after.clone()], None);
    let prediction = comparison.change.as_ref().and_then(|_| checked(before, after));
    SinceLast {
        path: before.source.path.clone(),
        statement: comparison.statement,
        change: comparison.change,
        bound: before.verdict.bound,
        gone: comparison.gone,
        appeared: comparison.appeared,
        prediction,
    }
}

/// What was predicted for the fixes that were made: those of the prize, in its order, whose findings are gone.
fn checked(before: &Diagnosis, after: &Diagnosis) -> Option<CheckedPrediction> {
    let prize = before.prize.as_ref()?;
    let has = |run: &Diagnosis, id: FindingId| run.findings.iter().any(|finding| finding.id == id);
    let made = prize.fixes.iter().take_while(|fix| !has(after, fix.finding)).count();
    let fixes = prize.fixes.get(..made)?;
    // The first one is what shows that something was fixed; the next may have had no finding yet.
    fixes.first().filter(|first| has(before, first.finding))?;
    let (low_ms, high_ms) = range(prize, before, made)?;
    let measured_ms = after.window.baseline_ms;
    Some(CheckedPrediction {
        fixed: fixes.iter().map(|fix| fix.finding).collect(),
        doing: fixes.iter().flat_map(|fix| fix.doing.iter().copied()).collect(),
        low_ms,
        high_ms,
        measured_ms,
        inside: (low_ms..=high_ms).contains(&measured_ms),
    })
}

/// The predicted range of the step with this many of the prize's fixes.
fn range(prize: &Prize, before: &Diagnosis, made: usize) -> Option<(f64, f64)> {
    if made == prize.fixes.len() {
        return Some((prize.low_ms, prize.high_ms));
    }
    let last = prize.fixes.get(..made)?.last()?;
    if made == 1 {
        let finding = before.findings.iter().find(|finding| finding.id == last.finding)?;
        // Savings are of the recorded step, and this is about the one without the profiler.
        let saved = prize.step_ms - last.after_ms;
        let saves = finding.saves_ms_per_step;
        let middle = 0.5 * (saves.low + saves.high);
        if middle > 0.0 {
            let low = prize.step_ms - saved * saves.high / middle;
            return Some((low.max(0.0), prize.step_ms - saved * saves.low / middle));
        }
    }
    // As uncertain as all of them together.
    Some((last.after_ms * prize.low_ms / prize.fixed_ms, last.after_ms * prize.high_ms / prize.fixed_ms))
}
