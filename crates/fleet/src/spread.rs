//! How is a figure spread over the ranks, and which rank is far from the rest?

use serde::Serialize;

use crate::summary::RankSummary;

/// One figure over the ranks that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    pub figure: String,
    pub unit: &'static str,
    /// Ranks that have it.
    pub ranks: usize,
    pub min: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
    pub max: f64,
    /// Whose they are.
    pub min_rank: String,
    pub max_rank: String,
    /// Ranks far from the rest, the farthest first.
    pub apart: Vec<Apart>,
}

/// A rank whose figure is far from the median.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Apart {
    pub rank: String,
    pub path: String,
    pub value: f64,
}

/// Two ranks differ, and which of them is the odd one cannot be told.
pub(crate) const FEWEST: usize = 3;

/// Deviations from the median, in those of a normal distribution, from which on a value is an outlier: the usual bar for
/// the median absolute deviation (Iglewicz and Hoaglin).
const FAR: f64 = 3.5;
/// The median absolute deviation of a normal distribution of deviation 1, inverted.
const NORMAL: f64 = 1.4826;

/// The middle of the ranks and how far from it is far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) far: f64,
}

impl Middle {
    /// `least` is the difference that matters at all, however alike the others are.
    pub(crate) fn of(values: &[f64], least: f64) -> Option<Self> {
        let median = quantile(&sorted(values), 0.5)?;
        let deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let deviation = quantile(&sorted(&deviations), 0.5)?;
        (values.len() >= FEWEST).then_some(Self { median, far: (FAR * NORMAL * deviation).max(least) })
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5).unwrap_or(0.0)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// Between the two values nearest to it where it falls between.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

impl Spread {
    /// The spread of what `of` says of each rank; `None` where no rank has it, or all have nothing.
    pub(crate) fn over(
        ranks: &[&RankSummary],
        figure: impl Into<String>,
        unit: &'static str,
        least: f64,
        of: impl Fn(&RankSummary) -> Option<f64>,
    ) -> Option<Self> {
        let mut told: Vec<(f64, &RankSummary)> =
            ranks.iter().filter_map(|rank| Some((of(rank)?, *rank))).collect();
        // Of equal ones the first rank is named.
        told.sort_by(|a, b| a.0.total_cmp(&b.0));
        let values: Vec<f64> = told.iter().map(|(value, _)| *value).collect();
        let (min, max) = (*values.first()?, *values.last()?);
        if min == 0.0 && max == 0.0 {
            return None;
        }
        let at = |share| quantile(&values, share).unwrap_or(0.0);
        let mut apart: Vec<(f64, &RankSummary)> = match Middle::of(&values, least) {
            Some(middle) => {
                let distance = |value: f64| (value - middle.median).abs();
                let far = told.iter().filter(|(value, _)| distance(*value) > middle.far).copied();
                let mut far: Vec<_> = far.collect();
                far.sort_by(|a, b| distance(b.0).total_cmp(&distance(a.0)));
                far
            }
            None => Vec::new(),
        };
        // Where half of the ranks are apart there is no rest to be apart from.
        if 2 * apart.len() >= values.len() {
            apart.clear();
        }
        let largest = told.iter().find(|(value, _)| *value == max).map_or(String::new(), |(_, r)| r.label());
        Some(Self {
            figure: figure.into(),
            unit,
            ranks: values.len(),
            min,
            p10: at(0.1),
            p50: at(0.5),
            p90: at(0.9),
            max,
            min_rank: told.first().map_or(String::new(), |(_, rank)| rank.label()),
            max_rank: largest,
            apart: apart
                .iter()
                .map(|(value, rank)| Apart { rank: rank.label(), path: rank.path.clone(), value: *value })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_and_far_is_robust() {
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.9), Some(3.6));
        assert_eq!(quantile(&[], 0.5), None);
        // One wild value moves neither the middle nor the bar.
        let tame = Middle::of(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.1);
        let wild = Middle::of(&[10.0, 11.0, 12.0, 13.0, 9999.0], 0.1);
        assert_eq!(tame, Some(Middle { median: 12.0, far: 3.5 * 1.4826 }));
        assert_eq!(wild, tame);
        assert_eq!(Middle::of(&[5.0, 5.0, 5.0, 9.0], 0.25), Some(Middle { median: 5.0, far: 0.25 }));
        assert_eq!(Middle::of(&[5.0, 9.0], 0.25), None);
    }
}
