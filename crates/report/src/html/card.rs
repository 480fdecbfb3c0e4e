//! The card of a diagnosis, for notebooks: the verdict with the prize, one bar, what to change.
//!
//! A fragment without a script or a style sheet, because notebooks and their viewers remove both. Text has the color of
//! the notebook around it, and the bar's colors are visible on light and on dark ones.

use askama::Template;
use busbound_diagnosis::Diagnosis;

use super::{bar, filters};
use crate::error::RenderError;
use crate::text::{diagnosis as text, prize};

/// Findings on the card; the page has all of them.
const FINDINGS: usize = 3;

#[derive(Template)]
#[template(path = "card.html")]
struct CardView<'a> {
    /// What can be gained; the verdict's statement if there is no prize.
    headline: String,
    because: Option<&'a str>,
    /// What the bar is of; `None` without a GPU's time.
    bar: Option<String>,
    /// The parts of the bar, with their colors.
    parts: Vec<(bar::BarPart, &'static str)>,
    findings: Vec<Row<'a>>,
    nothing: Option<&'static str>,
    cut_off: Option<&'static str>,
    more: usize,
    path: &'a str,
}

struct Row<'a> {
    title: &'a str,
    saving: String,
    fix: &'a str,
}

/// A diagnosis as a small fragment of HTML that stands in a notebook.
///
/// # Errors
/// If the template fails.
pub fn card(diagnosis: &Diagnosis) -> Result<String, RenderError> {
    let gain = prize::gain(diagnosis);
    let bar = bar::of(diagnosis);
    let rows = diagnosis.findings.iter().take(FINDINGS).map(|finding| Row {
        title: &finding.title,
        saving: prize::saving(finding, diagnosis),
        fix: &finding.fix,
    });
    let view = CardView {
        because: gain.is_some().then_some(diagnosis.verdict.because.as_str()),
        headline: gain.unwrap_or_else(|| diagnosis.verdict.statement.clone()),
        bar: (!diagnosis.devices.is_empty() && !bar.parts.is_empty()).then_some(bar.of),
        parts: bar.parts.into_iter().map(colored).collect(),
        findings: rows.collect(),
        nothing: text::nothing_to_fix(diagnosis),
        cut_off: text::cut_off(diagnosis),
        more: diagnosis.findings.len().saturating_sub(FINDINGS),
        path: &diagnosis.source.path,
    };
    Ok(view.render()?)
}

fn colored(part: bar::BarPart) -> (bar::BarPart, &'static str) {
    let color = ink(part.class);
    (part, color)
}

/// The color of a class of the style sheet that is visible on light and on dark paper.
fn ink(class: &str) -> &'static str {
    match class {
        "compute" => "#2a8fd0",
        "communication" => "#c873a5",
        "h2d" | "copies-mixed" => "#c69a1c",
        "d2h" => "#17a07a",
        "pageable" => "#d8601e",
        "other" => "#6a9cb5",
        "idle-copy" => "#977158",
        "idle-launch" => "#8f75e0",
        "idle-sync" => "#a83566",
        "idle-input" => "#849a3c",
        "idle-host" => "#4a62b4",
        "idle-gap" => "#8a929c",
        _ => "#8a9099",
    }
}
