//! How is a figure spread over the ranks, and which rank is far from the rest?

use busbound_diagnosis::{FigureId, FigureUnit};
use busbound_machine::quantile;
use serde::Serialize;

use crate::name::RankName;
use crate::summary::RankSummary;

/// One figure over the ranks that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    pub figure: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub unit: FigureUnit,
    /// Ranks that have it.
    pub ranks: usize,
    pub min: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
    pub max: f64,
    /// Whose they are.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub min_rank: RankName,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub max_rank: RankName,
    /// Ranks far from the rest, the farthest first.
    pub apart: Vec<Apart>,
}

/// A rank whose figure is far from the median.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Apart {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
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
        let middle = busbound_machine::median(values.iter().copied())?;
        let deviation = busbound_machine::median(values.iter().map(|value| (value - middle).abs()))?;
        (values.len() >= FEWEST)
            .then_some(Self { median: middle, far: (FAR * NORMAL * deviation).max(least) })
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    busbound_machine::median(values.iter().copied()).unwrap_or(0.0)
}

impl Spread {
    /// The spread of a figure over the ranks; `None` where no rank has it, or all have nothing.
    pub(crate) fn over(ranks: &[&RankSummary], name: &str, figure: FigureId, least: f64) -> Option<Self> {
        let mut told: Vec<(f64, &RankSummary)> =
            ranks.iter().filter_map(|rank| Some((rank.figure(figure)?, *rank))).collect();
        // Of equal ones the first rank is named.
        told.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut values: Vec<f64> = told.iter().map(|(value, _)| *value).collect();
        let (min, max) = (*values.first()?, *values.last()?);
        if min == 0.0 && max == 0.0 {
            return None;
        }
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
        let mut at = |share| quantile(&mut values, share).unwrap_or(0.0);
        let (p10, p50, p90) = (at(0.1), at(0.5), at(0.9));
        // Where half of the ranks are apart there is no rest to be apart from.
        if 2 * apart.len() >= values.len() {
            apart.clear();
        }
        let (_, smallest) = *told.first()?;
        let (_, largest) = told.iter().find(|(value, _)| *value == max)?;
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
    fn what_is_far_is_robust() {
        // One wild value moves neither the middle nor the bar.
        let tame = Middle::of(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.1);
        let wild = Middle::of(&[10.0, 11.0, 12.0, 13.0, 9999.0], 0.1);
        assert_eq!(tame, Some(Middle { median: 12.0, far: 3.5 * 1.4826 }));
        assert_eq!(wild, tame);
        assert_eq!(Middle::of(&[5.0, 5.0, 5.0, 9.0], 0.25), Some(Middle { median: 5.0, far: 0.25 }));
        assert_eq!(Middle::of(&[5.0, 9.0], 0.25), None);
    }
}
