//! Predictions as Markdown.

use std::fmt::Write;

use busbound_diagnosis::WhatIf;

use super::{code, grid, headline, inline, item};
use crate::text::whatif as text;

/// Predicted step times as a Markdown document.
pub(crate) fn whatif_as_markdown(answers: &[WhatIf]) -> String {
    let mut out = String::new();
    for answer in answers {
        if answers.len() > 1 {
            let _ = writeln!(out, "## {}\n", code(&answer.path));
        }
        headline(&mut out, &answer.statement);
        if !answer.scenarios.is_empty() {
            // The headline already ends with an empty line.
            out.pop();
            grid(&mut out, &text::table(answer));
            out.push('\n');
        }
        for (change, words) in text::to_do(answer) {
            let _ = writeln!(out, "- {}: {}", code(&change), inline(&words));
        }
        item(&mut out, &format!("replay: {}", text::replay(answer)));
        for note in text::range_from(answer).iter().chain(&text::power(answer)).chain(&answer.notes) {
            item(&mut out, note);
        }
        out.push('\n');
    }
    out
}
