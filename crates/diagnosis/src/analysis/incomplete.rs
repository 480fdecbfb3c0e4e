//! Is the GPU work complete? If one kind of it could not be read, shares of the rest mislead.

use busbound_trace::{EventKind, LostRows, Trace};

use crate::quantity::{count, plural};

/// Above this share of the GPU events, work that is lost or has no duration may decide the verdict.
const MUCH: f64 = 0.01;

/// Why the verdict is inconclusive; `None` if the work is complete.
pub(crate) fn reason(trace: &Trace) -> Option<String> {
    let lost = &trace.stats().lost_work;
    let is_much = |(_, rows): &(&EventKind, &LostRows)| rows.at_most as f64 > MUCH * rows.of as f64;
    let mut damaged = lost.damaged.iter().filter(is_much).map(|(kind, _)| kind).peekable();
    if damaged.peek().is_some() {
        return Some(format!("{} rows of this file could not be read", words(damaged)));
    }
    if !lost.beyond_memory.is_empty() {
        let rows = words(lost.beyond_memory.iter());
        return Some(format!("some {rows} rows were not read because --memory is too small"));
    }
    let without_end: u64 = lost.without_end.values().sum();
    let work = trace.events().filter(|event| event.kind().is_gpu_work()).count();
    (without_end as f64 > MUCH * work as f64).then(|| ends(trace))
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
        _ => ("kernel", "kernels"),
    }
}
