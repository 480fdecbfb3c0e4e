//! The comparison as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Comparison;

use super::{code, grid, headline, inline, item, paragraph, rows};
use crate::text::compare as text;

/// A comparison as a Markdown document.
pub(crate) fn comparison_as_markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    headline(&mut out, &comparison.statement);
    for run in &comparison.runs {
        let _ = writeln!(out, "- {}: {} — {}", inline(&run.label), code(&run.path), inline(&run.verdict));
    }
    for table in text::tables(comparison, text::Shown::All) {
        rows(&mut out, &table.titles, &table.rows);
    }
    if let Some(table) = text::sweep(comparison) {
        grid(&mut out, &table);
    }
    if let Some(stages) = &comparison.stages {
        paragraph(&mut out, &stages.statement);
    }
    out.push('\n');
    for difference in &comparison.environment {
        item(&mut out, &format!("Differs: {difference}"));
    }
    for sentence in
        text::growth(comparison).iter().chain(&text::findings(comparison)).chain(&comparison.limitations)
    {
        item(&mut out, sentence);
    }
    out
}
