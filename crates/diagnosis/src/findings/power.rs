//! Does the same kernel get slower while the device never rests?

use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{EventKind, Interval, Nanos, Timestamp};
use serde_json::json;

use super::{Draft, Saving};
use crate::analysis::facts::Facts;

const SLOWER: f64 = 1.08;
const FEWEST: usize = 20;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    if facts.time.compute_ms < 0.85 * facts.time.span_ms {
        return Vec::new();
    }
    // The kernel, by name and grid, that takes most time.
    let mut kernels: BTreeMap<_, Vec<(Timestamp, Nanos)>> = BTreeMap::new();
    for event in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        let grid = event.launch().map(|launch| launch.grid);
        kernels.entry((event.name_id(), grid)).or_default().push((event.start(), event.duration()));
    }
    let total = |runs: &[(Timestamp, Nanos)]| runs.iter().map(|(_, time)| *time).sum::<Nanos>();
    let Some(((name, _), mut runs)) = kernels.into_iter().max_by_key(|(_, runs)| total(runs)) else {
        return Vec::new();
    };
    if runs.len() < FEWEST || total(&runs).as_millis() < 0.3 * facts.time.compute_ms {
        return Vec::new();
    }
    runs.sort();
    let usual =
        |runs: &[(Timestamp, Nanos)]| median(runs.iter().map(|(_, time)| time.get() as f64)).unwrap_or(0.0);
    // At the start the card is still cool and fast; after some milliseconds of full load it is not.
    let first = usual(&runs[..(runs.len() / 10).clamp(3, 10)]);
    let later = usual(&runs[runs.len() / 2..]);
    if later < SLOWER * first {
        return Vec::new();
    }
    let name = facts.trace.names().get(name);
    let short: String = name.chars().take(60).collect();
    vec![Draft {
        at: runs[runs.len() / 2..].iter().map(|&(start, time)| Interval::new(start, start + time)).collect(),
        id: "power_limited",
        title: "Kernels get slower under sustained load".to_owned(),
        seen: format!(
            "The same kernel ({short}) takes {:.0} µs at the start and {:.0} µs later ({:+.0} %) while the GPU never rests: it clocks down, most likely at its power limit.",
            first / 1e3,
            later / 1e3,
            100.0 * (later / first - 1.0),
        ),
        evidence: json!({ "kernel": name, "first_us": first / 1e3, "later_us": later / 1e3 }),
        precondition: "A trace has no clocks: nvidia-smi -q -d PERFORMANCE on the machine tells whether it is power or heat.",
        saves: Saving { low: 0.0, high: 0.0 },
        basis: "none: it explains why hiding copies gains less than their time",
        fix: "Nothing to fix in the program; expect this when copies are hidden, and compare runs at the same load.".to_owned(),
    }]
}
