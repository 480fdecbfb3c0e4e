//! Who arrives last at collectives, how long do the others wait for it, and what did it do in the meantime?

use std::collections::BTreeMap;

use busbound_diagnosis::Unit;
use busbound_diagnosis::quantity::milliseconds;
use serde::Serialize;

use crate::align::Clock;
use crate::name::RankName;
use crate::spread::median;
use crate::summary::RankSummary;

/// The order in which ranks arrive at collectives, by aligned clocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arrivals {
    /// Collectives compared: a sample of a few hundred.
    pub collectives: usize,
    /// In how many of them the last arrival is later than the others by more than the clocks' error.
    pub decided: usize,
    /// Ranks that arrive last, longest wait first; at most eight.
    pub late: Vec<LateRank>,
    /// The collectives with the longest waits; at most sixteen.
    pub longest: Vec<CollectiveArrival>,
    /// The answer in a few sentences.
    pub statement: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LateRank {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    /// Compared collectives in which it arrives last.
    pub last_in: usize,
    /// From the second-latest arrival to its own, per step: what the job gains if only this rank is on time.
    pub delay_ms: f64,
    /// What it did longer than the median of the other ranks since the previous collective, per step, most first.
    pub meantime: Vec<Meantime>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meantime {
    pub part: MeantimePart,
    pub ms: f64,
    /// On the median of the other ranks.
    pub median_ms: f64,
}

/// What a rank does before it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MeantimePart {
    Compute,
    Copies,
    /// Idle while the host waits for input.
    Input,
    /// Idle for another reason.
    Idle,
}

impl MeantimePart {
    const ALL: [Self; 4] = [Self::Compute, Self::Copies, Self::Input, Self::Idle];

    pub fn describe(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Copies => "exposed copies",
            Self::Input => "waiting for input",
            Self::Idle => "idle",
        }
    }
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectiveArrival {
    /// Since the first recorded collective.
    pub at_ms: f64,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub first: RankName,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub last: RankName,
    /// From the first arrival to the last.
    pub spread_ms: f64,
    /// From the second-latest arrival to the last.
    pub delay_ms: f64,
    /// Ranks of its process group whose traces are known.
    pub ranks: usize,
    /// In the order of their arrival; of many ranks, the first and the last.
    pub order: Vec<RankArrival>,
}

/// One rank's arrival at a collective.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankArrival {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    /// Since the first arrival.
    pub after_ms: f64,
}

/// A rank arrives last by more than this many times the clocks' error, or the order is open.
const BEYOND_ERROR: f64 = 3.0;
const LISTED_RANKS: usize = 8;
const LISTED: usize = 16;
/// Of more ranks than these two together, only the first and the last arrivals are kept.
const FIRST: usize = 4;
const LAST: usize = 28;
/// A delay below this share of the step does not matter.
const MATTERS: f64 = 0.01;

/// One rank at one collective.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    key: u64,
    rank: usize,
    /// Nanoseconds on the shared clock.
    at: f64,
    error: f64,
    before: [i64; 4],
}

/// `None` if no collective is known on two aligned ranks.
pub(crate) fn arrivals(ranks: &[&RankSummary], clocks: &[Option<Clock>], unit: Unit) -> Option<Arrivals> {
    let all = sorted(ranks, clocks);
    let collectives: Vec<&[Arrival]> =
        all.chunk_by(|a, b| a.key == b.key).filter(|of| of.len() > 1).collect();
    if collectives.is_empty() {
        return None;
    }
    let decided = || collectives.iter().copied().filter(|of| is_decided(of));
    let start = all.iter().map(|arrival| arrival.at).fold(f64::INFINITY, f64::min);
    let mut longest: Vec<CollectiveArrival> = decided().filter_map(|of| listed(of, ranks, start)).collect();
    longest.sort_by(|a, b| b.delay_ms.total_cmp(&a.delay_ms).then(a.at_ms.total_cmp(&b.at_ms)));
    longest.truncate(LISTED);
    let mut by_rank: BTreeMap<usize, Vec<&[Arrival]>> = BTreeMap::new();
    for of in decided() {
        by_rank.entry(of[of.len() - 1].rank).or_default().push(of);
    }
    let mut late: Vec<LateRank> =
        by_rank.iter().map(|(rank, last_in)| late_rank(ranks[*rank], last_in, collectives.len())).collect();
    late.sort_by(|a, b| b.delay_ms.total_cmp(&a.delay_ms));
    late.truncate(LISTED_RANKS);
    let step_ms = median(&ranks.iter().map(|rank| rank.step_ms()).collect::<Vec<_>>());
    let statement = statement(&late, collectives.len(), step_ms, unit);
    Some(Arrivals { collectives: collectives.len(), decided: decided().count(), late, longest, statement })
}

