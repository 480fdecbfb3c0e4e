//! A plan on the terminal.

use super::{FAINT, hanging, headline, line, rows};
use crate::text::plan::PlanText;

/// A plan, `width` columns wide.
pub(crate) fn plan_as_terminal(text: &PlanText, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text.statement, width);
    for (name, value) in &text.inputs {
        hanging(&mut out, &format!("  {name:<13} "), value, width);
    }
    for table in &text.tables {
        out.push('\n');
        rows(&mut out, &table.titles, &table.rows, width);
    }
    out.push('\n');
    for note in &text.notes {
        hanging(&mut out, "  · ", note, width);
    }
    if !text.formulas.is_empty() {
        line(&mut out, &format!("  {FAINT}How it is computed{FAINT:#}"));
    }
    for formula in text.formulas {
        hanging(&mut out, "  · ", formula, width);
    }
    out.push('\n');
    out
}
