//! What is a finding, for programs and for people?

use busbound_trace::Interval;
use busbound_whatif::replay::{Change, Predicted};
use serde::Serialize;
use serde_json::{Map, Value};

use super::cost::Cost;
use super::draft::Draft;
use crate::findings::FindingId;
use crate::saving::Saving;
use crate::settings::Proposal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Severity {
    Low,
    Medium,
    High,
}

impl Severity {
    /// By the largest share of the step that the fix can save.
    fn of_share(share: f64) -> Self {
        match share {
            share if share >= 0.20 => Self::High,
            share if share >= 0.05 => Self::Medium,
            _ => Self::Low,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    pub id: FindingId,
    pub severity: Severity,
    pub title: String,
    /// The evidence, in one or two sentences.
    pub seen: String,
    /// The figures behind the evidence.
    pub evidence: Map<String, Value>,
    /// When the fix is worth it.
    pub precondition: String,
    pub saves_ms_per_step: Saving,
    /// Whether it is known what the fix saves; if not, `saves_ms_per_step` is zero.
    pub saving_known: bool,
    /// Whether its fix gains anything in this run, alone or after others.
    #[serde(skip)]
    pub gains: bool,
    /// How the saving was computed.
    pub saving_basis: &'static str,
    /// The what-if changes that are its fix, as `busbound whatif --apply` takes them; empty where there are none.
    pub candidate: Vec<String>,
    pub fix: String,
    /// What the fix does in a few words, to follow "by".
    #[serde(skip)]
    pub doing: String,
    /// What the fix costs.
    pub cost: Cost,
    /// What the run gains without a change of the program; `null` where that is not possible, or another finding says it.
    pub without_code: Option<WithoutCode>,
    /// The fix in PyTorch, if it is code.
    pub fix_code: Option<String>,
    pub docs: String,
    /// When it happens, for the timeline.
    #[serde(skip)]
    pub at: Vec<Interval>,
    /// The what-if changes that make its fix; `None` if no change does.
    #[serde(skip)]
    pub(crate) changes: Option<Vec<Change>>,
    /// The replay with its fix alone; `None` if that was not replayed.
    #[serde(skip)]
    pub(crate) predicted: Option<Predicted>,
    /// Launch settings that apply the fix, for advice.
    #[serde(skip)]
    pub settings: Vec<Proposal>,
}

/// What a run gains without a change of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithoutCode {
    pub command: &'static str,
    /// The what-if changes that it makes.
    pub candidate: Vec<String>,
    pub step_ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
}

impl Finding {
    /// Joins a draft with its rule. The severity is the saving as a share of `step_ms`.
    pub(super) fn of(id: FindingId, draft: Draft, basis: &'static str, step_ms: f64) -> Self {
        let rule = id.rule();
        let changes = rule.changes(&draft);
        let fix_code = draft.fix.own_code();
        let evidence = match draft.evidence {
            Value::Object(map) => map,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        debug_assert!(
            draft.fix.code.is_none_or(|code| rule.document.code.contains(&code)),
            "{id}: the code of the fix is missing from its documentation"
        );
        let severity = match id.is_about_correctness() {
            true => Severity::High,
            false => Severity::of_share(draft.saves.high / step_ms),
        };
        Self {
            id,
            severity,
            title: draft.title.unwrap_or_else(|| rule.title.to_owned()),
            seen: draft.seen,
            evidence,
            precondition: rule.precondition.to_owned(),
            saves_ms_per_step: draft.saves,
            saving_known: draft.fix.saving_known,
            gains: draft.fix.gains,
            saving_basis: basis,
            candidate: changes.iter().flatten().map(ToString::to_string).collect(),
            fix: draft.fix.text,
            doing: draft.fix.doing.unwrap_or_else(|| rule.doing.to_owned()),
            cost: Cost {
                effort: rule.effort,
                pinned_bytes: None,
                host_bytes: None,
                gpu_bytes: None,
                risk: rule.document.assumes,
            },
            without_code: None,
            fix_code,
            docs: format!("docs/findings.md#{id}"),
            at: draft.at,
            changes,
            predicted: None,
            settings: draft.fix.settings,
        }
    }
}
