//! What there is to show of several inputs at once.

use busbound_diagnosis::Diagnosis;
use busbound_fleet::{FleetAnswer, RankSummary, Unread};

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
    pub why_apart: Option<&'a str>,
    /// Those that are told one by one, by their place in the list, where they are ranks of one run; else all are.
    pub told: &'a [usize],
    pub unread: &'a [Unread],
}

impl<'a> Runs<'a> {
    /// Whether there was one input, of which there is nothing to say but its diagnosis.
    pub fn is_one(&self) -> bool {
        self.all.len() == 1 && self.unread.is_empty()
    }

    /// Whether a run is told by itself.
    pub fn tells(&self, run: usize) -> bool {
        self.fleet.is_none() || self.told.contains(&run)
    }

    /// Those told one by one.
    pub(crate) fn one_by_one(&self) -> impl Iterator<Item = &'a Diagnosis> {
        self.all.iter().enumerate().filter(|(number, _)| self.tells(*number)).map(|(_, run)| run)
    }
}
