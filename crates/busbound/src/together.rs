//! Are several runs ranks of one job, or separate runs?

use busbound_diagnosis::Diagnosis;
use busbound_fleet::{Fleet, FleetAnswer, NotOneRun, RankSummary, Unread, one_run};
use busbound_machine::topology::GpuPlace;
use busbound_report::{Answer, Report, RunSection, Runs};

/// Up to this many ranks are shown individually by default.
const EACH_UP_TO: usize = 4;

/// Which ranks of one job are shown individually, below the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// In documents each rank, if there are few; otherwise only the runs that do not belong to the job.
    #[default]
    Few,
    Each,
}

/// Gives each run without stages those of the pipeline that the runs form together, if they are ranks of one job.
pub fn share_pipeline(runs: &mut [Diagnosis]) {
    let ranks: Vec<RankSummary> = runs.iter().map(RankSummary::of).collect();
    if one_run(&ranks).is_err() {
        return;
    }
    let Some(pipeline) = Fleet::of(ranks).answer(None).pipeline else { return };
    for run in runs.iter_mut().filter(|run| run.stages.is_none()) {
        run.stages = Some(pipeline.as_stages());
    }
}

/// Several runs, and the comparison if they are ranks of one job.
#[derive(Debug)]
pub struct RunGroup {
    runs: Vec<Diagnosis>,
    summaries: Vec<RankSummary>,
    /// The comparison if they are ranks of one job, otherwise why they are not.
    fleet: Result<FleetAnswer, NotOneRun>,
    /// The runs shown individually, by index.
    shown: Vec<usize>,
    /// The same on a terminal, where the comparison of ranks is the answer.
    on_terminal: Vec<usize>,
    unread: Vec<Unread>,
    sections: Vec<RunSection>,
}

impl RunGroup {
    /// From the runs that could be read and the files that could not. With `topology`, also finds ranks that share a PCIe
    /// uplink.
    pub fn of(runs: Vec<Diagnosis>, unread: Vec<Unread>, topology: Option<&[GpuPlace]>, show: Show) -> Self {
        let summaries: Vec<RankSummary> = runs.iter().map(RankSummary::of).collect();
        let all = || (0..runs.len()).collect();
        let mut shown = if runs.len() <= EACH_UP_TO || show == Show::Each { all() } else { Vec::new() };
        let mut on_terminal = shown.clone();
        let fleet = one_run(&summaries).map(|job| {
            let few = job.members.len() <= EACH_UP_TO;
            on_terminal = if show == Show::Each { all() } else { job.others };
            shown = if few { all() } else { on_terminal.clone() };
            let ranks = Fleet::of(summaries.iter().cloned());
            ranks.with_unread(unread.iter().cloned()).answer(topology)
        });
        Self { runs, summaries, fleet, shown, on_terminal, unread, sections: Vec::new() }
    }

    /// Adds the drawings of the runs, for a page.
    pub fn with_sections(mut self, sections: Vec<RunSection>) -> Self {
        self.sections = sections;
        self
    }

    pub fn runs(&self) -> &[Diagnosis] {
        &self.runs
    }

    /// The comparison, if they are ranks of one job.
    pub fn fleet(&self) -> Option<&FleetAnswer> {
        self.fleet.as_ref().ok()
    }
}

impl Report for RunGroup {
    fn answer(&self) -> Answer<'_> {
        Answer::Runs(Runs {
            all: &self.runs,
            summaries: &self.summaries,
            fleet: self.fleet.as_ref().ok(),
            why_not_merged: self.fleet.as_ref().err(),
            shown: &self.shown,
            on_terminal: &self.on_terminal,
            unread: &self.unread,
            sections: &self.sections,
        })
    }
}
