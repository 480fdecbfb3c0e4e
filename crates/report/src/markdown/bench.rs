//! A benchmark as Markdown.

use std::fmt::Write;

use busbound_diagnosis::{Benchmark, Judgement};

use super::rows;
use crate::text::bench as text;

/// What a machine reaches as a Markdown document.
pub fn bench_as_markdown(bench: &Benchmark) -> String {
    let mut out = format!("**{}**\n\n", bench.statement);
    let _ = writeln!(out, "- on: {}", text::measured_on(bench));
    let _ = writeln!(out, "- took: {}", text::took(bench));
    for skipped in text::skipped(bench) {
        let _ = writeln!(out, "- {skipped}");
    }
    if let Some(table) = text::curves(&bench.profile) {
        out.push('\n');
        rows(&mut out, &table.titles, &table.rows);
    }
    out.push('\n');
    for figure in &bench.figures {
        let (value, words) = text::figure(figure);
        let mark = if figure.judgement == Judgement::Short { "**Short:** " } else { "" };
        let _ = writeln!(out, "- {mark}{value}: {words}");
        for cause in text::causes(figure) {
            let _ = writeln!(out, "  1. {cause}");
        }
    }
    for table in [text::double_buffer(bench), text::offload(bench, None)].into_iter().flatten() {
        out.push('\n');
        rows(&mut out, &table.titles, &table.rows);
    }
    for sentence in text::plan_errors(bench) {
        let _ = writeln!(out, "\n{sentence}.");
    }
    out
}
