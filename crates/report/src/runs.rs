//! What does a result of several inputs contain?

use busbound_diagnosis::{Diagnosis, Finding};
use busbound_fleet::{FindingName, FleetAnswer, NotOneRun, RankSummary, Unread};

use crate::html::section::RunSection;

/// The inputs of one call, and whether they are ranks of one run.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    /// The inputs that could be read, in order.
    pub all: &'a [Diagnosis],
    /// Their summaries, in the same order.
    pub summaries: &'a [RankSummary],
    /// The merged result, if they are ranks of one run.
    pub fleet: Option<&'a FleetAnswer>,
    /// Why they are not ranks of one run.
    pub why_not_merged: Option<&'a NotOneRun>,
    /// Runs that documents show in full, as indices into `all`; all of them if the inputs are not one run.
    pub shown: &'a [usize],
    /// Runs that a terminal shows in full.
    pub on_terminal: &'a [usize],
    pub unread: &'a [Unread],
    /// Sections of a page, in the order of `all`; empty unless a page is requested.
    pub sections: &'a [RunSection],
}

impl<'a> Runs<'a> {
    /// Whether there was only one input, so its diagnosis is the whole answer.
    pub(crate) fn is_one(&self) -> bool {
        self.all.len() == 1 && self.unread.is_empty()
    }

    /// Whether documents show a run in full.
    pub(crate) fn is_detailed(&self, run: usize) -> bool {
        self.fleet.is_none() || self.shown.contains(&run)
    }

    /// Why the inputs are not treated as ranks of one run, as a sentence.
    pub(crate) fn why_not_merged(&self) -> Option<String> {
        let why = self.why_not_merged?;
        Some(format!("Not treated as ranks of one run, because {why}: each is analyzed separately."))
    }

    /// The runs that documents show in full.
    pub(crate) fn detailed(&self) -> impl Iterator<Item = &'a Diagnosis> {
        self.all.iter().enumerate().filter(|(number, _)| self.is_detailed(*number)).map(|(_, run)| run)
    }

    /// The finding with this id of the rank that it costs most.
    pub(crate) fn finding(&self, id: &FindingName) -> Option<&'a Finding> {
        let is_it = |finding: &&Finding| *id == FindingName::Known(finding.id);
        let all = self.all.iter().flat_map(|run| &run.findings).filter(is_it);
        all.max_by(|a, b| a.saves_ms_per_step.high.total_cmp(&b.saves_ms_per_step.high))
    }
}
