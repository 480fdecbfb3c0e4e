//! Which annotations repeat like steps?

use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{EventKind, NameId, Nanos, Trace};
use serde::Serialize;

use crate::pattern::pattern_of;

/// Annotations of one name pattern; `*` stands for any number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepPattern {
    /// `ProfilerStep#*`, `layer*`, `step`.
    pub pattern: String,
    pub count: u64,
    pub p50_ns: Nanos,
    pub total_ns: Nanos,
    /// Recorded by `torch.profiler` at each `step()`.
    pub is_profiler_step: bool,
}

/// Most patterns listed.
const LISTED: usize = 12;

/// Host annotations by pattern: the profiler's own steps first, then by total time.
pub(crate) fn patterns(trace: &Trace) -> Vec<StepPattern> {
    let mut by_name: BTreeMap<NameId, Vec<Nanos>> = BTreeMap::new();
    for event in trace.events().filter(|event| event.kind() == EventKind::Annotation) {
        by_name.entry(event.name_id()).or_default().push(event.duration());
    }
    // Traces older than 2022 record steps as operators.
    if by_name.is_empty() {
        let steps = trace
            .events()
            .filter(|event| event.kind() == EventKind::Operator && event.name().starts_with("ProfilerStep#"));
        for event in steps {
            by_name.entry(event.name_id()).or_default().push(event.duration());
        }
    }
    let mut by_pattern: BTreeMap<String, Vec<Nanos>> = BTreeMap::new();
    for (name, durations) in by_name {
        by_pattern.entry(pattern_of(trace.names().get(name))).or_default().extend(durations);
    }
    let mut patterns: Vec<_> = by_pattern
        .into_iter()
        .map(|(pattern, durations)| {
            let median = median(durations.iter().map(|duration| duration.get() as f64)).unwrap_or(0.0);
            StepPattern {
                is_profiler_step: pattern == "ProfilerStep#*",
                pattern,
                count: durations.len() as u64,
                p50_ns: Nanos::new(median.round() as i64),
                total_ns: durations.iter().copied().sum(),
            }
        })
        .collect();
    patterns.sort_by(|a, b| {
        let key = |p: &StepPattern| (!p.is_profiler_step, std::cmp::Reverse(p.total_ns));
        key(a).cmp(&key(b)).then_with(|| a.pattern.cmp(&b.pattern))
    });
    patterns.truncate(LISTED);
    patterns
}
