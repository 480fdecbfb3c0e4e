//! What does a finding's file declare?

use busbound_whatif::replay::Change;

use super::draft::Draft;
use crate::analysis::facts::Facts;
use crate::findings::FindingId;

/// Everything there is to know about one finding, apart from the figures of a run.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The title, unless a [`Draft`] brings one with figures of the run.
    pub(crate) title: &'static str,
    /// What must be true for the fix to pay.
    pub(crate) precondition: &'static str,
    /// How the saving is computed where the fix is not replayed.
    pub(crate) basis: &'static str,
    pub(crate) candidate: Candidate,
    /// Findings that explain the same time better: where one of them is made, this one is not.
    pub(crate) unless: &'static [FindingId],
    /// Looks for the evidence; `None` where there is none.
    pub(crate) check: fn(&Facts<'_>) -> Option<Draft>,
    pub(crate) document: Document,
}

/// The what-if changes that are a finding's fix.
#[derive(Debug)]
pub enum Candidate {
    /// The saving is what replaying the trace with these changes gives.
    Changes(fn() -> Vec<Change>),
    /// No change is this fix, for this reason; the saving is a bound.
    None(&'static str),
}

impl Candidate {
    /// The changes, if there are any.
    pub fn changes(&self) -> Option<Vec<Change>> {
        match self {
            Self::Changes(changes) => Some(changes()),
            Self::None(_) => None,
        }
    }
}

/// What a reader of the documentation learns about a finding.
#[derive(Debug)]
pub struct Document {
    /// What happens in the run, and why it costs time.
    pub meaning: &'static str,
    /// What counts as evidence, and what the saving is made of.
    pub computed: &'static str,
    pub fix: &'static str,
    /// The fix in PyTorch: one of these, by what the run does. Empty where the fix is not code.
    pub code: &'static [&'static str],
    /// When the finding and its saving hold.
    pub assumes: &'static str,
}
