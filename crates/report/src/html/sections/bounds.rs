//! One bar per resource: what the step would take if it took no time.

use askama::Template;
use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{ResourceBound, Unit};

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::colors;
use crate::html::filters;
use crate::text::bounds as text;

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "bounds", heading: "If it took no time", link: "Bounds", needs_script: false, body };

#[derive(Template)]
#[template(path = "bounds.html")]
struct BoundsView {
    number: usize,
    about: String,
    unit: Unit,
    now: String,
    rows: Vec<BoundRow>,
}

struct BoundRow {
    resource: &'static str,
    class: &'static str,
    busy: String,
    exposed: String,
    faster: String,
    free: String,
    saves: Option<String>,
    /// Of the step now.
    free_percent: f64,
}

/// Gains below this share of the step are not worth a number.
const WORTH_SAYING: f64 = 0.005;

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let diagnosis = context.diagnosis();
    // The trace may not say.
    let Some(about) = text::about(diagnosis) else { return Ok(None) };
    let now = diagnosis.window.baseline_ms.max(f64::MIN_POSITIVE);
    let row = |bound: &ResourceBound| {
        let saved = now - bound.step_if_free_ms;
        BoundRow {
            resource: text::word(bound.resource, diagnosis),
            class: colors::of_resource(bound.resource, diagnosis),
            busy: milliseconds(bound.busy_ms),
            exposed: milliseconds(bound.exposed_ms),
            faster: milliseconds(bound.step_if_10pct_faster_ms),
            free: milliseconds(bound.step_if_free_ms),
            saves: (saved >= WORTH_SAYING * now).then(|| milliseconds(saved)),
            free_percent: (100.0 * bound.step_if_free_ms / now).clamp(0.0, 100.0),
        }
    };
    let rows = text::ranked(diagnosis).into_iter().map(row).collect();
    let view = BoundsView {
        number: context.number,
        about,
        unit: diagnosis.unit(),
        now: milliseconds(diagnosis.window.baseline_ms),
        rows,
    };
    Ok(Some(view.render()?))
}
