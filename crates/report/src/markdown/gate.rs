//! The gate as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Gate;

use super::{code, grid, headline, item, paragraph};
use crate::text::gate as text;

/// A gate as a Markdown document.
pub(crate) fn gate_as_markdown(gate: &Gate) -> String {
    let mut out = String::new();
    headline(&mut out, &gate.statement);
    if let Some(baseline) = &gate.baseline {
        let _ = writeln!(out, "Baseline: {}\n", code(baseline));
    }
    for run in &gate.runs {
        let _ = writeln!(out, "{}", code(&run.path));
        grid(&mut out, &text::checks(run));
        let undecided = text::undecided(run);
        if !undecided.is_empty() {
            out.push('\n');
        }
        for sentence in undecided {
            item(&mut out, &sentence);
        }
        if !run.passed {
            paragraph(&mut out, &run.verdict);
        }
        out.push('\n');
    }
    out
}
