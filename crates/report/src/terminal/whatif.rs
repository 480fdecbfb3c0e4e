//! Predictions on the terminal.

use busbound_diagnosis::WhatIf;

use super::{columns, hanging, headline};
use crate::text::whatif as text;

/// Predicted step times, `width` columns wide.
pub(crate) fn whatif_as_terminal(answers: &[WhatIf], width: u16) -> String {
    let mut out = String::new();
    for answer in answers {
        if answers.len() > 1 {
            out.push_str(&format!("{}\n", answer.path));
        }
        headline(&mut out, &answer.statement, width);
        if !answer.scenarios.is_empty() {
            columns(&mut out, &text::table(answer), width);
            out.push('\n');
        }
        for (change, words) in text::to_do(answer) {
            hanging(&mut out, &format!("  {change:<9} "), &words, width);
        }
        hanging(&mut out, "  check     ", &text::replay(answer), width);
        for note in text::range_from(answer).iter().chain(&text::power(answer)).chain(&answer.notes) {
            hanging(&mut out, "  · ", note, width);
        }
        out.push('\n');
    }
    out
}
