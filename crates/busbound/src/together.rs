//! What are several runs to each other? Ranks of one job, or runs of their own.

use busbound_diagnosis::Diagnosis;
use busbound_fleet::{Fleet, FleetAnswer, NotOneRun, RankSummary, Unread, one_run};
use busbound_machine::topology::GpuPlace;
use busbound_report::{Answer, Report, RunSection, Runs};

/// Up to so many ranks are shown one by one without being asked for.
const EACH_UP_TO: usize = 4;

/// Which ranks of one job are shown by themselves, under what they come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Each, where there are few; else those alone that do not belong to the job.
    #[default]
    Few,
    Each,
}

/// Several runs, and what they come to.
#[derive(Debug)]
pub struct Together {
    runs: Vec<Diagnosis>,
    summaries: Vec<RankSummary>,
    /// What they come to where they are ranks of one job, else why they are not.
    fleet: Result<FleetAnswer, NotOneRun>,
    /// Those shown by themselves, by their place in the list.
    shown: Vec<usize>,
    unread: Vec<Unread>,
    sections: Vec<RunSection>,
}

impl Together {
    /// Of the runs that could be read and those that could not. `wiring` says which ranks share a link to the host.
    pub fn of(runs: Vec<Diagnosis>, unread: Vec<Unread>, wiring: Option<&[GpuPlace]>, show: Show) -> Self {
        let summaries: Vec<RankSummary> = runs.iter().map(RankSummary::of).collect();
        let mut shown = Vec::new();
        let fleet = one_run(&summaries).map(|job| {
            let few = job.members.len() <= EACH_UP_TO;
            shown = if few || show == Show::Each { (0..runs.len()).collect() } else { job.others };
            let ranks = Fleet::of(summaries.iter().cloned());
            ranks.with_unread(unread.iter().cloned()).answer(wiring)
        });
        Self { runs, summaries, fleet, shown, unread, sections: Vec::new() }
    }

    /// With what the runs look like, for a page.
    pub fn with_sections(mut self, sections: Vec<RunSection>) -> Self {
        self.sections = sections;
        self
    }

    pub fn runs(&self) -> &[Diagnosis] {
        &self.runs
    }

    /// What they come to, where they are ranks of one job.
    pub fn fleet(&self) -> Option<&FleetAnswer> {
        self.fleet.as_ref().ok()
    }
}

impl Report for Together {
    fn answer(&self) -> Answer<'_> {
        Answer::Runs(Runs {
            all: &self.runs,
            summaries: &self.summaries,
            fleet: self.fleet.as_ref().ok(),
            why_apart: self.fleet.as_ref().err(),
            told: &self.shown,
            unread: &self.unread,
            sections: &self.sections,
        })
    }
}
