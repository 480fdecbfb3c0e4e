//! The comparison as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Comparison;

use super::rows;
use crate::text::compare as text;

/// A comparison as a Markdown document.
pub fn comparison_as_markdown(comparison: &Comparison) -> String {
    let mut out = format!("**{}**\n\n", comparison.statement);
    for run in &comparison.runs {
        let _ = writeln!(out, "- {}: {} — {}", run.label, run.path, run.verdict);
    }
    out.push('\n');
    let (titles, figures) = text::figures(comparison);
    rows(&mut out, &titles, &figures);
    out.push('\n');
    if let Some(table) = text::sweep(comparison) {
        super::grid(&mut out, &table);
        out.push('\n');
    }
    if let Some(stages) = &comparison.stages {
        let _ = writeln!(out, "{}\n", stages.statement);
    }
    for sentence in
        text::growth(comparison).iter().chain(&text::findings(comparison)).chain(&comparison.limitations)
    {
        let _ = writeln!(out, "- {sentence}");
    }
    out
}
