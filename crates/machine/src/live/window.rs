//! What did the last recorded window of a rank show? `record --every` writes its summary; the `fleet` crate makes these of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The last window of one rank. Verdicts, figures and phases have the names that they have in a diagnosis: a log may be from
/// a version that knows others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankWindow {
    /// The folder below that of `--summaries`; empty for itself.
    pub run: String,
    /// `null` if its process has none.
    pub rank: Option<u32>,
    /// Without a rank: the file name of its recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<OwnProcess>,
    /// When it was recorded, in milliseconds since 1970.
    pub recorded_unix_ms: i64,
    /// How long ago that is; `null` if it is in the future.
    pub age_s: Option<f64>,
    /// How far in the future it was recorded: the clock here or there is wrong, or was set. `null` if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_s: Option<f64>,
    /// Time from one window to the next; `null` if unknown.
    pub every_s: Option<f64>,
    /// Whether two windows are missing since.
    pub is_stale: bool,
    /// Whether its whole recording could be read.
    pub complete: bool,
    /// What bounds the step.
    pub verdict: String,
    /// Why, as a sentence.
    pub because: String,
    /// What figures are per: `step`, `iteration` or `trace`.
    pub unit: String,
    /// Steps in the window, and how they were found; `null` if there are none.
    pub steps: Option<WindowSteps>,
    /// The step (`span_ms`) and its parts, by their names in the catalog of figures.
    pub figures: BTreeMap<String, f64>,
    /// Share of the step, 0 to 1.
    pub phases: BTreeMap<String, f64>,
    /// The change since an earlier window; `null` without one of the same kind.
    pub change: Option<WindowChange>,
}

/// A process without a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnProcess {
    pub name: String,
    /// 1 for the first one that was seen; metrics have this instead of the name.
    pub number: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowSteps {
    pub count: usize,
    /// `annotation` (NVTX or profiler ranges), `given` or `period` (detected in the launches); `null` if unknown.
    pub found: Option<String>,
}

/// The window nearest to one hour before, or the oldest one if all are younger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowChange {
    /// How long before the last window it was recorded.
    pub before_s: f64,
    /// Its step; `null` if steps were not found in both.
    pub span_ms: Option<f64>,
    /// The last step divided by this one, minus 1.
    pub span_change: Option<f64>,
    pub verdict: String,
}
