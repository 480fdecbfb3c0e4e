//! What there is to show of several inputs at once.

use busbound_diagnosis::Diagnosis;
use busbound_fleet::{FleetAnswer, NotOneRun, RankSummary, Unread};

use crate::html::section::RunSection;

/// The inputs of one call, and what they are to each other.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    /// Those that could be read, in order.
    pub all: &'a [Diagnosis],
    /// What is kept of each of them, in the same order.
    pub summaries: &'a [RankSummary],
    /// Where they are ranks of one run.
    pub fleet: Option<&'a FleetAnswer>,
    /// Why they are not.
    pub why_apart: Option<&'a NotOneRun>,
    /// Those that are told one by one, by their place in the list, where they are ranks of one run; else all are.
    pub told: &'a [usize],
    pub unread: &'a [Unread],
    /// What they look like, in the same order as `all`, for a page; empty where none is asked for.
    pub sections: &'a [RunSection],
}

impl<'a> Runs<'a> {
    /// Whether there was one input, of which there is nothing to say but its diagnosis.
    pub(crate) fn is_one(&self) -> bool {
        self.all.len() == 1 && self.unread.is_empty()
    }

    /// Whether a run is told by itself.
    pub(crate) fn tells(&self, run: usize) -> bool {
        self.fleet.is_none() || self.told.contains(&run)
    }

    /// Why they are not taken for ranks of one run, as a sentence.
    pub(crate) fn apart(&self) -> Option<String> {
        let why = self.why_apart?;
        Some(format!("Not taken for ranks of one run, because {why}: each is judged by itself."))
    }

    /// Those told one by one.
    pub(crate) fn one_by_one(&self) -> impl Iterator<Item = &'a Diagnosis> {
        self.all.iter().enumerate().filter(|(number, _)| self.tells(*number)).map(|(_, run)| run)
    }
}
