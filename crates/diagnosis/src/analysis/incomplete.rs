//! Is the GPU work complete? If one kind of it could not be read, shares of the rest mislead.

use std::collections::BTreeMap;

use busbound_trace::{EventKind, LostRows, Trace};

use crate::limits::id::LimitationId;
use crate::quantity::{count, plural};
use crate::verdict::Withheld;

/// Above this share of the GPU events, work that is lost or has no duration may decide the verdict.
const MUCH: f64 = 0.01;

/// What helps if a file is damaged.
const WHOLE: &str = "use the file that the profiler wrote, or record again";

/// Why the verdict is inconclusive; `None` if the work is complete.
pub(crate) fn reason(trace: &Trace) -> Option<Withheld> {
    let because = |id, why, remedy| Some(Withheld { id, why, remedy });
    let lost = &trace.stats().lost_work;
    let is_much = |(_, rows): &(&EventKind, &LostRows)| rows.at_most as f64 > MUCH * rows.of as f64;
    let mut damaged = lost.damaged.iter().filter(is_much).map(|(kind, _)| kind).peekable();
    if damaged.peek().is_some() {
        return because(
            LimitationId::LostRows,
            format!("{} rows of this file could not be read", words(damaged)),
            WHOLE,
        );
    }
    if !lost.beyond_memory.is_empty() {
        let rows = words(lost.beyond_memory.iter());
        let why = format!("some {rows} rows were not read because --memory is too small");
        return because(LimitationId::Lost, why, "allow more with --memory, or record fewer steps");
    }
    let LostRows { at_most: off, of } = lost.kernels_off;
    if off as f64 > MUCH * of as f64 {
        let share = format!("{:.0}%", 100.0 * of.saturating_sub(off) as f64 / of as f64);
        let why = format!(
            "kernels were recorded for {share} of the time only (busbound record --ring samples them when there are many), so that idle time is \
             not visible"
        );
        return because(LimitationId::Lost, why, "record a few steps without --ring");
    }
    if lost.without_end.is_empty() && lost.stray.is_empty() {
        return None;
    }
    let of = |wanted: fn(EventKind) -> bool| {
        let all = trace.events().filter(|event| wanted(event.kind())).count();
        let sum = |counts: &BTreeMap<EventKind, u64>| -> u64 {
            counts.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, count)| count).sum()
        };
        let is_much = |count: u64| count as f64 > MUCH * all as f64;
        (is_much(sum(&lost.without_end)), is_much(sum(&lost.stray)))
    };
    let (work, calls) = (of(EventKind::is_gpu_work), of(EventKind::is_call));
    match () {
        () if work.0 || calls.0 => because(LimitationId::NoEnd, ends(trace), WHOLE),
        () if work.1 => because(LimitationId::Lost, strays(trace), WHOLE),
        () => None,
    }
}

/// Rows of GPU work that could not be read, one sentence per kind.
pub(crate) fn lost_rows(trace: &Trace) -> Vec<String> {
    let damaged = trace.stats().lost_work.damaged.iter().filter(|(_, rows)| rows.at_most < rows.of);
    let sentence = |(kind, rows): (&EventKind, &LostRows)| {
        let (at_most, of) = (count(rows.at_most), count(rows.of));
        format!("At most {at_most} of {of} {} rows could not be read", word(kind))
    };
    damaged.map(sentence).collect()
}

/// The sentence about work without a usable end, if there is any.
pub(crate) fn without_end(trace: &Trace) -> Option<String> {
    (!trace.stats().lost_work.without_end.is_empty()).then(|| ends(trace))
}

/// `3 of 6 kernels have no usable end`.
fn ends(trace: &Trace) -> String {
    let each = trace.stats().lost_work.without_end.iter().map(|(&kind, &count)| {
        let all = trace.events().filter(|event| event.kind() == kind).count() as u64;
        let (one, several) = one_and_several(kind);
        format!("{count} of {}", plural(all.max(count), one, several))
    });
    format!("{} have no usable end", each.collect::<Vec<_>>().join(" and "))
}

/// `3 of 6 kernels have impossible times`.
fn strays(trace: &Trace) -> String {
    let each = trace.stats().lost_work.stray.iter().map(|(&kind, &count)| {
        let all = trace.events().filter(|event| event.kind() == kind).count() as u64 + count;
        let (one, several) = one_and_several(kind);
        format!("{count} of {}", plural(all, one, several))
    });
    format!("{} have impossible times", each.collect::<Vec<_>>().join(" and "))
}

fn words<'k>(kinds: impl Iterator<Item = &'k EventKind>) -> String {
    kinds.map(word).collect::<Vec<_>>().join(" and ")
}

fn word(kind: &EventKind) -> &'static str {
    one_and_several(*kind).0
}

fn one_and_several(kind: EventKind) -> (&'static str, &'static str) {
    match kind {
        EventKind::Copy => ("copy", "copies"),
        EventKind::Memset => ("memset", "memsets"),
        EventKind::RuntimeCall => ("runtime call", "runtime calls"),
        EventKind::DriverCall => ("driver call", "driver calls"),
        _ => ("kernel", "kernels"),
    }
}
