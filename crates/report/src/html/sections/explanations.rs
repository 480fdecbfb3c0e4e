//! What the words on a page mean: the verdict, figures, causes, limitations and terms that it names, to link to.

use std::collections::BTreeSet;

use askama::Template;
use busbound_diagnosis::{Diagnosis, Explanation, FindingId, Topic, explanations};

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::bar;
use crate::html::filters;

pub(super) const SECTION: SectionSpec = SectionSpec {
    id: "explanations",
    heading: "What these words mean",
    link: "Words",
    needs_script: false,
    body,
};

#[derive(Template)]
#[template(path = "explanations.html")]
struct ExplanationsView {
    number: usize,
    explanations: Vec<Explanation>,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let explanations = explained(context.diagnosis());
    if explanations.is_empty() {
        return Ok(None);
    }
    Ok(Some(ExplanationsView { number: context.number, explanations }.render()?))
}

/// The explanations that a run's texts refer to; those of findings are on their cards.
fn explained(diagnosis: &Diagnosis) -> Vec<Explanation> {
    let causes = diagnosis.idle.iter().map(|idle| idle.cause.id());
    let limitations = diagnosis.limitations.iter().map(|limitation| limitation.id.as_str());
    let mut named: BTreeSet<(&str, bool)> = causes.chain(limitations).map(|id| (id, false)).collect();
    if !diagnosis.bounds.is_empty() {
        named.extend([("bounds", false), ("exposed", false)]);
    }
    if diagnosis.window.unprofiled.is_some() {
        named.insert(("unprofiled", false));
    }
    for part in bar::of(diagnosis).parts {
        named.insert((part.explained, part.is_figure));
    }
    let fixes = || diagnosis.prize.iter().flat_map(|prize| &prize.fixes);
    let has_card = |id: FindingId| diagnosis.findings.iter().any(|finding| finding.id == id);
    let is_meant = |one: &Explanation| match one.topic {
        Topic::Verdict => one.id == diagnosis.verdict.bound.id(),
        Topic::IdleCause | Topic::Limitation | Topic::Term => named.contains(&(one.id, false)),
        // What a page tries is described where it is.
        Topic::Change => false,
        Topic::Figure => named.contains(&(one.id, true)),
        // Fixes that pay after those on the cards.
        Topic::Finding => fixes().any(|fix| fix.finding.as_str() == one.id && !has_card(fix.finding)),
    };
    explanations().into_iter().filter(is_meant).collect()
}
