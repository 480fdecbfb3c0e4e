//! Which host work did the GPU wait for?

use std::collections::BTreeMap;

use busbound_cause::HostUse;
use busbound_cause::idle::{Gap, GapCause};
use busbound_trace::Nanos;
use serde::Serialize;

use crate::analysis::facts::Facts;
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
const NOT_RECORDED: &str = "not recorded";

/// Most time first.
pub(crate) fn host_work(facts: &Facts<'_>) -> Vec<HostWork> {
    let mut by_use: BTreeMap<HostUse, BTreeMap<String, Nanos>> = BTreeMap::new();
    for gap in facts.gaps.iter().filter(|gap| matches!(gap.cause, GapCause::Host | GapCause::Input)) {
        let Some(what) = gap.host else { continue };
        let name = name_of(facts, gap).map_or_else(|| NOT_RECORDED.to_owned(), printable);
        *by_use.entry(what).or_default().entry(name).or_default() += gap.interval.length();
    }
    let mut all: Vec<HostWork> = by_use.into_iter().map(|(what, names)| of_use(facts, what, names)).collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    all
}

fn of_use(facts: &Facts<'_>, what: HostUse, names: BTreeMap<String, Nanos>) -> HostWork {
    let total = names.values().copied().sum::<Nanos>().as_millis();
    let mut names: Vec<(String, Nanos)> = names.into_iter().collect();
    names.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let operators = names.into_iter().take(NAMES).map(|(name, _)| name).collect();
    HostWork { what, operators, ms: facts.breakdown.averaged(total).unwrap_or(0.0) }
}

/// The innermost event that the host was in; `None` if it was only in the step.
fn name_of<'a>(facts: &Facts<'a>, gap: &Gap<'_>) -> Option<&'a str> {
    let name = facts.trace.event(gap.during?).name();
    let is_step = facts.marks_steps(name) || name.starts_with("ProfilerStep#");
    (!is_step).then_some(name)
}
