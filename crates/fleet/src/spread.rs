//! How does a figure vary across ranks, and which ranks are outliers?

use busbound_diagnosis::{FigureId, FigureUnit};
use busbound_machine::quantile;
use serde::Serialize;

use crate::name::RankName;
use crate::summary::RankSummary;

/// One figure across the ranks that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    pub figure: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub unit: FigureUnit,
    /// Number of ranks that have it.
    pub ranks: usize,
    pub min: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
    pub max: f64,
    /// The rank with the minimum.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub min_rank: RankName,
    /// The rank with the maximum.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub max_rank: RankName,
    /// Outliers, farthest first.
    pub outliers: Vec<Outlier>,
}

/// An outlier: a rank whose figure is far from the median.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outlier {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    pub path: String,
    pub value: f64,
}

/// Fewest ranks for an outlier: of two ranks, neither is.
pub(crate) const FEWEST: usize = 3;

/// A value is an outlier beyond this many standard deviations from the median: the usual threshold for the median
/// absolute deviation (Iglewicz and Hoaglin).
const FAR: f64 = 3.5;
/// Standard deviation over median absolute deviation of a normal distribution.
const NORMAL: f64 = 1.4826;

/// The median of the ranks, and the distance from it that makes an outlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Threshold {
    pub(crate) median: f64,
    pub(crate) far: f64,
}

impl Threshold {
    /// `least` is the smallest distance that matters, however similar the other values are.
    pub(crate) fn of(values: &[f64], least: f64) -> Option<Self> {
        let median = busbound_machine::median(values.iter().copied())?;
        let deviation = busbound_machine::median(values.iter().map(|value| (value - median).abs()))?;
        (values.len() >= FEWEST).then_some(Self { median, far: (FAR * NORMAL * deviation).max(least) })
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    busbound_machine::median(values.iter().copied()).unwrap_or(0.0)
}

impl Spread {
    /// The spread of a figure across ranks; `None` if no rank has it, or it is 0 on all.
    pub(crate) fn over(ranks: &[&RankSummary], name: &str, figure: FigureId, least: f64) -> Option<Self> {
        let mut known: Vec<(f64, &RankSummary)> =
            ranks.iter().filter_map(|rank| Some((rank.figure(figure)?, *rank))).collect();
        // Stable: among equal values, the first rank is named.
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut values: Vec<f64> = known.iter().map(|(value, _)| *value).collect();
        let (min, max) = (*values.first()?, *values.last()?);
        if min == 0.0 && max == 0.0 {
            return None;
        }
        let mut outliers: Vec<(f64, &RankSummary)> = match Threshold::of(&values, least) {
            Some(threshold) => {
                let distance = |value: f64| (value - threshold.median).abs();
                let far = known.iter().filter(|(value, _)| distance(*value) > threshold.far).copied();
                let mut far: Vec<_> = far.collect();
                far.sort_by(|a, b| distance(b.0).total_cmp(&distance(a.0)));
                far
            }
            None => Vec::new(),
        };
        let mut at = |share| quantile(&mut values, share).unwrap_or(0.0);
        let (p10, p50, p90) = (at(0.1), at(0.5), at(0.9));
        // If half of the ranks are far from the median, none is an outlier.
        if 2 * outliers.len() >= values.len() {
            outliers.clear();
        }
        let (_, smallest) = *known.first()?;
        let (_, largest) = known.iter().find(|(value, _)| *value == max)?;
        Some(Self {
            figure: name.to_owned(),
            unit: figure.unit(),
            ranks: values.len(),
            min,
            p10,
            p50,
            p90,
            max,
            min_rank: smallest.label(),
            max_rank: largest.label(),
            outliers: outliers
                .iter()
                .map(|(value, rank)| Outlier { rank: rank.label(), path: rank.path.clone(), value: *value })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_robust() {
        // One extreme value moves neither the median nor the threshold.
        let tame = Threshold::of(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.1);
        let wild = Threshold::of(&[10.0, 11.0, 12.0, 13.0, 9999.0], 0.1);
        assert_eq!(tame, Some(Threshold { median: 12.0, far: 3.5 * 1.4826 }));
        assert_eq!(wild, tame);
        assert_eq!(Threshold::of(&[5.0, 5.0, 5.0, 9.0], 0.25), Some(Threshold { median: 5.0, far: 0.25 }));
        assert_eq!(Threshold::of(&[5.0, 9.0], 0.25), None);
    }
}
