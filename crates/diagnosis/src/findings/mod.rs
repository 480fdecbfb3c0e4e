//! What should be changed? Each finding has its evidence, its precondition, its fix and what it saves.
//! No evidence, no finding.

mod allocation;
mod communication;
mod contention;
mod device_copies;
mod distortion;
mod input;
mod launch;
mod link;
mod offload;
mod pageable;
mod power;
mod prefetch;
mod serialised;
mod small;
mod sync;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::facts::Facts;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Severity {
    Low,
    Medium,
    High,
}

/// Milliseconds a step (or trace, where there are no steps) that a fix saves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saving {
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    pub title: String,
    /// What was seen, in one or two sentences.
    pub seen: String,
    /// The figures behind it.
    pub evidence: Map<String, Value>,
    /// What must be true for the fix to pay.
    pub precondition: String,
    pub saves_ms_per_step: Saving,
    /// How the saving was reached.
    pub saving_basis: &'static str,
    pub fix: String,
    pub docs: String,
}

/// What a finding brings; severity and links are the same for all.
struct Draft {
    id: &'static str,
    title: String,
    seen: String,
    evidence: Value,
    precondition: &'static str,
    saves: Saving,
    basis: &'static str,
    fix: String,
}

impl Draft {
    fn finish(self, facts: &Facts<'_>) -> Finding {
        let share = self.saves.high / facts.step_ms();
        let severity = match share {
            s if s >= 0.20 => Severity::High,
            s if s >= 0.05 => Severity::Medium,
            _ => Severity::Low,
        };
        let evidence = match self.evidence {
            Value::Object(map) => map,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Finding {
            id: self.id,
            severity,
            title: self.title,
            seen: self.seen,
            evidence,
            precondition: self.precondition.to_owned(),
            saves_ms_per_step: self.saves,
            saving_basis: self.basis,
            fix: self.fix,
            docs: format!("docs/findings.md#{}", self.id),
        }
    }
}

/// All findings, most saving first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let checks: [fn(&Facts<'_>) -> Vec<Draft>; 15] = [
        pageable::check,
        serialised::check,
        prefetch::check,
        small::check,
        sync::check,
        input::check,
        allocation::check,
        launch::check,
        communication::check,
        contention::check,
        offload::check,
        link::check,
        device_copies::check,
        distortion::check,
        power::check,
    ];
    if facts.time.span_ms <= 0.0 {
        return Vec::new();
    }
    let drafts = checks.iter().flat_map(|check| check(facts));
    let mut findings: Vec<_> = drafts.map(|draft| draft.finish(facts)).collect();
    findings.sort_by(|a, b| {
        let key = |f: &Finding| f.saves_ms_per_step.high;
        key(b).total_cmp(&key(a)).then_with(|| a.id.cmp(b.id))
    });
    findings
}
