//! What does a fix save?

use serde::{Deserialize, Serialize};

/// Milliseconds a step (or trace, where there are no steps) that a fix saves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saving {
    pub low: f64,
    pub high: f64,
}

impl Saving {
    /// For findings that explain the run and save nothing by themselves.
    pub(crate) const NONE: Self = Self { low: 0.0, high: 0.0 };
}
