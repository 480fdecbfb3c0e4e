//! What is unknown about the link?

use busbound_machine::LinkSource;

use super::Scope;
use crate::activity::nodes::PlacedBytes;
use crate::analysis::confidential;
use crate::quantity::printable;

pub(super) fn assumed(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let is_used = !facts.copies.is_empty() || scope.cpu_copies.iter().any(|sum| sum.gbps.is_some());
    (facts.link.source == LinkSource::Assumed && is_used)
        .then(|| format!("The GPU's link is unknown; assuming {}. Set it with --machine.", facts.link.name))
}

pub(super) fn confidential(scope: &Scope<'_>) -> Option<String> {
    confidential::is_on(scope.facts.trace).then(|| {
        "The program ran in confidential computing: copies are encrypted on the CPU at about 5 GB/s, pinned or not, and the host waits for them. \
         Pinned memory, non_blocking copies and prefetching on a second stream gain nothing; fewer and smaller copies do."
            .to_owned()
    })
}

/// MIG instances have their own memory and multiprocessors, but one link and its copy engines.
pub(super) fn shared(scope: &Scope<'_>) -> Option<String> {
    let mut gpus = scope.facts.trace.origin().gpus.iter();
    let instance = gpus.find(|gpu| gpu.name.contains(" MIG "))?;
    (!scope.facts.copies.is_empty()).then(|| {
        format!(
            "The GPU is a MIG instance ({}): it shares the link with the other instances, so copies may be slower than the link without any fault.",
            printable(&instance.name)
        )
    })
}

pub(super) fn state(scope: &Scope<'_>) -> Option<String> {
    if scope.facts.copies.is_empty() || scope.facts.link.source == LinkSource::Assumed {
        return None;
    }
    let is_link_known = scope.facts.link.source == LinkSource::Recorded;
    let link = "A trace does not show whether the link was downgraded";
    match (is_link_known, nodes(scope)) {
        (true, Nodes::Known) => None,
        (true, Nodes::NotRecorded) => {
            Some("A recording does not show whether the process ran on the wrong NUMA node.".to_owned())
        }
        (true, Nodes::Unknown(why)) => Some(why),
        (false, Nodes::Known) => Some(format!("{link}.")),
        (false, Nodes::NotRecorded) => Some(format!("{link} or the process ran on the wrong NUMA node.")),
        (false, Nodes::Unknown(why)) => Some(format!("{link}. {why}")),
    }
}

/// Whether the NUMA nodes of copies are known.
enum Nodes {
    Known,
    NotRecorded,
    Unknown(String),
}

/// Bytes whose node is unknown do not matter up to this share.
const KNOWN_ENOUGH: f64 = 0.5;

fn nodes(scope: &Scope<'_>) -> Nodes {
    let facts = scope.facts;
    let Some(numa) = &facts.trace.origin().numa else { return Nodes::NotRecorded };
    if numa.is_one() {
        return Nodes::Known;
    }
    let unknown = "whether host memory is on the wrong NUMA node is unknown";
    if let Some(why) = &numa.refused {
        return Nodes::Unknown(format!(
            "The kernel did not say where host memory is ({why}; containers block move_pages unless their seccomp profile allows it), so {unknown}."
        ));
    }
    if facts.copies.iter().any(|copy| !numa.gpus.contains_key(&copy.device)) {
        return Nodes::Unknown(format!("The NUMA node of a GPU is not recorded, so {unknown}."));
    }
    let share = PlacedBytes::of(numa, &facts.copies).known_share();
    if share < KNOWN_ENOUGH {
        return Nodes::Unknown(format!(
            "The NUMA node of host memory is recorded for {:.0}% of the copied bytes. For the rest, {unknown}.",
            100.0 * share
        ));
    }
    Nodes::Known
}

pub(super) fn wrong(scope: &Scope<'_>) -> Option<String> {
    scope.facts.is_faster_than_link().then(|| {
        format!(
            "Copies run faster than {} allows, so the stated link is wrong. Set it with --machine.",
            scope.facts.link.name
        )
    })
}
