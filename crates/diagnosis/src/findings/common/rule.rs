//! What does the file of a finding declare?

use busbound_cause::Resource;
use busbound_whatif::replay::Change;

use super::cost::Effort;
use super::draft::Draft;
use crate::analysis::facts::Facts;
use crate::findings::FindingId;

/// Everything about one finding, except the figures of a run.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The title, unless a [`Draft`] has one with figures of the run.
    pub(crate) title: &'static str,
    /// What its fix does in a few words, to follow "by", unless a [`Fix`](super::Fix) has one with figures of the run.
    pub(crate) doing: &'static str,
    /// When the fix is worth it.
    pub(crate) precondition: &'static str,
    /// How the saving is computed if the fix is not replayed.
    pub(crate) basis: &'static str,
    pub(crate) candidate: Candidate,
    /// How much has to change for the fix.
    pub(crate) effort: Effort,
    /// Findings that explain the same time better. If one of them is reported, this one is not.
    pub(crate) unless: &'static [FindingId],
    /// What its fix makes faster or unnecessary: a bound on its saving is no more than the step gains if that is free. Empty if
    /// the graph cannot be asked.
    pub(crate) relieves: &'static [Resource],
    /// Looks for evidence; `None` without evidence.
    pub(crate) check: fn(&Facts<'_>) -> Option<Draft>,
    pub(crate) document: Document,
}

impl Rule {
    /// The what-if changes that make the fix of a run; `None` if no change does.
    pub(super) fn changes(&self, draft: &Draft) -> Option<Vec<Change>> {
        if !draft.fix.gains {
            return None;
        }
        draft.fix.changes.clone().or_else(|| self.candidate.changes())
    }
}

/// The what-if changes that apply the fix of a finding.
#[derive(Debug)]
pub enum Candidate {
    /// The saving comes from replaying the trace with these changes.
    Changes(fn() -> Vec<Change>),
    /// As above; and these changes gain without a change of the program, with `busbound try`.
    AlsoWithoutCode(fn() -> Vec<Change>, fn() -> Vec<Change>),
    /// No change applies this fix, for this reason. The saving is a bound.
    None(&'static str),
}

impl Candidate {
    /// The changes, if any.
    pub fn changes(&self) -> Option<Vec<Change>> {
        match self {
            Self::Changes(changes) | Self::AlsoWithoutCode(changes, _) => Some(changes()),
            Self::None(_) => None,
        }
    }

    /// The changes that need no change of the program, if any.
    pub fn without_code(&self) -> Option<Vec<Change>> {
        match self {
            Self::AlsoWithoutCode(_, changes) => Some(changes()),
            Self::Changes(_) | Self::None(_) => None,
        }
    }
}

/// The documentation of a finding.
#[derive(Debug)]
pub struct Document {
    /// What happens in the run, and why it costs time.
    pub meaning: &'static str,
    /// What counts as evidence, and how the saving is computed.
    pub computed: &'static str,
    pub fix: &'static str,
    /// The fix in PyTorch: one of these, depending on the run. Empty if the fix is not code.
    pub code: &'static [&'static str],
    /// What the finding and its saving assume.
    pub assumes: &'static str,
}
