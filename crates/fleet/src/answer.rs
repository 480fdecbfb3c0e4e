//! What the ranks come to together: the whole answer; renderers see nothing else of a fleet.

use busbound_diagnosis::{Bound, Saving, Unit};
use serde::Serialize;

use crate::fleet::Unread;
use crate::name::FindingName;
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
    /// Ranks of the job, where a trace tells.
    pub world_size: Option<u32>,
    /// How it is known that these are ranks of one run; `null` where it is not.
    pub evidence: Option<String>,
    /// Why they cannot be ranks of one run; then none is measured against another. `null` where they can.
    pub not_one_run: Option<String>,
    /// What times are for; ranks with another unit are in no figure.
    pub unit: Unit,
    /// Most ranks first.
    pub verdicts: Vec<VerdictCount>,
    /// The steps of all ranks together; `null` where none are marked.
    pub steps: Option<FleetSteps>,
    /// Each figure over the ranks.
    pub figures: Vec<Spread>,
    /// The worst first.
    pub stragglers: Vec<Straggler>,
    /// Ways to the host that ranks share, where the topology is given.
    pub uplinks: Vec<SharedUplink>,
    /// What to change, by how many ranks it is found on.
    pub findings: Vec<SharedFinding>,
    pub unread: Vec<Unread>,
    pub limitations: Vec<String>,
    pub ranks: Vec<RankSummary>,
    /// Summaries among them that are no ranks of this run, or twice; they are in no figure.
    pub others: Vec<RankSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictCount {
    pub bound: Bound,
    pub ranks: usize,
}

/// Lengths of the steps of all ranks, each to a percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetSteps {
    pub count: u64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
}

/// A finding and the ranks that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedFinding {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: FindingName,
    pub title: String,
    pub ranks: usize,
    /// Of the median rank that has it.
    pub saves_ms_per_step: Saving,
    /// What the ranks together show that none of them does alone.
    pub note: Option<String>,
}
