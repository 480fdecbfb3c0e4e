//! Is the devices' work all there? Where one sort of it could not be read, shares of the rest mislead.

use busbound_trace::{EventKind, Trace};

use crate::limitations::Limitation;
use crate::quantity::plural;

/// Above this share of the devices' events, work without its time is as good as lost.
const MUCH: f64 = 0.01;

/// Why nothing can be told for certain; `None` where the work is all there.
pub(crate) fn reason(trace: &Trace) -> Option<String> {
    let lost = &trace.stats().lost_work;
    if !lost.damaged.is_empty() {
        return Some(format!("{} rows of this file could not be read", words(lost.damaged.iter())));
    }
    if !lost.beyond_memory.is_empty() {
        let rows = words(lost.beyond_memory.iter());
        return Some(format!("{rows} rows were not all read, because --memory is too small"));
    }
    let without_end: u64 = lost.without_end.values().sum();
    let pieces = trace.events().filter(|event| event.kind().is_gpu_work()).count();
    (without_end as f64 > MUCH * pieces as f64).then(|| ends(trace))
}

/// Work whose time is in no figure.
pub(crate) fn limitation(trace: &Trace) -> Option<Limitation> {
    let has_some = !trace.stats().lost_work.without_end.is_empty();
    has_some
        .then(|| Limitation { id: "no_end", text: format!("{}; their time is in no figure.", ends(trace)) })
}

/// `3 of 6 kernels have no usable end`.
fn ends(trace: &Trace) -> String {
    let each = trace.stats().lost_work.without_end.iter().map(|(&kind, &count)| {
        let all = trace.events().filter(|event| event.kind() == kind).count() as u64;
        let (one, several) = match kind {
            EventKind::Copy => ("copy", "copies"),
            EventKind::Memset => ("memset", "memsets"),
            _ => ("kernel", "kernels"),
        };
        format!("{count} of {}", plural(all.max(count), one, several))
    });
    format!("{} have no usable end", each.collect::<Vec<_>>().join(" and "))
}

fn words<'k>(kinds: impl Iterator<Item = &'k EventKind>) -> String {
    let word = |kind: &EventKind| match kind {
        EventKind::Copy => "copy",
        EventKind::Memset => "memset",
        _ => "kernel",
    };
    kinds.map(word).collect::<Vec<_>>().join(" and ")
}
