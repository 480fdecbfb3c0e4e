//! How long were the steps of all ranks? Counts in bins that grow by 2% and add up exactly: the quantiles of merged
//! sketches are those of all their steps, within 1%.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Ratio from one bin to the next.
const GROWTH: f64 = 1.02;

/// Counts of lengths by bin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepSketch {
    /// Bin n counts lengths from 1.02ⁿ ms up to the next bin.
    bins: BTreeMap<i32, u64>,
}

impl StepSketch {
    pub fn of(lengths_ms: &[f64]) -> Self {
        let mut bins = BTreeMap::new();
        for ms in lengths_ms.iter().filter(|ms| ms.is_finite() && **ms > 0.0) {
            *bins.entry((ms.ln() / GROWTH.ln()).floor() as i32).or_insert(0) += 1;
        }
        Self { bins }
    }

    /// Adds the steps of another sketch.
    pub fn add(&mut self, other: &Self) {
        for (bin, count) in &other.bins {
            *self.bins.entry(*bin).or_insert(0) += count;
        }
    }

    pub fn count(&self) -> u64 {
        self.bins.values().sum()
    }

    /// The length that this share of the steps does not exceed; `None` without steps.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count().checked_sub(1)? as f64).round() as u64;
        let mut before = 0;
        let within = |(_, count): &(&i32, &u64)| {
            before += **count;
            before > rank
        };
        // The center of the bin: every length in it is within 1%.
        self.bins.iter().find(within).map(|(bin, _)| GROWTH.powf(f64::from(*bin) + 0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent_and_sketches_add_up() {
        let all: Vec<f64> = (1..=1000).map(f64::from).collect();
        let mut sum = StepSketch::default();
        for part in all.chunks(7) {
            sum.add(&StepSketch::of(part));
        }
        assert_eq!(sum, StepSketch::of(&all));
        assert_eq!(sum.count(), 1000);
        for (share, expected) in [(0.0, 1.0), (0.5, 501.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = sum.quantile_ms(share).unwrap_or_default();
            assert!((found / expected - 1.0).abs() < 0.011, "{share}: {found}");
        }
        assert_eq!(StepSketch::of(&[0.0, f64::NAN]).quantile_ms(0.5), None);
    }
}
