//! A plan as Markdown.

use super::{headline, item, rows};
use crate::text::plan::PlanText;

/// A plan as a Markdown document.
pub(crate) fn plan_as_markdown(text: &PlanText) -> String {
    let mut out = String::new();
    headline(&mut out, &text.statement);
    for (name, value) in &text.inputs {
        item(&mut out, &format!("{name}: {value}"));
    }
    for table in &text.tables {
        rows(&mut out, &table.titles, &table.rows);
    }
    if !text.notes.is_empty() {
        out.push('\n');
    }
    for note in &text.notes {
        item(&mut out, note);
    }
    if !text.formulas.is_empty() {
        out.push_str("\nHow it is computed:\n\n");
    }
    for formula in text.formulas {
        item(&mut out, formula);
    }
    out
}
