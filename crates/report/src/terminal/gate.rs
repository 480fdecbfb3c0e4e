//! The gate at a terminal.

use busbound_diagnosis::Gate;

use super::{FAINT, columns, hanging, headline, line};
use crate::text::gate as text;

/// A gate, `width` columns wide.
pub(crate) fn gate_as_terminal(gate: &Gate, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &gate.statement, width);
    if let Some(baseline) = &gate.baseline {
        hanging(&mut out, "  baseline  ", baseline, width);
    }
    for run in &gate.runs {
        line(&mut out, &format!("  {FAINT}{}{FAINT:#}", run.path));
        columns(&mut out, &text::checks(run), width);
        for sentence in text::undecided(run) {
            hanging(&mut out, "  · ", &sentence, width);
        }
        if !run.passed {
            hanging(&mut out, "  ", &run.verdict, width);
        }
        out.push('\n');
    }
    out
}
