//! Does the same kernel get slower while the GPU is always busy?

use busbound_cause::Resource;
use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{EventKind, Interval, Nanos, Timestamp};
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Kernel slowdown under sustained load",
    doing: "nothing in the program",
    precondition: "A trace does not record GPU clocks. Run nvidia-smi -q -d PERFORMANCE on the machine to see whether power or temperature limits them.",
    basis: "none: it explains why hiding copies saves less than their time",
    candidate: Candidate::None("The GPU's power limit is not a property of the program."),
    effort: Effort::Machine,
    unless: &[],
    relieves: &[Resource::Compute],
    check,
    document: Document {
        meaning: "On a GPU that is always busy, the same kernel takes longer later in the run than at the start. The GPU \
                  clocks down, most likely at its power limit. This explains why hiding copies saves less than their time.",
        computed: "Evidence: kernels run for at least 85% of the time, and the kernel (by name and grid) with the largest total \
                   time is at least 8% slower in the second half than at the start. Saving: none.",
        fix: "Change nothing in the program. Expect this slowdown when copies are hidden, and compare runs at the same load.",
        code: &[],
        assumes: "A trace does not record GPU clocks. `nvidia-smi -q -d PERFORMANCE` on the machine shows whether power or temperature limits them.",
    },
};

/// At the same clock, two measurements of the same kernel differ by less than this.
const SLOWER: f64 = 1.08;
/// With fewer runs, start and later runs cannot be compared.
const FEWEST_RUNS: usize = 20;

type Run = (Timestamp, Nanos);

fn total(runs: &[Run]) -> Nanos {
    runs.iter().map(|(_, time)| *time).sum()
}

fn median_ns(runs: &[Run]) -> f64 {
    median(runs.iter().map(|(_, time)| time.get() as f64)).unwrap_or(0.0)
}

/// The kernel (by name and grid) with the largest total time, and its runs in order of time.
fn longest_kernel<'a>(facts: &Facts<'a>) -> Option<(&'a str, Vec<Run>)> {
    let mut kernels: BTreeMap<_, Vec<Run>> = BTreeMap::new();
    for event in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        let grid = event.launch().map(|launch| launch.grid);
        kernels.entry((event.name_id(), grid)).or_default().push((event.start(), event.duration()));
    }
    let ((name, _), mut runs) = kernels.into_iter().max_by_key(|(_, runs)| total(runs))?;
    runs.sort();
    Some((facts.trace.names().get(name), runs))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    if facts.time.compute_ms < 0.85 * facts.time.analyzed_ms {
        return None;
    }
    let (name, runs) = longest_kernel(facts)?;
    if runs.len() < FEWEST_RUNS || total(&runs).as_millis() < 0.3 * facts.time.compute_ms {
        return None;
    }
    // At the start, the GPU is still cool and fast. After some milliseconds of full load, it is not.
    let first = median_ns(&runs[..(runs.len() / 10).clamp(3, 10)]);
    let later_runs = &runs[runs.len() / 2..];
    let later = median_ns(later_runs);
    if later < SLOWER * first {
        return None;
    }
    let short: String = name.chars().take(60).collect();
    Some(Draft {
        title: None,
        seen: format!(
            "The same kernel ({short}) takes {} at the start and {} later ({:+.0}%) on a GPU that is always busy. The GPU clocks down, most likely at its power limit.",
            milliseconds(first / 1e6),
            milliseconds(later / 1e6),
            100.0 * (later / first - 1.0),
        ),
        evidence: json!({ "kernel": name, "first_us": first / 1e3, "later_us": later / 1e3 }),
        saves: Saving::NONE,
        fix: Fix::new(
            "Change nothing in the program. Expect this slowdown when copies are hidden, and compare runs at the same load.",
        ),
        at: later_runs.iter().map(|&(start, time)| Interval::new(start, start + time)).collect(),
    })
}
