//! A plan as Markdown.

use std::fmt::Write;

use super::rows;
use crate::text::plan::{Plan, plan};

/// A plan as a Markdown document.
pub fn plan_as_markdown(answer: &Plan) -> String {
    let text = plan(answer);
    let mut out = format!("**{}**\n\n", text.statement);
    for (name, value) in &text.inputs {
        let _ = writeln!(out, "- {name}: {value}");
    }
    for table in &text.tables {
        out.push('\n');
        rows(&mut out, &table.titles, &table.rows);
    }
    out.push('\n');
    for note in &text.notes {
        let _ = writeln!(out, "- {note}");
    }
    out.push_str("\nHow it is reckoned:\n\n");
    for formula in text.formulas {
        let _ = writeln!(out, "- {formula}");
    }
    out
}
