//! What would a step take if one resource were free?

use busbound_diagnosis::quantity::milliseconds;
use busbound_trace::Direction;

use busbound_diagnosis::{Bound, Diagnosis, Resource, ResourceBound};

use super::Table;

/// A resource that gains a smaller share of the step is not worth a line.
const WORTH_SAYING: f64 = 0.02;
/// From this share of the time of its kind on, a resource is named alone.
const ALONE: f64 = 0.9;
/// Resources in the short answer.
const SHOWN: usize = 3;

/// A resource as people call it. Kernels that access host memory use the bus as copies do.
pub(crate) fn word(resource: Resource, diagnosis: &Diagnosis) -> &'static str {
    let is_copied = |direction| diagnosis.copies.iter().any(|group| group.direction == direction);
    let is_accessed = diagnosis.kernel_waits_ms > 0.0;
    match resource {
        Resource::Compute => "compute",
        Resource::H2d if is_accessed && !is_copied(Direction::HostToDevice) => "reads of host memory",
        Resource::D2h if is_accessed && !is_copied(Direction::DeviceToHost) => "writes to host memory",
        Resource::H2d if is_accessed => "H2D copies and reads",
        Resource::D2h if is_accessed => "D2H copies and writes",
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

/// The bounds that matter, at most three, largest gain first. Kernels are what the run is for: they are not among them.
fn leading(diagnosis: &Diagnosis) -> Vec<&ResourceBound> {
    let now = diagnosis.window.baseline_ms;
    let matters = |bound: &&ResourceBound| {
        now - bound.step_if_free_ms >= WORTH_SAYING * now && bound.resource != Resource::Compute
    };
    ranked(diagnosis).into_iter().filter(matters).take(SHOWN).collect()
}

/// `H2D copies → 69.0 ms (then compute-bound)`, `launches → 207 ms`; empty if nothing gains.
pub(crate) fn if_free(diagnosis: &Diagnosis) -> Vec<String> {
    let leading = leading(diagnosis);
    let headroom = diagnosis.verdict.headroom.as_ref();
    let then = |text: String| match headroom.and_then(|headroom| headroom.next_bound) {
        Some(next) => format!("{text} (then {})", next.title().to_lowercase()),
        None => text,
    };
    let alone = headroom.and_then(|headroom| only_resource(diagnosis, headroom.resource));
    let entry = |bound: &&ResourceBound| {
        let name = word(bound.resource, diagnosis);
        let text = format!("{name} → {}", milliseconds(bound.step_if_free_ms));
        if Some(bound.resource) == alone { then(text) } else { text }
    };
    let mut entries: Vec<String> = leading.iter().map(entry).collect();
    // What bounds the run may be several resources, or not among those that gain most.
    let is_said = alone.is_some_and(|alone| leading.iter().any(|bound| bound.resource == alone));
    if let Some(headroom) = headroom.filter(|_| !is_said && !entries.is_empty()) {
        // Each direction of copies has an entry of its own.
        let all = if headroom.resource == Bound::Transfer { "all " } else { "" };
        let (what, step) = (headroom.resource.noun(), milliseconds(headroom.step_if_free_ms));
        let text = format!("{all}{what} → {step}");
        entries.push(then(text));
    }
    entries
}

/// `Without its kernels, a step would take 36.8 ms (transfer-bound).`, where kernels bound the run.
pub(crate) fn without_kernels(diagnosis: &Diagnosis) -> Option<String> {
    let headroom = diagnosis.verdict.headroom.as_ref();
    let headroom = headroom.filter(|_| diagnosis.verdict.bound == Bound::Compute)?;
    let (unit, rest) = (diagnosis.unit(), milliseconds(headroom.step_if_free_ms));
    let then =
        headroom.next_bound.map_or(String::new(), |next| format!(" ({})", next.title().to_lowercase()));
    Some(format!("without its kernels, {} {unit} would take {rest}{then}", unit.article()))
}

/// The resource that bounds the run, if it is nearly alone; copies in two directions are two.
fn only_resource(diagnosis: &Diagnosis, bound: Bound) -> Option<Resource> {
    let all = || diagnosis.bounds.iter().filter(|one| bound_of(one.resource) == bound);
    let most = all().max_by(|a, b| a.busy_ms.total_cmp(&b.busy_ms))?;
    let busy: f64 = all().map(|one| one.busy_ms).sum();
    (most.busy_ms >= ALONE * busy).then_some(most.resource)
}

/// `Without copies, the step is compute-bound`.
pub(crate) fn next(diagnosis: &Diagnosis) -> Option<String> {
    let headroom = diagnosis.verdict.headroom.as_ref()?;
    let then = headroom.next_bound?.title().to_lowercase();
    let free = headroom.resource.noun();
    Some(format!("Without {free}, the {} is {then}", diagnosis.unit()))
}

/// Every resource that is used.
pub(crate) fn table(diagnosis: &Diagnosis) -> Table {
    let now = diagnosis.window.baseline_ms;
    let row = |bound: &&ResourceBound| {
        vec![
            word(bound.resource, diagnosis).to_owned(),
            milliseconds(bound.busy_ms),
            milliseconds(bound.exposed_ms),
            milliseconds(bound.step_if_10pct_faster_ms),
            milliseconds(bound.step_if_free_ms),
            milliseconds(now - bound.step_if_free_ms),
        ]
    };
    let titles = vec!["resource", "busy", "exposed", "if 10% faster", "if it took no time", "saves"];
    Table { titles, rows: ranked(diagnosis).iter().map(row).collect() }
}

/// How to read the bounds; `None` if there are none.
pub(crate) fn about(diagnosis: &Diagnosis) -> Option<String> {
    if diagnosis.bounds.is_empty() {
        return None;
    }
    let (unit, now) = (diagnosis.unit(), milliseconds(diagnosis.window.baseline_ms));
    let basis = if diagnosis.window.unprofiled.is_some() { " without the profiler" } else { "" };
    let then = next(diagnosis).map_or(String::new(), |then| format!(" {then}."));
    Some(format!(
        "If it took no time: what the {unit} takes without one resource, if the rest stays the same; it takes {now}{basis} \
         now.{then} A fix can save more if it also removes host work. Exposed: not overlapped \
         with kernels. [explain: bounds]"
    ))
}
