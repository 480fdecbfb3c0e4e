//! Which host work did the GPU wait for?

use std::collections::BTreeMap;

use busbound_cause::HostUse;
use busbound_cause::idle::{Gap, GapCause};
use busbound_trace::{Nanos, Trace};
use serde::Serialize;

use crate::analysis::breakdown::StepBreakdown;
use crate::quantity::printable;

/// Host time that a device waited for, by what the host did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct HostWork {
    pub what: HostUse,
    /// The operators, calls, annotations or Python frames that took this time, most first; `not recorded` if the trace has none.
    pub operators: Vec<String>,
    /// Milliseconds per step.
    pub ms: f64,
}

/// At most this many names are listed.
const NAMES: usize = 5;
/// In place of a name, if nothing but the step is recorded.
pub(crate) const NOT_RECORDED: &str = "not recorded";

/// Most time first. `is_step` says whether a name only marks a step.
pub(crate) fn host_work(
    trace: &Trace,
    gaps: &[Gap<'_>],
    breakdown: &StepBreakdown,
    is_step: impl Fn(&str) -> bool,
) -> Vec<HostWork> {
    let mut by_use: BTreeMap<HostUse, BTreeMap<&str, Nanos>> = BTreeMap::new();
    // A name is looked at once.
    let mut steps: BTreeMap<&str, bool> = BTreeMap::new();
    let mut is_step = |name| *steps.entry(name).or_insert_with(|| is_step(name));
    for gap in gaps.iter().filter(|gap| matches!(gap.cause, GapCause::Host | GapCause::Input)) {
        let Some(what) = gap.host else { continue };
        let name = gap.during.map(|event| trace.event(event).name()).filter(|name| !is_step(name));
        *by_use.entry(what).or_default().entry(name.unwrap_or(NOT_RECORDED)).or_default() +=
            gap.interval.length();
    }
    let of_use = |(what, names): (HostUse, BTreeMap<&str, Nanos>)| {
        let total = names.values().copied().sum::<Nanos>().as_millis();
        let mut names: Vec<(&str, Nanos)> = names.into_iter().collect();
        names.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let operators = names.into_iter().take(NAMES).map(|(name, _)| printable(name)).collect();
        HostWork { what, operators, ms: breakdown.averaged(total).unwrap_or(0.0) }
    };
    let mut all: Vec<HostWork> = by_use.into_iter().map(of_use).collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    all
}
