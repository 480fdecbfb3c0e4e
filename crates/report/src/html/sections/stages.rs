//! The stages of a pipeline and how they overlap.

use askama::Template;
use busbound_diagnosis::quantity::milliseconds;

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::filters;

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "stages", heading: "Stages", link: "Stages", needs_script: false, body };

#[derive(Template)]
#[template(path = "stages.html")]
struct StagesView {
    statement: String,
    score: String,
    rows: Vec<(String, String, f64)>,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let Some(stages) = &context.diagnosis().stages else { return Ok(None) };
    let sum: f64 = stages.stages.iter().map(|stage| stage.median_ms).sum();
    let rows = stages.stages.iter().map(|stage| {
        let percent = if sum > 0.0 { 100.0 * stage.median_ms / sum } else { 0.0 };
        (stage.name.clone(), milliseconds(stage.median_ms), percent)
    });
    let view = StagesView {
        statement: stages.statement.clone(),
        score: format!("{:.2}", stages.overlap_score),
        rows: rows.collect(),
    };
    Ok(Some(view.render()?))
}
