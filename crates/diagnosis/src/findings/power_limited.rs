//! Does the same kernel get slower while the GPU is always busy?

use std::cmp::Reverse;
use std::collections::BTreeMap;

use busbound_cause::{Resource, is_matrix_kernel};
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
                   time is at least 8% slower in the second half than at the start. Other large kernels slow down too, unless the \
                   longest one is a matrix multiplication or a convolution, whose work is fixed by its grid. Saving: none.",
        fix: "Change nothing in the program. Expect this slowdown when copies are hidden, and compare runs at the same load.",
        code: &[],
        assumes: "A trace does not record GPU clocks. `nvidia-smi -q -d PERFORMANCE` on the machine shows whether power or temperature limits them.",
    },
};

/// At the same clock, two measurements of the same kernel differ by less than this.
const SLOWER: f64 = 1.08;
/// Kernels with less of the kernel time do not show what the clock does.
const LARGE: f64 = 0.1;
/// A kernel that slows down by less than this share of what the longest one does keeps its pace.
const STEADY: f64 = 0.3;
/// With fewer runs, start and later runs cannot be compared.
const FEWEST_RUNS: usize = 20;

type Run = (Timestamp, Nanos);

fn total(runs: &[Run]) -> Nanos {
    runs.iter().map(|(_, time)| *time).sum()
}

fn median_ns(runs: &[Run]) -> f64 {
    median(runs.iter().map(|(_, time)| time.get() as f64)).unwrap_or(0.0)
}

/// A kernel by name and grid, and its runs in order of time.
struct Runs<'a> {
    name: &'a str,
    all: Vec<Run>,
}

impl Runs<'_> {
    /// The median of the first runs: then, the GPU is still cool and fast. After some milliseconds of full load, it is not.
    fn first(&self) -> f64 {
        median_ns(&self.all[..(self.all.len() / 10).clamp(3, 10)])
    }

    fn later_runs(&self) -> &[Run] {
        &self.all[self.all.len() / 2..]
    }

    fn later(&self) -> f64 {
        median_ns(self.later_runs())
    }

    /// By how much it slows down, as a share.
    fn slowdown(&self) -> f64 {
        self.later() / self.first() - 1.0
    }
}

/// The kernels that run often, the one with the largest total time first.
fn frequent_kernels<'a>(facts: &Facts<'a>) -> Vec<Runs<'a>> {
    let mut kernels: BTreeMap<_, Vec<Run>> = BTreeMap::new();
    for event in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        let grid = event.launch().map(|launch| launch.grid);
        kernels.entry((event.name_id(), grid)).or_default().push((event.start(), event.duration()));
    }
    let least = LARGE * facts.time.compute_ms;
    let frequent = kernels
        .into_iter()
        .filter(|(_, runs)| runs.len() >= FEWEST_RUNS && total(runs).as_millis() >= least)
        .map(|((name, _), mut all)| {
            all.sort();
            Runs { name: facts.trace.names().get(name), all }
        });
    let mut frequent: Vec<Runs<'_>> = frequent.collect();
    frequent.sort_by_key(|runs| Reverse(total(&runs.all)));
    frequent
}

/// Whether the longest kernel has more to do later, as far as the others show: at a lower clock, they slow down too. The work of a
/// matrix kernel is fixed by its grid, and beside it others may wait for memory, whose clock stays.
fn has_more_work(longest: &Runs<'_>, others: &[Runs<'_>]) -> bool {
    let keeps_pace = |other: &Runs<'_>| other.slowdown() < STEADY * longest.slowdown();
    !is_matrix_kernel(longest.name) && others.iter().any(keeps_pace)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    if facts.time.compute_ms < 0.85 * facts.time.analyzed_ms {
        return None;
    }
    let frequent = frequent_kernels(facts);
    let (longest, others) = frequent.split_first()?;
    let (first, later) = (longest.first(), longest.later());
    let is_most = total(&longest.all).as_millis() >= 0.3 * facts.time.compute_ms;
    if !is_most || later < SLOWER * first || has_more_work(longest, others) {
        return None;
    }
    let name = longest.name;
    let short: String = name.chars().take(60).collect();
    let why = match is_matrix_kernel(name) || !others.is_empty() {
        true => "The GPU clocks down, most likely at its power limit.",
        false => "The GPU clocks down, most likely at its power limit, or the kernel has more to do later.",
    };
    Some(Draft {
        title: None,
        seen: format!(
            "The same kernel ({short}) takes {} at the start and {} later ({:+.0}%) on a GPU that is always busy. {why}",
            milliseconds(first / 1e6),
            milliseconds(later / 1e6),
            100.0 * (later / first - 1.0),
        ),
        evidence: json!({ "kernel": name, "first_us": first / 1e3, "later_us": later / 1e3 }),
        saves: Saving::NONE,
        fix: Fix::new(
            "Change nothing in the program. Expect this slowdown when copies are hidden, and compare runs at the same load.",
        ),
        at: longest.later_runs().iter().map(|&(start, time)| Interval::new(start, start + time)).collect(),
    })
}
