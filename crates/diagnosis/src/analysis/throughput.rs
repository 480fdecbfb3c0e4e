//! How many tokens or samples does a run process per second?

use serde::Serialize;

use crate::per_step::PerStep;
use crate::steps::window::StepTimes;
use crate::unit::Unit;

/// What a run processes per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// The figure in requirements, e.g. `tokens_per_s`.
    pub name: String,
    pub per_step: f64,
    /// Divided by the median step after the warm-up, outliers included. `null` if the trace marks no steps: a detected
    /// iteration may be a part of a step.
    pub per_s: Option<f64>,
}

pub(crate) fn throughput(per_step: &[PerStep], steps: Option<&StepTimes>) -> Vec<Throughput> {
    let seconds = steps
        .filter(|steps| steps.found.unit() == Unit::Step && steps.p50_ms > 0.0)
        .map(|steps| steps.p50_ms / 1e3);
    let one = |given: &PerStep| Throughput {
        name: given.figure(),
        per_step: given.count,
        per_s: seconds.map(|seconds| given.count / seconds),
    };
    per_step.iter().map(one).collect()
}
