//! Which host work did the GPU wait for?

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use busbound_cause::HostUse;
use busbound_cause::idle::{GapCause, Gaps};
use busbound_trace::{NameId, Nanos, Trace};
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
    gaps: &Gaps<'_>,
    breakdown: &StepBreakdown,
    is_step: impl Fn(&str) -> bool,
) -> Vec<HostWork> {
    let names = trace.names();
    // Time by name number; the last entry is time without a name.
    let mut by_use: BTreeMap<HostUse, Vec<Nanos>> = BTreeMap::new();
    // A name is looked at once.
    let mut steps: Vec<Option<bool>> = vec![None; names.len()];
    let mut is_step = |name: NameId| *steps[name.index()].get_or_insert_with(|| is_step(names.get(name)));
    for gap in gaps.pieces().filter(|gap| matches!(gap.cause, GapCause::Host | GapCause::Input)) {
        let Some(what) = gap.host else { continue };
        let name = gap.during.map(|event| trace.event(event).name_id()).filter(|name| !is_step(*name));
        let times = by_use.entry(what).or_insert_with(|| vec![Nanos::ZERO; names.len() + 1]);
        times[name.map_or(names.len(), NameId::index)] += gap.interval.length();
    }
    let of_use = |(what, times): (HostUse, Vec<Nanos>)| {
        let total = times.iter().copied().sum::<Nanos>().as_millis();
        let mut by_name: BTreeMap<Cow<'_, str>, Nanos> = BTreeMap::new();
        for (name, time) in names.iter().chain([NOT_RECORDED]).zip(times) {
            if time > Nanos::ZERO {
                *by_name.entry(without_address(name)).or_insert(Nanos::ZERO) += time;
            }
        }
        let mut named: Vec<(Cow<'_, str>, Nanos)> = by_name.into_iter().collect();
        named.sort_by_key(|(_, time)| Reverse(*time));
        let operators = named.into_iter().take(NAMES).map(|(name, _)| printable(&name)).collect();
        HostWork { what, operators, ms: breakdown.averaged(total).unwrap_or(0.0) }
    };
    let mut all: Vec<HostWork> = by_use.into_iter().map(of_use).collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    all
}

/// A method of a Python object without its address, by which every object would have a name of its own.
fn without_address(name: &str) -> Cow<'_, str> {
    const ADDRESS: &str = " object at 0x";
    let Some((before, after)) = name.split_once(ADDRESS) else { return Cow::Borrowed(name) };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    Cow::Owned(format!("{before}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_two_objects_have_one_name() {
        let of = |name| without_address(name).into_owned();
        assert_eq!(
            of("<built-in method astype of numpy.ndarray object at 0x7cbf780f01b0>"),
            "<built-in method astype of numpy.ndarray>"
        );
        assert_eq!(of("aten::copy_"), "aten::copy_");
    }
}
