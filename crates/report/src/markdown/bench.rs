//! A benchmark as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Benchmark;
use busbound_machine::bench::Judgment;

use super::{grid, headline, inline, item, paragraph};
use crate::text::{bench as text, scatter};

/// Benchmark results as a Markdown document.
pub(crate) fn bench_as_markdown(bench: &Benchmark) -> String {
    let mut out = String::new();
    headline(&mut out, &bench.statement);
    item(&mut out, &format!("on: {}", text::measured_on(bench)));
    item(&mut out, &format!("took: {}", text::took(bench)));
    for skipped in text::skipped(bench) {
        item(&mut out, &skipped);
    }
    if let Some(table) = text::curves(&bench.profile) {
        grid(&mut out, &table);
    }
    out.push('\n');
    for figure in &bench.figures {
        let (value, words) = text::figure(figure);
        let mark = if figure.judgment == Judgment::Low { "**Too low:** " } else { "" };
        let _ = writeln!(out, "- {mark}{}", inline(&format!("{value}: {words}")));
        for cause in text::causes(figure) {
            let _ = writeln!(out, "  1. {}", inline(&cause));
        }
    }
    let grids = scatter::grids(&bench.profile);
    if !grids.is_empty() {
        paragraph(&mut out, scatter::WHAT);
    }
    let others = [text::double_buffer(bench), text::offload(bench, None)];
    for table in grids.into_iter().chain(others.into_iter().flatten()) {
        grid(&mut out, &table);
    }
    for sentence in text::plan_errors(bench) {
        paragraph(&mut out, &format!("{sentence}."));
    }
    out
}
