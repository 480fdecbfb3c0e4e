//! How long are the steps?

use busbound_machine::quantile;
use serde::Serialize;

use super::{StepsFound, Window};
use crate::analysis::unprofiled::Unprofiled;

/// Length of steps in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTimes {
    pub count: usize,
    pub pattern: String,
    pub found: StepsFound,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    /// Warm-up steps at the beginning that no figure includes.
    pub warmup_dropped: usize,
    /// Steps after the warm-up that no figure includes, because outliers are among them.
    pub outliers_dropped: usize,
    /// The length of each step, in order; only the first thousand if there are more.
    pub each_ms: Vec<f64>,
    /// The mean step without the profiler; `null` if it hardly differs, or is not known.
    pub unprofiled_ms: Option<Unprofiled>,
}

/// Steps whose lengths are listed.
const LISTED: usize = 1_000;

impl Window {
    pub(crate) fn times(&self) -> Option<StepTimes> {
        self.times_from(0)
    }

    /// Of the steps from `first` on.
    pub(crate) fn times_from(&self, first: usize) -> Option<StepTimes> {
        let mut lengths: Vec<f64> =
            self.steps.get(first..)?.iter().map(|step| step.length().as_millis()).collect();
        let each_ms = lengths.iter().take(LISTED).copied().collect();
        let count = lengths.len();
        let mut at = |share| quantile(&mut lengths, share);
        Some(StepTimes {
            count,
            pattern: self.pattern.clone()?,
            found: self.found?,
            p50_ms: at(0.5)?,
            p90_ms: at(0.9)?,
            p99_ms: at(0.99)?,
            min_ms: at(0.0)?,
            max_ms: at(1.0)?,
            warmup_dropped: 0,
            outliers_dropped: 0,
            each_ms,
            unprofiled_ms: None,
        })
    }
}
