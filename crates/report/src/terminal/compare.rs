//! The comparison at a terminal.

use busbound_diagnosis::Comparison;

use super::{hanging, headline, rows};
use crate::text::compare as text;

/// A comparison, `width` columns wide.
pub(crate) fn comparison_as_terminal(comparison: &Comparison, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &comparison.statement, width);
    let room = comparison.runs.iter().map(|run| run.label.chars().count()).max().unwrap_or(0);
    for run in &comparison.runs {
        hanging(
            &mut out,
            &format!("  {:<room$}  ", run.label),
            &format!("{}: {}", run.path, run.verdict),
            width,
        );
    }
    out.push('\n');
    for table in text::tables(comparison) {
        rows(&mut out, &table.titles, &table.rows, width);
        out.push('\n');
    }
    if let Some(table) = text::sweep(comparison) {
        super::columns(&mut out, &table, width);
        out.push('\n');
    }
    if let Some(stages) = &comparison.stages {
        hanging(&mut out, "  ", &stages.statement, width);
        out.push('\n');
    }
    for sentence in text::growth(comparison).iter().chain(&text::findings(comparison)) {
        hanging(&mut out, "  ", sentence, width);
    }
    for difference in &comparison.environment {
        hanging(&mut out, "  Differs: ", difference, width);
    }
    for limitation in &comparison.limitations {
        hanging(&mut out, "  · ", limitation, width);
    }
    out.push('\n');
    out
}
