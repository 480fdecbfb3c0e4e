//! The gate as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Gate;

use super::grid;
use crate::text::gate as text;

/// A gate as a Markdown document.
pub fn gate_as_markdown(gate: &Gate) -> String {
    let mut out = format!("**{}**\n\n", gate.statement);
    if let Some(baseline) = &gate.baseline {
        let _ = writeln!(out, "Baseline: {baseline}\n");
    }
    for run in &gate.runs {
        let _ = writeln!(out, "{}\n", run.path);
        grid(&mut out, &text::checks(run));
        out.push('\n');
        for sentence in text::undecided(run) {
            let _ = writeln!(out, "- {sentence}");
        }
        if !run.passed {
            let _ = writeln!(out, "{}\n", run.verdict);
        }
    }
    out
}
