//! Limits of what is known about the link.

use busbound_machine::LinkSource;

use super::Scope;

pub(super) fn assumed(scope: &Scope<'_>) -> Option<String> {
    let facts = scope.facts;
    (facts.link.source == LinkSource::Assumed && !facts.copies.is_empty()).then(|| {
        format!("The GPU's link is not known; {} is assumed. Give it with --machine.", facts.link.name)
    })
}

pub(super) fn state(scope: &Scope<'_>) -> Option<String> {
    if scope.facts.copies.is_empty() {
        return None;
    }
    let text = match scope.facts.link.source {
        LinkSource::Assumed => return None,
        LinkSource::Recorded => "Whether the process ran on the wrong NUMA node is not in a recording.",
        _ => "Whether the link was trained down or the process ran on the wrong NUMA node is not in a trace.",
    };
    Some(text.to_owned())
}

pub(super) fn wrong(scope: &Scope<'_>) -> Option<String> {
    scope.facts.is_faster_than_link().then(|| {
        format!(
            "Copies run faster than {} can: the link is not what is stated. Give it with --machine.",
            scope.facts.link.name
        )
    })
}
