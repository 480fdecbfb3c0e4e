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
mod managed;
mod narrow_link;
mod offload;
mod pageable;
mod power;
mod prefetch;
mod recipes;
mod serialised;
mod small;
mod sync;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use busbound_trace::Interval;
use busbound_whatif::replay::{Change, Coalesce, NoSync, Pin, Prefetch};

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::answers::whatif;
use busbound_cause::idle::GapCause;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Severity {
    Low,
    Medium,
    High,
}

/// Milliseconds a step (or trace, where there are no steps) that a fix saves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    /// The fix in PyTorch, where it is code.
    pub fix_code: Option<&'static str>,
    pub docs: String,
    /// When it happens, for those who draw it.
    #[serde(skip)]
    pub at: Vec<Interval>,
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
    at: Vec<Interval>,
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
            fix_code: recipes::code(self.id, facts),
            docs: format!("docs/findings.md#{}", self.id),
            at: self.at,
        }
    }
}

/// When copies ran.
fn times_of(copies: &[&Copy<'_>]) -> Vec<Interval> {
    copies.iter().map(|copy| copy.interval()).collect()
}

/// When the device was idle for this cause.
fn gaps_of(facts: &Facts<'_>, cause: GapCause) -> Vec<Interval> {
    facts.gaps.iter().filter(|gap| gap.cause == cause).map(|gap| gap.interval).collect()
}

/// The change that a finding's fix is, where the trace can be run again with it.
fn change_of(id: &str) -> Option<Change> {
    match id {
        "pageable_copies" | "pageable_d2h" | "non_blocking_pageable" => Some(Pin.into()),
        "serialised_copies" => Some(Prefetch(1).into()),
        "small_copies" => Some(Coalesce.into()),
        "sync_in_loop" => Some(NoSync.into()),
        _ => None,
    }
}

/// Savings of fixes that can be tried on the trace are what the trace takes with them, not bounds.
fn replay(facts: &Facts<'_>, drafts: &mut [Draft]) {
    if drafts.iter().all(|draft| change_of(draft.id).is_none()) {
        return;
    }
    let Some(replay) = whatif::replay_of(facts) else { return };
    // Two findings with the same fix would each promise all of it: those keep their own bounds.
    let fixes: Vec<Option<Change>> = drafts.iter().map(|draft| change_of(draft.id)).collect();
    for (draft, fix) in drafts.iter_mut().zip(&fixes) {
        let Some(change) = fix else { continue };
        if fixes.iter().filter(|other| *other == fix).count() > 1 {
            continue;
        }
        if let Some(saving) = whatif::saving(&replay, std::slice::from_ref(change)) {
            draft.saves = saving;
            draft.basis = "the trace run again with the fix made (`busbound whatif`)";
        }
    }
}

/// All findings, most saving first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let checks: [fn(&Facts<'_>) -> Vec<Draft>; 17] = [
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
        managed::check,
        narrow_link::check,
        device_copies::check,
        distortion::check,
        power::check,
    ];
    if facts.time.span_ms <= 0.0 {
        return Vec::new();
    }
    let mut drafts: Vec<Draft> = checks.iter().flat_map(|check| check(facts)).collect();
    replay(facts, &mut drafts);
    let mut findings: Vec<_> = drafts.into_iter().map(|draft| draft.finish(facts)).collect();
    findings.sort_by(|a, b| {
        let key = |f: &Finding| f.saves_ms_per_step.high;
        key(b).total_cmp(&key(a)).then_with(|| a.id.cmp(b.id))
    });
    findings
}
