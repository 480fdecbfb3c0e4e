//! What does a trace without GPU events show about communication? Which collectives the host issued, and which copies surround them.

use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{Event, EventKind, Interval, Timestamp, Trace};
use serde::Serialize;

use crate::activity::collectives::ON_HOST;
use crate::analysis::copies_around::BELONGS_WITHIN;
use crate::analysis::cpu_copies::copy_operators;

/// How the operators and ranges of communication libraries begin.
const PREFIXES: [&str; 8] = [
    "nccl:",
    ON_HOST,
    "mpi:",
    "c10d::",
    "_c10d_functional::",
    "FSDP::all_gather",
    "FSDP::reduce_scatter",
    "record_param_comms",
];

/// Collectives of one name, as the host issued them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuCollective {
    pub name: String,
    pub count: u64,
    /// Host time inside these operators. What they took on the GPU is not visible.
    pub host_ms: f64,
    /// Copies whose next collective on the same thread is one of these, within 10 ms: for FSDP with CPU offload, the copy of the
    /// shard before its all-gather.
    pub copies_before: u64,
    pub copied_bytes: u64,
    /// Median time from the end of such a copy to the collective.
    pub gap_ms: Option<f64>,
}

/// Most host time first.
pub(crate) fn cpu_collectives(trace: &Trace, steps: Option<Interval>) -> Vec<CpuCollective> {
    let is_inside = |event: &Event<'_>| steps.is_none_or(|steps| steps.contains(event.start()));
    let issued: Vec<Event<'_>> = trace.events().filter(is_communication).filter(is_inside).collect();
    let mut by_name: BTreeMap<&str, (CpuCollective, Vec<f64>)> = BTreeMap::new();
    for event in &issued {
        let (sum, _) = by_name.entry(event.name()).or_insert_with(|| (of_name(event.name()), Vec::new()));
        sum.count += 1;
        sum.host_ms += event.duration().as_millis();
    }
    let mut by_thread: BTreeMap<_, Vec<(Timestamp, &str)>> = BTreeMap::new();
    for event in &issued {
        by_thread.entry(event.track_id()).or_default().push((event.start(), event.name()));
    }
    by_thread.values_mut().for_each(|starts| starts.sort());
    for copy in copy_operators(trace) {
        let Some(starts) = by_thread.get(&copy.track_id()) else { continue };
        let next = starts.get(starts.partition_point(|(start, _)| *start < copy.end()));
        let next = next.filter(|(start, _)| *start - copy.end() <= BELONGS_WITHIN);
        let Some((start, (sum, gaps))) = next.and_then(|(start, name)| Some((start, by_name.get_mut(name)?)))
        else {
            continue;
        };
        let bytes = copy.copy_operator().and_then(|operator| operator.bytes).map_or(0, |bytes| bytes.get());
        sum.copies_before += 1;
        sum.copied_bytes = sum.copied_bytes.saturating_add(bytes);
        gaps.push((*start - copy.end()).as_millis());
    }
    let with_gap = |(sum, gaps): (CpuCollective, Vec<f64>)| CpuCollective { gap_ms: median(gaps), ..sum };
    let mut all: Vec<CpuCollective> = by_name.into_values().map(with_gap).collect();
    all.sort_by(|a, b| b.host_ms.total_cmp(&a.host_ms));
    all
}

fn of_name(name: &str) -> CpuCollective {
    CpuCollective {
        name: name.to_owned(),
        count: 0,
        host_ms: 0.0,
        copies_before: 0,
        copied_bytes: 0,
        gap_ms: None,
    }
}

fn is_communication(event: &Event<'_>) -> bool {
    let is_range = matches!(event.kind(), EventKind::Operator | EventKind::Annotation);
    is_range && PREFIXES.iter().any(|prefix| event.name().starts_with(prefix))
}
