//! Predictions as Markdown.

use std::fmt::Write;

use busbound_diagnosis::WhatIf;

use super::rows;
use crate::text::whatif as text;

/// What runs would take as a Markdown document.
pub fn whatif_as_markdown(answers: &[WhatIf]) -> String {
    let mut out = String::new();
    for answer in answers {
        if answers.len() > 1 {
            let _ = writeln!(out, "## {}\n", answer.path);
        }
        let _ = writeln!(out, "**{}**\n", answer.statement);
        if !answer.scenarios.is_empty() {
            let table = text::table(answer);
            rows(&mut out, &table.titles, &table.rows);
            out.push('\n');
        }
        for (change, words) in text::to_do(answer) {
            let _ = writeln!(out, "- `{change}`: {words}");
        }
        let _ = writeln!(out, "- replay: {}", text::replay(answer));
        for note in text::power(answer).iter().chain(&answer.notes) {
            let _ = writeln!(out, "- {note}");
        }
        out.push('\n');
    }
    out
}
