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
    /// Where they are not: why not.
    pub why_apart: Option<&'a str>,
    /// Whether ranks are also told one by one; what is no rank always is.
    pub each_rank: bool,
    pub unread: &'a [Unread],
}

impl<'a> Runs<'a> {
    /// Whether there was one input, of which there is nothing to say but its diagnosis.
    pub fn is_one(&self) -> bool {
        self.all.len() == 1 && self.unread.is_empty()
    }

    /// Whether a run is told by itself.
    pub fn tells(&self, run: &Diagnosis) -> bool {
        self.fleet.is_none() || self.each_rank || run.rank.is_none()
    }

    /// Those told one by one.
    pub(crate) fn told(&self) -> impl Iterator<Item = &'a Diagnosis> {
        self.all.iter().filter(|run| self.tells(run))
    }
}
