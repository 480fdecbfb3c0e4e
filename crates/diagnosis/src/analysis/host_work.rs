//! Which host work did the GPU wait for?

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use busbound_cause::HostUse;
use busbound_cause::idle::{GapCause, Gaps};
use busbound_trace::{Interval, NameId, Nanos, OsCall, Trace, TrackId};
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
    /// The share of it that the first of the operators takes.
    #[serde(skip)]
    pub(crate) first_share: f64,
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
    let system = SystemWaits::of(trace);
    for (gap, pieces) in gaps.iter() {
        let thread = gap.call.map(|call| call.track_id());
        for piece in pieces.filter(|piece| matches!(piece.cause, GapCause::Host | GapCause::Input)) {
            let Some(what) = piece.host else { continue };
            let name = piece.during.map(|event| trace.event(event).name_id()).filter(|name| !is_step(*name));
            let times = by_use.entry(what).or_insert_with(|| vec![Nanos::ZERO; 2 * names.len() + 1]);
            let mut rest = piece.interval.length();
            if name.is_none() {
                for (call, time) in system.within(thread, piece.interval) {
                    times[names.len() + 1 + call.index()] += time;
                    rest = rest - time;
                }
            }
            times[name.map_or(names.len(), NameId::index)] += rest;
        }
    }
    let of_use = |(what, times): (HostUse, Vec<Nanos>)| {
        let total = times.iter().copied().sum::<Nanos>().as_millis();
        let mut by_name: BTreeMap<Cow<'_, str>, Nanos> = BTreeMap::new();
        let calls = names.iter().map(|name| (name, true));
        let all = names.iter().chain([NOT_RECORDED]).map(|name| (name, false)).chain(calls);
        for ((name, is_call), time) in all.zip(times).filter(|(_, time)| *time > Nanos::ZERO) {
            let name = if is_call { Cow::Owned(system_call(name)) } else { without_address(name) };
            *by_name.entry(name).or_insert(Nanos::ZERO) += time;
        }
        let mut named: Vec<(Cow<'_, str>, Nanos)> = by_name.into_iter().collect();
        named.sort_by_key(|(_, time)| Reverse(*time));
        let first_share = named.first().map_or(0.0, |(_, time)| time.as_millis() / total);
        let operators = named.into_iter().take(NAMES).map(|(name, _)| printable(&name)).collect();
        HostWork { what, operators, ms: breakdown.averaged(total).unwrap_or(0.0), first_share }
    };
    let mut all: Vec<HostWork> = by_use.into_iter().map(of_use).collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    all
}

/// Calls of system libraries by thread, in time order.
struct SystemWaits(BTreeMap<TrackId, Vec<OsCall>>);

impl SystemWaits {
    fn of(trace: &Trace) -> Self {
        let mut by_thread: BTreeMap<TrackId, Vec<OsCall>> = BTreeMap::new();
        for call in trace.os_calls() {
            by_thread.entry(call.track).or_default().push(*call);
        }
        by_thread.values_mut().for_each(|calls| calls.sort_unstable_by_key(|call| call.interval));
        Self(by_thread)
    }

    /// The calls that this thread was in, and for how long.
    fn within(&self, thread: Option<TrackId>, time: Interval) -> impl Iterator<Item = (NameId, Nanos)> {
        let calls = thread.and_then(|thread| self.0.get(&thread)).map_or(&[][..], Vec::as_slice);
        let first = calls.partition_point(|call| call.interval.end <= time.start);
        let during = calls[first..].iter().take_while(move |call| call.interval.start < time.end);
        during.map(move |call| (call.name, call.interval.intersect(time).length()))
    }
}

/// How a call of a system library is named: `getc()`.
fn system_call(name: &str) -> String {
    format!("{name}()")
}

/// What a thread waits for in a call of a system library, by its name in [`HostWork::operators`]; `None` for other names.
pub(crate) fn waits_for(operator: &str) -> Option<&'static str> {
    let name = operator.strip_suffix("()")?;
    let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    Some(if is(&["getc", "getchar", "gets", "scanf", "getline"]) {
        "input from the terminal or a file"
    } else if is(&["sleep"]) {
        "a time that the program sets"
    } else if is(&["poll", "select", "recv", "send", "accept", "connect"]) {
        "the network or another process"
    } else if is(&["sem_", "cond_", "futex", "mutex", "join", "lock", "barrier"]) {
        "another thread"
    } else if is(&["wait"]) {
        "another process"
    } else if is(&["read", "open", "close", "seek", "stat"]) {
        "a file or another process"
    } else if is(&["write", "sync", "flush"]) {
        "output to be written"
    } else {
        "the system"
    })
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
