//! How do the clocks of the ranks relate? The same collective ends on all of its ranks at nearly the same time, so the ends of
//! many give each clock's offset and drift, and how far the ends scatter gives the error.
//!
//! Ranks without a common process group are aligned through ranks that are in both of their groups; errors add up.

use std::collections::BTreeMap;

use busbound_diagnosis::CollectiveTimes;
use busbound_diagnosis::quantity::milliseconds;
use serde::Serialize;

use crate::list::some_of;
use crate::name::RankName;
use crate::spread::median;
use crate::summary::RankSummary;

/// The clocks of the ranks, relative to one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alignment {
    /// The rank whose clock the others are compared with.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub reference: RankName,
    /// The largest error of an aligned rank.
    pub error_us: f64,
    pub ranks: Vec<RankClock>,
    /// Ranks that have too few collectives in common with the others, or whose collectives contradict each other.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub not_aligned: Vec<RankName>,
    /// The answer in a sentence.
    pub statement: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankClock {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    /// What its clock shows more than the reference, at its first common collective.
    pub offset_ms: f64,
    /// How much faster its clock runs, in parts per million.
    pub drift_ppm: f64,
    /// Nine of ten collectives end within this time of where the aligned clock puts them.
    pub error_us: f64,
    /// Collectives that it was aligned by.
    pub collectives: usize,
}

/// One clock relative to the reference: `own − origin = x + offset + slope · x`, with x the time since the reference's origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clock {
    origin: i64,
    offset: f64,
    slope: f64,
    pub(crate) error_ns: f64,
    collectives: usize,
}

impl Clock {
    /// The clock of the reference, with an error.
    #[cfg(test)]
    pub(crate) fn of_error(error_ns: f64) -> Self {
        Self { origin: 0, offset: 0.0, slope: 0.0, error_ns, collectives: 0 }
    }

    /// Nanoseconds since the origin of the reference.
    pub(crate) fn shared(&self, own: i64) -> f64 {
        (own.saturating_sub(self.origin) as f64 - self.offset) / (1.0 + self.slope)
    }
}

/// With fewer common collectives, one that ended late would decide.
const FEWEST: usize = 5;
/// Crystals drift by at most a few hundred parts per million: a larger slope means that the wrong collectives were matched.
const MOST_DRIFT: f64 = 1e-3;
/// An error above this share of the step allows no statement about who arrived when.
const MOST_ERROR: f64 = 0.05;
/// Share of collectives that may end on one rank before they start on another by more than the error.
const MOST_CONTRADICTING: f64 = 0.1;

/// The clock of each rank, in order; `None` for those that cannot be aligned.
pub(crate) fn clocks(ranks: &[&RankSummary]) -> Vec<Option<Clock>> {
    let times: Vec<&CollectiveTimes> = ranks.iter().map(|rank| &rank.collective_times).collect();
    let mut members: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
    for (rank, times) in times.iter().enumerate() {
        for at in 0..times.len() {
            members.entry(times.keys[at]).or_default().push((rank, at));
        }
    }
    members.retain(|_, of| of.len() > 1);
    let mut clocks: Vec<Option<Clock>> = vec![None; ranks.len()];
    let Some(reference) = members.values().flatten().map(|(rank, _)| *rank).min() else { return clocks };
    let origin = times[reference].starts_ns.first().copied().unwrap_or(0);
    clocks[reference] =
        Some(Clock { origin, offset: 0.0, slope: 0.0, error_ns: 0.0, collectives: times[reference].len() });
    let mut next = vec![reference];
    while let Some(hub) = next.pop() {
        let Some(of_hub) = clocks[hub] else { continue };
        if clocks.iter().all(Option::is_some) {
            break;
        }
        for (rank, common) in common_with(hub, &times[hub].keys, &members, &clocks) {
            let pairs: Vec<(f64, i64)> = common
                .iter()
                .map(|(hub_at, at)| (of_hub.shared(end(times[hub], *hub_at)), end(times[rank], *at)))
                .collect();
            if let Some(clock) = fit(&pairs, of_hub.error_ns) {
                clocks[rank] = Some(clock);
                next.push(rank);
            }
        }
    }
    reject(ranks, &times, &members, &mut clocks);
    clocks
}

fn end(times: &CollectiveTimes, at: usize) -> i64 {
    times.starts_ns[at].saturating_add(times.durations_ns[at])
}

/// Of each rank that is not aligned yet, the collectives that it has in common with `hub`: positions in both lists.
fn common_with(
    hub: usize,
    keys: &[u64],
    members: &BTreeMap<u64, Vec<(usize, usize)>>,
    clocks: &[Option<Clock>],
) -> BTreeMap<usize, Vec<(usize, usize)>> {
    let mut common: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (hub_at, key) in keys.iter().enumerate() {
        let of_key = members.get(key).map_or(&[][..], Vec::as_slice);
        for (rank, at) in of_key.iter().filter(|(rank, _)| *rank != hub && clocks[*rank].is_none()) {
            common.entry(*rank).or_default().push((hub_at, *at));
        }
    }
    common
}

