//! A benchmark on the terminal.

use busbound_diagnosis::Benchmark;
use busbound_machine::bench::Judgment;

use super::{columns, hanging, headline};
use crate::text::{bench as text, scatter};

/// Number of predicted steps listed here; the other formats list all.
const WORST: usize = 5;

/// Benchmark results, `width` columns wide.
pub(crate) fn bench_as_terminal(bench: &Benchmark, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &bench.statement, width);
    hanging(&mut out, "  on        ", &text::measured_on(bench), width);
    hanging(&mut out, "  took      ", &text::took(bench), width);
    for skipped in text::skipped(bench) {
        hanging(&mut out, "            ", &skipped, width);
    }
    if let Some(table) = text::curves(&bench.profile) {
        out.push('\n');
        columns(&mut out, &table, width);
    }
    out.push('\n');
    for figure in &bench.figures {
        let (value, words) = text::figure(figure);
        let mark = if figure.judgment == Judgment::Low { '!' } else { ' ' };
        hanging(&mut out, &format!(" {mark}{value:>11}  "), &words, width);
        for (i, cause) in text::causes(figure).iter().enumerate() {
            hanging(&mut out, &format!("              {}. ", i + 1), cause, width);
        }
    }
    let grids = scatter::grids(&bench.profile);
    if !grids.is_empty() {
        out.push('\n');
        hanging(&mut out, "  ", scatter::WHAT, width);
    }
    for table in grids {
        out.push('\n');
        columns(&mut out, &table, width);
    }
    if let Some(table) = text::double_buffer(bench) {
        out.push('\n');
        columns(&mut out, &table, width);
    }
    let sentences = text::plan_errors(bench);
    if !sentences.is_empty() {
        out.push('\n');
    }
    for sentence in sentences {
        hanging(&mut out, "  ", &sentence, width);
    }
    if let Some(table) = text::offload(bench, Some(WORST)) {
        let of = bench.offload.len();
        out.push('\n');
        if of > WORST {
            hanging(&mut out, "  ", &format!("The {WORST} of {of} steps with the largest errors:"), width);
        }
        columns(&mut out, &table, width);
    }
    out.push('\n');
    out
}
