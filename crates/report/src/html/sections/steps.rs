//! How long each step took, what the outliers did, and what the run did apart from its steps.

use askama::Template;

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::filters;
use crate::text::diagnosis as text;

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "steps", heading: "Steps", link: "Steps", needs_script: false, body };

#[derive(Template)]
#[template(path = "steps.html")]
struct StepsView {
    outliers: Vec<String>,
    phases: Vec<String>,
    has_chart: bool,
}

/// With fewer steps, a chart says no more than the range of their times.
const FEWEST_DRAWN: usize = 3;

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let outliers = text::outliers(context.diagnosis());
    let phases = text::phases(context.diagnosis());
    let has_chart = context.drawn.picture.steps.len() >= FEWEST_DRAWN;
    if outliers.is_empty() && phases.is_empty() && !has_chart {
        return Ok(None);
    }
    Ok(Some(StepsView { outliers, phases, has_chart }.render()?))
}
