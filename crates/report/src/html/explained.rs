//! What the words on a page mean: the causes, limitations and terms that it names, to link to.

use std::collections::BTreeSet;

use busbound_diagnosis::{Diagnosis, Explanation, Topic, explanations};

/// The explanations that a run's texts refer to; those of findings are on their cards.
pub(super) fn explained(diagnosis: &Diagnosis) -> Vec<Explanation> {
    let causes = diagnosis.idle.iter().map(|idle| idle.cause.id());
    let limitations = diagnosis.limitations.iter().map(|limitation| limitation.id.as_str());
    let mut named: BTreeSet<&str> = causes.chain(limitations).collect();
    if !diagnosis.bounds.is_empty() {
        named.extend(["bounds", "exposed"]);
    }
    if diagnosis.window.unprofiled.is_some() {
        named.insert("unprofiled");
    }
    let is_meant = |one: &Explanation| {
        named.contains(one.id) && matches!(one.topic, Topic::IdleCause | Topic::Limitation | Topic::Term)
    };
    explanations().into_iter().filter(is_meant).collect()
}