/// By collective, then by arrival.
fn sorted(ranks: &[&RankSummary], clocks: &[Option<Clock>]) -> Vec<Arrival> {
    let mut all = Vec::new();
    for (rank, clock) in clocks.iter().enumerate() {
        let (times, Some(clock)) = (&ranks[rank].collective_times, clock) else { continue };
        all.extend((0..times.len()).map(|at| Arrival {
            key: times.keys[at],
            rank,
            at: clock.shared(times.starts_ns[at]),
            error: clock.error_ns,
            before: [times.compute_ns[at], times.copy_ns[at], times.input_ns[at], times.idle_ns[at]],
        }));
    }
    all.sort_by(|a, b| a.key.cmp(&b.key).then(a.at.total_cmp(&b.at)).then(a.rank.cmp(&b.rank)));
    all
}

/// Nanoseconds from the second-latest arrival to the last.
fn delay(of: &[Arrival]) -> f64 {
    of[of.len() - 1].at - of[of.len() - 2].at
}

fn is_decided(of: &[Arrival]) -> bool {
    let (last, before) = (&of[of.len() - 1], &of[of.len() - 2]);
    delay(of) > BEYOND_ERROR * last.error.max(before.error)
}

fn listed(of: &[Arrival], ranks: &[&RankSummary], start: f64) -> Option<CollectiveArrival> {
    let (first, last) = (of.first()?, of.last()?);
    let is_kept = |at: &usize| *at < FIRST || *at + LAST >= of.len();
    let arrival =
        |at: usize| RankArrival { rank: ranks[of[at].rank].label(), after_ms: (of[at].at - first.at) / 1e6 };
    Some(CollectiveArrival {
        at_ms: (last.at - start) / 1e6,
        first: ranks[first.rank].label(),
        last: ranks[last.rank].label(),
        spread_ms: (last.at - first.at) / 1e6,
        delay_ms: delay(of) / 1e6,
        ranks: of.len(),
        order: (0..of.len()).filter(is_kept).map(arrival).collect(),
    })
}

impl LateRank {
    /// Whether the others wait for it for more than a small part of a step.
    pub(crate) fn matters(&self, step_ms: f64) -> bool {
        self.delay_ms > MATTERS * step_ms
    }
}

/// `last_in` are the collectives in which the rank arrives last, of this many.
fn late_rank(rank: &RankSummary, last_in: &[&[Arrival]], collectives: usize) -> LateRank {
    // The collectives are a sample of those of a step.
    let per_step = |ns: f64| ns / 1e6 / collectives as f64 * rank.collective_times.per_step;
    let mut meantime: Vec<Meantime> = MeantimePart::ALL
        .into_iter()
        .map(|part| {
            let own = last_in.iter().map(|of| of[of.len() - 1].before[part as usize] as f64).sum();
            // Of the others: of two ranks, the median would be half of the difference away.
            let usual = |of: &&[Arrival]| {
                let others = &of[..of.len() - 1];
                median(&others.iter().map(|arrival| arrival.before[part as usize] as f64).collect::<Vec<_>>())
            };
            Meantime { part, ms: per_step(own), median_ms: per_step(last_in.iter().map(usual).sum()) }
        })
        .filter(|meantime| meantime.ms > meantime.median_ms)
        .collect();
    meantime.sort_by(|a, b| (b.ms - b.median_ms).total_cmp(&(a.ms - a.median_ms)));
    let delay_ms = per_step(last_in.iter().map(|of| delay(of)).sum());
    LateRank { rank: rank.label(), last_in: last_in.len(), delay_ms, meantime }
}

fn statement(late: &[LateRank], collectives: usize, step_ms: f64, unit: Unit) -> String {
    let Some(worst) = late.first().filter(|worst| worst.matters(step_ms)) else {
        return format!(
            "No rank arrives much later than the others at the {collectives} collectives compared."
        );
    };
    let rank = worst.rank.to_string();
    let share = 100.0 * worst.last_in as f64 / collectives as f64;
    let mut text = format!(
        "At {share:.0}% of {collectives} collectives compared, the others wait for {rank}: {}/{unit} after the second-latest rank.",
        milliseconds(worst.delay_ms)
    );
    if let Some(most) = worst.meantime.first() {
        text.push_str(&format!(
            " Before them, it spends {}/{unit} in {}, the median rank {}.",
            milliseconds(most.ms),
            most.part.describe(),
            milliseconds(most.median_ms)
        ));
    }
    text
}
