//! What to change: one card per finding.

use askama::Template;
use busbound_diagnosis::{Finding, FindingId, Section, explain_finding};

use super::evidence::{self, Evidence};
use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::filters;
use crate::text::diagnosis as text;
use crate::text::prize::{self, FollowUp};

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "findings", heading: "What to change", link: "Findings", needs_script: false, body };

#[derive(Template)]
#[template(path = "findings.html")]
struct FindingsView {
    number: usize,
    cards: Vec<Card>,
    nothing: Option<&'static str>,
    /// Fixes that pay after these.
    then: Vec<String>,
}

struct Card {
    finding: usize,
    title: String,
    saving: String,
    severity: &'static str,
    seen: String,
    fix: String,
    code: Option<String>,
    cost: String,
    precondition: String,
    basis: &'static str,
    evidence: Vec<Evidence>,
    is_drawn: bool,
    id: FindingId,
    explanation: Vec<Section>,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let diagnosis = context.diagnosis();
    let cards = diagnosis.findings.iter().enumerate().map(|(i, finding)| card(context, i, finding));
    let view = FindingsView {
        number: context.number,
        cards: cards.collect(),
        nothing: text::nothing_to_fix(diagnosis),
        then: prize::follow_ups(diagnosis).iter().map(FollowUp::explained).collect(),
    };
    Ok(Some(view.render()?))
}

fn card(context: &Context<'_>, number: usize, finding: &Finding) -> Card {
    let diagnosis = context.diagnosis();
    Card {
        finding: number,
        title: finding.title.clone(),
        saving: prize::saving_and_range(finding, diagnosis),
        severity: text::severity(finding.severity),
        seen: finding.seen.clone(),
        fix: finding.fix.clone(),
        code: finding.fix_code.clone(),
        cost: text::cost(finding),
        precondition: finding.precondition.clone(),
        basis: finding.saving_basis,
        evidence: evidence::rows(&finding.evidence, diagnosis.unit()),
        is_drawn: context.drawn.picture.findings.get(number).is_some_and(|spans| !spans.is_empty()),
        id: finding.id,
        explanation: explain_finding(finding.id).sections,
    }
}
