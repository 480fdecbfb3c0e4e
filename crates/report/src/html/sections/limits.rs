//! What the trace does not show, and what is not drawn.

use askama::Template;
use busbound_diagnosis::Diagnosis;
use busbound_diagnosis::quantity::count;

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::filters;
use crate::text::diagnosis as text;

pub(super) const SECTION: SectionSpec = SectionSpec {
    id: "limits",
    heading: "Not visible in this trace",
    link: "Limits",
    needs_script: false,
    body,
};

#[derive(Template)]
#[template(path = "limits.html")]
struct LimitsView {
    number: usize,
    limits: Vec<String>,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let diagnosis = context.diagnosis();
    let limits = text::limitations(diagnosis).into_iter();
    let limits = limits.chain(context.drawn.picture.notes.iter().cloned()).chain(complete(diagnosis));
    Ok(Some(LimitsView { number: context.number, limits: limits.collect() }.render()?))
}

/// Says that the file is complete; what is missing from an incomplete one is among the limitations.
fn complete(diagnosis: &Diagnosis) -> Option<String> {
    let source = &diagnosis.source;
    source.complete.then(|| format!("The file is complete: {} events read, none lost.", count(source.events)))
}
