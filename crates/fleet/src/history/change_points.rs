//! Where does a series of measurements change its level?
//!
//! A split is tested by the medians of up to [`WINDOW`] points before and after it, on the scale of the noise; the best split is
//! kept if it is beyond the noise and large enough to matter, and both sides are searched again. Medians ignore outliers,
//! windows ignore slow drift, and nothing is random: the same series gives the same answer. PELT and E-divisive were the
//! alternatives: the first fits a drift with steps, the second needs permutations for its significance.

use crate::spread::median;

/// Points on each side that a split is tested with. More find smaller changes, and mistake more drift for one.
const WINDOW: usize = 24;
/// A level needs this many points; fewer may be outliers.
const SHORTEST_LEVEL: usize = 5;
/// Standard errors that a change of the medians must reach. A quiet series has about 50 independent splits.
const STANDARD_ERRORS: f64 = 5.0;
/// The standard error of a median, in those of a mean, for normal noise.
const MEDIAN_TO_MEAN: f64 = 1.2533;
/// Standard deviation of normal noise, in median absolute deviations.
const DEVIATIONS: f64 = 1.4826;
/// Points on each side that the noise around a point is measured with.
const NEAR: usize = 4;

/// A change of the level between two points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChangePoint {
    /// The first point of the new level.
    pub(crate) at: usize,
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The standard error of `after - before`.
    pub(crate) error: f64,
}

/// The changes of a series, in order. Smaller ones than `smallest` do not count.
pub(crate) fn change_points(series: &[f64], smallest: f64) -> Vec<ChangePoint> {
    let noise = noise(series).max(smallest / 30.0);
    let mut found = Vec::new();
    let mut left = vec![(0, series.len())];
    while let Some((from, to)) = left.pop() {
        let Some(split) = best_split(&series[from..to], noise) else { continue };
        let is_change = (split.after - split.before).abs() >= smallest.max(STANDARD_ERRORS * split.error);
        if is_change {
            let at = from + split.at;
            found.push(ChangePoint { at, ..split });
            left.push((from, at));
            left.push((at, to));
        }
    }
    found.sort_by_key(|change| change.at);
    found
}

/// The split whose medians differ the most, on the scale of their error.
fn best_split(series: &[f64], noise: f64) -> Option<ChangePoint> {
    let last = series.len().checked_sub(SHORTEST_LEVEL)?;
    let splits = (SHORTEST_LEVEL..=last).map(|at| split(series, at, noise));
    let best = splits.max_by(|a, b| score(a).total_cmp(&score(b)))?;
    // The medians hardly change around the true place; the distances to them do.
    let near = best.at.saturating_sub(WINDOW / 2).max(SHORTEST_LEVEL)..=(best.at + WINDOW / 2).min(last);
    let (from, to) = (best.at.saturating_sub(WINDOW), (best.at + WINDOW).min(series.len()));
    let cost = |at: usize| {
        let (before, after) = (&series[from.min(at)..at], &series[at..to.max(at)]);
        let distance = |part: &[f64], level: f64| part.iter().map(|x| (x - level).abs()).sum::<f64>();
        distance(before, best.before) + distance(after, best.after)
    };
    let at = near.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(best.at);
    Some(split(series, at, noise))
}

fn score(split: &ChangePoint) -> f64 {
    (split.after - split.before).abs() / split.error
}

fn split(series: &[f64], at: usize, noise: f64) -> ChangePoint {
    let before = &series[at.saturating_sub(WINDOW)..at];
    let after = &series[at..(at + WINDOW).min(series.len())];
    let points = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
    let error = MEDIAN_TO_MEAN * noise * points.sqrt();
    ChangePoint { at, before: median(before), after: median(after), error }
}

/// The standard deviation of a point around its level, from what neither a change nor a few outliers move: differences of
/// neighbors, and distances to the median nearby, which also see noise that lasts a few points.
fn noise(series: &[f64]) -> f64 {
    let steps: Vec<f64> = series.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let around = |at: usize| {
        let near = &series[at.saturating_sub(NEAR)..(at + NEAR + 1).min(series.len())];
        (series[at] - median(near)).abs()
    };
    let distances: Vec<f64> = (0..series.len()).map(around).collect();
    DEVIATIONS * (median(&steps) / 2_f64.sqrt()).max(median(&distances))
}

#[cfg(test)]
#[path = "synthetic.rs"]
mod synthetic;
