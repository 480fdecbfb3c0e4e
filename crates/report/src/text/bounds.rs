//! What would a step take if one resource were free?

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Bound, Diagnosis, Resource, ResourceBound};

use super::{Table, capitalized};

/// A resource that gains a smaller share of the step is not worth a line.
const WORTH_SAYING: f64 = 0.02;
/// Resources in the short answer.
const SHOWN: usize = 4;

/// A resource as people call it.
pub(crate) fn word(resource: Resource) -> &'static str {
    match resource {
        Resource::Compute => "compute",
        Resource::H2d => "H2D copies",
        Resource::D2h => "D2H copies",
        Resource::Peer => "peer copies",
        Resource::Collectives => "collectives",
        Resource::Launch => "launches",
        Resource::Host => "host work",
        Resource::Input => "input",
        Resource::Sync => "host syncs",
    }
}

/// What bounds a step, as a noun.
fn noun(bound: Bound) -> &'static str {
    match bound {
        Bound::Transfer => "copies",
        Bound::Communication => "collectives",
        Bound::Compute => "compute",
        Bound::Launch => "launches",
        Bound::Host => "host work",
        Bound::Sync => "host syncs",
        Bound::Input => "input",
        Bound::Mixed | Bound::Unknown => "several things",
    }
}

/// What bounds the run if this resource does.
fn bound_of(resource: Resource) -> Bound {
    match resource {
        Resource::Compute => Bound::Compute,
        Resource::H2d | Resource::D2h | Resource::Peer => Bound::Transfer,
        Resource::Collectives => Bound::Communication,
        Resource::Launch => Bound::Launch,
        Resource::Host => Bound::Host,
        Resource::Input => Bound::Input,
        Resource::Sync => Bound::Sync,
    }
}

/// All bounds, largest gain first.
pub(crate) fn ranked(diagnosis: &Diagnosis) -> Vec<&ResourceBound> {
    let mut all: Vec<&ResourceBound> = diagnosis.bounds.iter().collect();
    all.sort_by(|a, b| a.step_if_free_ms.total_cmp(&b.step_if_free_ms));
    all
}

/// The bounds that matter, at most four, largest gain first.
fn leading(diagnosis: &Diagnosis) -> Vec<&ResourceBound> {
    let now = diagnosis.window.baseline_ms;
    let matters = |bound: &&ResourceBound| now - bound.step_if_free_ms >= WORTH_SAYING * now;
    ranked(diagnosis).into_iter().filter(matters).take(SHOWN).collect()
}

/// `H2D copies → 69.0 ms (then bound by compute)`, `compute → 207 ms`; empty if nothing gains.
pub(crate) fn if_free(diagnosis: &Diagnosis) -> Vec<String> {
    let leading = leading(diagnosis);
    let entry = |bound: &&ResourceBound| {
        format!("{} → {}", word(bound.resource), milliseconds(bound.step_if_free_ms))
    };
    let mut entries: Vec<String> = leading.iter().map(entry).collect();
    if let (Some(first), Some(next)) = (entries.first_mut(), next(diagnosis)) {
        // What follows the first one is said with it.
        match is_first(diagnosis) {
            true => *first = format!("{first} ({next})"),
            false => entries.push(next),
        }
    }
    entries
}

/// True if what bounds the run also gains most.
fn is_first(diagnosis: &Diagnosis) -> bool {
    let bound = diagnosis.verdict.headroom.as_ref().map(|headroom| headroom.resource);
    ranked(diagnosis).first().is_some_and(|first| Some(bound_of(first.resource)) == bound)
}

/// `then bound by compute`, or `without host syncs bound by compute` if something else gains more.
pub(crate) fn next(diagnosis: &Diagnosis) -> Option<String> {
    let headroom = diagnosis.verdict.headroom.as_ref()?;
    let then = noun(headroom.next_bound?);
    Some(match is_first(diagnosis) {
        true => format!("then bound by {then}"),
        false => format!("without {} bound by {then}", noun(headroom.resource)),
    })
}

/// Every resource that is used.
pub(crate) fn table(diagnosis: &Diagnosis) -> Table {
    let now = diagnosis.window.baseline_ms;
    let row = |bound: &&ResourceBound| {
        vec![
            word(bound.resource).to_owned(),
            milliseconds(bound.busy_ms),
            milliseconds(bound.exposed_ms),
            milliseconds(bound.step_if_10pct_faster_ms),
            milliseconds(bound.step_if_free_ms),
            milliseconds(now - bound.step_if_free_ms),
        ]
    };
    let titles = vec!["resource", "busy", "exposed", "if 10% faster", "if free", "saves at most"];
    Table { titles, rows: ranked(diagnosis).iter().map(row).collect() }
}

/// How to read the bounds; `None` if there are none.
pub(crate) fn about(diagnosis: &Diagnosis) -> Option<String> {
    if diagnosis.bounds.is_empty() {
        return None;
    }
    let (unit, now) = (diagnosis.unit(), milliseconds(diagnosis.window.baseline_ms));
    let basis = if diagnosis.window.unprofiled.is_some() { " without the profiler" } else { "" };
    let then = next(diagnosis).map_or(String::new(), |then| format!(" {}.", capitalized(&then)));
    Some(format!(
        "If free: what the {unit} takes if one resource takes no time and the rest stays the same; it takes {now}{basis} \
         now.{then} Exposed: not overlapped with kernels. [explain: bounds]"
    ))
}
