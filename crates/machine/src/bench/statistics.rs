//! What is the median of repeated times, and are there enough repetitions?

use serde::{Deserialize, Serialize};

use crate::quantile;

/// The median and spread of repeated measurements, in the unit of the input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    pub median: f64,
    pub p5: f64,
    pub p95: f64,
    pub repetitions: u32,
}

impl Spread {
    /// `None` if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        let repetitions = values.len() as u32;
        let mut at = |share| quantile(&mut values, share);
        Some(Self { median: at(0.5)?, p5: at(0.05)?, p95: at(0.95)?, repetitions })
    }

    /// Rates in GB/s from times in which this many bytes were moved.
    pub fn of_rates(ns: &[u64], bytes: u64) -> Option<Self> {
        Self::of(ns.iter().map(|ns| bytes as f64 / *ns as f64))
    }

    pub fn of_ns(ns: &[u64]) -> Option<Self> {
        Self::of(ns.iter().map(|ns| *ns as f64))
    }

    /// The distance from p5 to p95 as a share of the median.
    pub fn relative(&self) -> f64 {
        (self.p95 - self.p5) / self.median
    }
}

/// When to stop repeating.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    pub least: usize,
    pub most: usize,
    /// Time budget; once spent, no more than `least` repetitions run.
    pub ns: u64,
    /// Half the width of the median's 95% confidence interval, as a share of the median.
    pub within: f64,
}

impl Patience {
    /// Whether the median is precise enough, or the budget is spent.
    pub fn is_over(&self, ns: &[u64]) -> bool {
        if ns.len() < self.least {
            return false;
        }
        if ns.len() >= self.most || ns.iter().sum::<u64>() >= self.ns {
            return true;
        }
        median_is_within(ns).is_some_and(|within| within <= self.within)
    }
}

/// Half the width of the median's confidence interval, as a share of the median. It is rank-based, so it assumes no
/// distribution. `None` for fewer than six times, which are not enough.
fn median_is_within(ns: &[u64]) -> Option<f64> {
    if ns.len() < 6 {
        return None;
    }
    let mut sorted = ns.to_vec();
    sorted.sort_unstable();
    let (n, median) = (sorted.len() as f64, sorted[sorted.len() / 2] as f64);
    let reach = 0.98 * n.sqrt();
    let low = (n / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((n / 2.0 + reach).ceil() as usize).min(sorted.len() - 1);
    Some((sorted[high] - sorted[low]) as f64 / 2.0 / median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_101_values_are_the_values_themselves() {
        let spread = Spread::of((0..=100).map(f64::from)).unwrap();
        assert_eq!((spread.p5, spread.median, spread.p95, spread.repetitions), (5.0, 50.0, 95.0, 101));
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([7.0]).unwrap().relative(), 0.0);
        assert_eq!(Spread::of_rates(&[1_000_000], 55_000_000).unwrap().median, 55.0);
    }

    #[test]
    fn steady_times_stop_early_and_scattered_ones_late_but_both_stop() {
        let patience = Patience { least: 9, most: 200, ns: 1_000_000_000, within: 0.01 };
        assert!(!patience.is_over(&[1000; 8]));
        assert!(patience.is_over(&[1000; 9]));
        let scattered: Vec<u64> = (0..150).map(|i| 1000 + 400 * (i % 2)).collect();
        assert!(!patience.is_over(&scattered));
        assert!(patience.is_over(&scattered.iter().cycle().copied().take(200).collect::<Vec<_>>()));
        // Nine times of about 150 ms: the time budget is spent.
        assert!(patience.is_over(&[150_000_000, 140_000_000, 200_000_000].repeat(3)));
    }

    proptest! {
        #[test]
        fn the_median_is_between_p5_and_p95_and_scales_with_the_values(values in prop::collection::vec(1u64..1_000_000, 1..60), by in 2u64..9) {
            let spread = Spread::of_ns(&values).unwrap();
            prop_assert!(spread.p5 <= spread.median && spread.median <= spread.p95);
            let scaled = Spread::of_ns(&values.iter().map(|v| v * by).collect::<Vec<_>>()).unwrap();
            prop_assert!((scaled.median / spread.median - by as f64).abs() < 1e-9);
        }
    }
}
