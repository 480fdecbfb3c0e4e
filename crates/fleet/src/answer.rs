//! The complete answer about a fleet of ranks. Renderers use nothing else.

use busbound_diagnosis::{Bound, Saving, Unit};
use serde::Serialize;

use crate::align::Alignment;
use crate::aligned::AlignedLanes;
use crate::arrivals::Arrivals;
use crate::fleet::Unread;
use crate::job::JobScenario;
use crate::name::FindingName;
use crate::pipeline::Pipeline;
use crate::spread::Spread;
use crate::stragglers::Straggler;
use crate::summary::RankSummary;
use crate::uplinks::SharedUplink;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetAnswer {
    pub schema: &'static str,
    /// The answer in a sentence.
    pub statement: String,
    /// Number of ranks in the job, if a trace records it.
    pub world_size: Option<u32>,
    /// Why these are ranks of one run; `null` if unknown.
    pub evidence: Option<String>,
    /// Why they cannot be ranks of one run; they are then not compared. `null` if they can.
    pub not_one_run: Option<String>,
    /// What times are per; figures exclude ranks with another unit.
    pub unit: Unit,
    /// Most ranks first.
    pub verdicts: Vec<VerdictCount>,
    /// The steps of all ranks; `null` if there are none.
    pub steps: Option<FleetSteps>,
    /// The spread of each figure across ranks.
    pub figures: Vec<Spread>,
    /// Worst first.
    pub stragglers: Vec<Straggler>,
    /// The clocks of the ranks; `null` if their collectives cannot be matched.
    pub alignment: Option<Alignment>,
    /// Who arrives last at collectives; `null` without aligned clocks.
    pub arrivals: Option<Arrivals>,
    /// What the ranks did at the same time, for a page; `None` without aligned clocks.
    #[serde(skip)]
    pub aligned: Option<AlignedLanes>,
    /// What a step of the job would take without the delay of a rank, largest gain first.
    pub job: Vec<JobScenario>,
    /// The pipeline whose stages run on different ranks; `null` if there is none.
    pub pipeline: Option<Pipeline>,
    /// PCIe uplinks that ranks share, if the topology is given.
    pub uplinks: Vec<SharedUplink>,
    /// What to change: number of ranks times saving, largest first.
    pub findings: Vec<SharedFinding>,
    /// What differs in the environment of the ranks, as far as their traces have it.
    pub environment: Vec<String>,
    pub unread: Vec<Unread>,
    pub limitations: Vec<String>,
    pub ranks: Vec<RankSummary>,
    /// Summaries that are not ranks of this run, or duplicates; no figure includes them.
    pub others: Vec<RankSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictCount {
    pub bound: Bound,
    pub ranks: usize,
}

/// Lengths of the steps of all ranks, each accurate to 1%.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetSteps {
    pub count: u64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
}

/// A finding, and how many ranks have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedFinding {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: FindingName,
    pub title: String,
    pub ranks: usize,
    /// Median over the ranks that have it.
    pub saves_ms_per_step: Saving,
    /// What only the comparison of ranks shows.
    pub note: Option<String>,
}
