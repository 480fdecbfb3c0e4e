//! What does a fix save?

use serde::{Deserialize, Serialize};

/// Milliseconds that a fix saves per step, or per trace if the trace has no steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saving {
    pub low: f64,
    pub high: f64,
}

impl Saving {
    /// For findings that explain the run but save nothing.
    pub(crate) const NONE: Self = Self { low: 0.0, high: 0.0 };

    /// The best guess.
    pub(crate) fn middle(self) -> f64 {
        self.low.midpoint(self.high)
    }
}
