//! What does a result of several inputs contain?

use busbound_diagnosis::Diagnosis;
use busbound_fleet::{FleetAnswer, NotOneRun, RankSummary, Unread};

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
    /// Runs that are shown in full, as indices into `all`. If the inputs are not one run and this is empty, a terminal shows
    /// none, and other formats all.
    pub shown: &'a [usize],
    pub unread: &'a [Unread],
    /// Sections of a page, in the order of `all`; empty unless a page is requested.
    pub sections: &'a [RunSection],
}

impl<'a> Runs<'a> {
    /// Whether there was only one input, so its diagnosis is the whole answer.
    pub(crate) fn is_one(&self) -> bool {
        self.all.len() == 1 && self.unread.is_empty()
    }

    /// Whether a run is shown in full.
    pub(crate) fn is_detailed(&self, run: usize) -> bool {
        self.fleet.is_none() || self.shown.contains(&run)
    }

    /// Why the inputs are not treated as ranks of one run, as a sentence.
    pub(crate) fn why_not_merged(&self) -> Option<String> {
        let why = self.why_not_merged?;
        Some(format!("Not treated as ranks of one run, because {why}: each is analyzed separately."))
    }

    /// The runs that are shown in full.
    pub(crate) fn detailed(&self) -> impl Iterator<Item = &'a Diagnosis> {
        self.all.iter().enumerate().filter(|(number, _)| self.is_detailed(*number)).map(|(_, run)| run)
    }
}
