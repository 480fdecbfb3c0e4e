//! What is unknown about the link?

use busbound_machine::LinkSource;

use super::Scope;

pub(super) fn assumed(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    let is_used = !facts.copies.is_empty() || scope.cpu_copies.iter().any(|sum| sum.gbps.is_some());
    (facts.link.source == LinkSource::Assumed && is_used)
        .then(|| format!("The GPU's link is unknown; assuming {}. Set it with --machine.", facts.link.name))
}

pub(super) fn state(scope: &Scope<'_>) -> Option<String> {
    if scope.facts.copies.is_empty() {
        return None;
    }
    let text = match scope.facts.link.source {
        LinkSource::Assumed => return None,
        LinkSource::Recorded => "A recording does not show whether the process ran on the wrong NUMA node.",
        _ => {
            "A trace does not show whether the link was downgraded or the process ran on the wrong NUMA node."
        }
    };
    Some(text.to_owned())
}

pub(super) fn wrong(scope: &Scope<'_>) -> Option<String> {
    scope.facts.is_faster_than_link().then(|| {
        format!(
            "Copies run faster than {} allows, so the stated link is wrong. Set it with --machine.",
            scope.facts.link.name
        )
    })
}
