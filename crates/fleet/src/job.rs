//! What would a step of the job take if a rank were on time? All ranks wait for the last one, so the job gains only until the
//! second-latest rank is the last.

use busbound_diagnosis::Unit;
use busbound_diagnosis::quantity::milliseconds;
use serde::Serialize;

use crate::arrivals::{Arrivals, LateRank};
use crate::name::RankName;
use crate::stragglers::Straggler;
use crate::summary::RankSummary;

/// The step of the job without the delay of a rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobScenario {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    /// What of the rank's delay is removed; `null` for all of it.
    pub cause: Option<String>,
    /// The step of the job now.
    pub now_ms: f64,
    pub step_ms: f64,
    pub basis: JobBasis,
    /// The answer in a sentence.
    pub statement: String,
}

/// Where a scenario comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum JobBasis {
    /// The order of arrival at collectives, by aligned clocks.
    Arrivals,
    /// The time that each rank spends outside communication; no clocks are compared.
    OwnTimes,
}

/// Smaller gains, as a share of the step, are not worth a line.
const MATTERS: f64 = 0.01;

/// For each late rank: without its delay, then without each of its causes.
pub(crate) fn scenarios(
    ranks: &[&RankSummary],
    stragglers: &[Straggler],
    arrivals: Option<&Arrivals>,
    step_ms: f64,
    unit: Unit,
) -> Vec<JobScenario> {
    let from = |rank: &RankName, delay_ms: f64, causes: Vec<(String, f64)>, basis: JobBasis| {
        let saved = delay_ms.min(step_ms);
        let all = std::iter::once((None, saved));
        // Two causes together do not gain more than the delay.
        let each = causes.into_iter().map(|(cause, ms)| (Some(cause), ms.min(saved)));
        let worth = all.chain(each).filter(|(_, ms)| *ms > MATTERS * step_ms);
        worth.map(|(cause, ms)| scenario(rank, cause, step_ms, ms, basis, unit)).collect::<Vec<_>>()
    };
    if let Some(arrivals) = arrivals.filter(|arrivals| arrivals.decided > 0) {
        let of_rank = |late: &LateRank| from(&late.rank, late.delay_ms, causes(late), JobBasis::Arrivals);
        return arrivals.late.iter().flat_map(of_rank).collect();
    }
    let mut own: Vec<f64> = ranks.iter().map(|rank| rank.time.own_ms()).collect();
    own.sort_by(f64::total_cmp);
    // Only the slowest delays the job; without clocks, whether others also do is open.
    let slowest =
        stragglers.iter().find(|one| one.others_wait_ms.is_some() && Some(&one.own_ms) == own.last());
    let next = own.len().checked_sub(2).map_or(0.0, |at| own[at]);
    slowest.map_or_else(Vec::new, |one| {
        let differences = one.differences.iter().map(|part| (part.part.clone(), part.ms - part.median_ms));
        let delay = (one.own_ms - next).min(one.others_wait_ms.unwrap_or(0.0));
        from(&one.rank, delay, differences.collect(), JobBasis::OwnTimes)
    })
}

fn causes(late: &LateRank) -> Vec<(String, f64)> {
    let more = |part: &crate::arrivals::Meantime| (part.part.describe().to_owned(), part.ms - part.median_ms);
    late.meantime.iter().map(more).collect()
}

fn scenario(
    rank: &RankName,
    cause: Option<String>,
    now_ms: f64,
    saved: f64,
    basis: JobBasis,
    unit: Unit,
) -> JobScenario {
    let step_ms = now_ms - saved;
    let what = match &cause {
        None => format!("Without {rank}'s delay"),
        Some(cause) => format!("Without {rank}'s additional {cause}"),
    };
    let statement = format!("{what}: {} → {}/{unit}", milliseconds(now_ms), milliseconds(step_ms));
    JobScenario { rank: rank.clone(), cause, now_ms, step_ms, basis, statement }
}
