//! The comparison at a terminal.

use busbound_diagnosis::Comparison;

use super::{hanging, headline, rows};
use crate::format::Style;
use crate::text::{compare as text, plural};

/// A comparison: what changed, or every figure with `-v`.
pub(crate) fn comparison_as_terminal(comparison: &Comparison, style: &Style) -> String {
    let width = style.width;
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
    let shown = if style.verbose { text::Shown::All } else { text::Shown::Changed };
    for table in text::tables(comparison, shown) {
        rows(&mut out, &table.titles, &table.rows, width);
        out.push('\n');
    }
    let left_out = text::left_out(comparison);
    if left_out > 0 && shown == text::Shown::Changed {
        let figures =
            plural(left_out as u64, "figure that hardly changed is", "figures that hardly changed are");
        hanging(&mut out, "  ", &format!("{figures} not shown: -v"), width);
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