/// Pairs of shared time and own time, in order. The slope is the median of slopes between far points, the offset the median
/// of what remains, so a third of the pairs may be wrong.
fn fit(pairs: &[(f64, i64)], error_of_hub: f64) -> Option<Clock> {
    let origin = pairs.first()?.1;
    if pairs.len() < FEWEST {
        return None;
    }
    let differences: Vec<(f64, f64)> =
        pairs.iter().map(|(shared, own)| (*shared, own.saturating_sub(origin) as f64 - shared)).collect();
    let half = differences.len() / 2;
    let slopes: Vec<f64> = differences
        .iter()
        .zip(&differences[half..])
        .filter(|(early, late)| late.0 > early.0)
        .map(|(early, late)| (late.1 - early.1) / (late.0 - early.0))
        .collect();
    let slope = if slopes.is_empty() { 0.0 } else { median(&slopes) };
    if slope.abs() > MOST_DRIFT {
        return None;
    }
    let rest: Vec<f64> = differences.iter().map(|(shared, difference)| difference - slope * shared).collect();
    let offset = median(&rest);
    let mut scatter: Vec<f64> = rest.iter().map(|rest| (rest - offset).abs()).collect();
    scatter.sort_by(f64::total_cmp);
    let error_ns = error_of_hub + scatter[(9 * scatter.len() / 10).min(scatter.len() - 1)];
    Some(Clock { origin, offset, slope, error_ns, collectives: pairs.len() })
}

/// Drops clocks that are too uncertain, and those by which collectives end on one rank before they start on another.
fn reject(
    ranks: &[&RankSummary],
    times: &[&CollectiveTimes],
    members: &BTreeMap<u64, Vec<(usize, usize)>>,
    clocks: &mut [Option<Clock>],
) {
    for (clock, rank) in clocks.iter_mut().zip(ranks) {
        *clock = clock.filter(|clock| clock.error_ns <= MOST_ERROR * rank.step_ms() * 1e6);
    }
    // Per rank: how many of its collectives start after another rank has ended them, and how many there are.
    let mut contradictions = vec![(0, 0); clocks.len()];
    for of_key in members.values() {
        let placed = || of_key.iter().filter_map(|(rank, at)| Some((*rank, *at, clocks[*rank]?)));
        let first_end = placed().map(|(rank, at, clock)| clock.shared(end(times[rank], at)) + clock.error_ns);
        let first_end = first_end.fold(f64::INFINITY, f64::min);
        for (rank, at, clock) in placed() {
            let counted: &mut (usize, usize) = &mut contradictions[rank];
            counted.0 += usize::from(clock.shared(times[rank].starts_ns[at]) - clock.error_ns > first_end);
            counted.1 += 1;
        }
    }
    for (clock, (against, of)) in clocks.iter_mut().zip(contradictions) {
        *clock = clock.filter(|_| against as f64 <= MOST_CONTRADICTING * of as f64);
    }
}

impl Alignment {
    /// `None` if fewer than two ranks are aligned.
    pub(crate) fn of(ranks: &[&RankSummary], clocks: &[Option<Clock>]) -> Option<Self> {
        let aligned = || ranks.iter().zip(clocks).filter_map(|(rank, clock)| Some((rank, (*clock)?)));
        let (first, reference) = aligned().next().filter(|_| aligned().count() > 1)?;
        let clock = |(rank, clock): (&&RankSummary, Clock)| RankClock {
            rank: rank.label(),
            offset_ms: (clock.origin.saturating_sub(reference.origin) as f64 - clock.shared(clock.origin))
                / 1e6,
            drift_ppm: clock.slope * 1e6,
            error_us: clock.error_ns / 1e3,
            collectives: clock.collectives,
        };
        let list: Vec<RankClock> = aligned().map(clock).collect();
        let error_us = list.iter().map(|clock| clock.error_us).fold(0.0, f64::max);
        let not_aligned: Vec<RankName> = ranks
            .iter()
            .zip(clocks)
            .filter(|(_, clock)| clock.is_none())
            .map(|(rank, _)| rank.label())
            .collect();
        let mut statement = format!(
            "The clocks of {} ranks are aligned by the ends of the collectives that they share, to within {}.",
            list.len(),
            milliseconds(error_us / 1e3)
        );
        if !not_aligned.is_empty() {
            statement.push_str(&format!(" Not aligned: {}.", some_of(&not_aligned)));
        }
        Some(Self { reference: first.label(), error_us, ranks: list, not_aligned, statement })
    }
}
