//! Two or more runs on one page: their timelines on one scale, and every figure of each run.

use askama::Template;
use busbound_diagnosis::{Comparison, Drawn};

use super::data::encoded;
use super::filters;
use super::grid::Grid;
use super::page;
use super::run::{Bar, bar, labels};
use crate::error::RenderError;
use crate::text::compare as text;

#[derive(Template)]
#[template(path = "compare.html")]
struct CompareView {
    statement: String,
    runs: Vec<Compared>,
    sentences: Vec<String>,
    tables: Vec<Grid>,
    sweep: Option<Grid>,
    limits: Vec<String>,
    data: Vec<String>,
}

struct Compared {
    label: String,
    path: String,
    verdict: String,
    bar: Option<Bar>,
}

/// A comparison, and its runs in the same order.
pub(super) fn comparison_as_html(comparison: &Comparison, runs: &[Drawn]) -> Result<String, RenderError> {
    let compared = comparison.runs.iter().zip(runs).map(|(run, drawn)| Compared {
        label: run.label.clone(),
        path: run.path.clone(),
        verdict: run.verdict.clone(),
        bar: Some(bar(&drawn.diagnosis)).filter(|bar| !bar.parts.is_empty()),
    });
    let sentences = comparison
        .stages
        .iter()
        .map(|stages| stages.statement.clone())
        .chain(text::growth(comparison))
        .chain(text::findings(comparison));
    let of_runs = runs.iter().zip(&comparison.runs).flat_map(|(drawn, run)| {
        let limitations = drawn.diagnosis.limitations.iter().map(|limitation| &limitation.text);
        limitations
            .chain(&drawn.picture.notes)
            .map(|text| format!("{}: {text}", run.label))
            .collect::<Vec<_>>()
    });
    let view = CompareView {
        statement: comparison.statement.clone(),
        runs: compared.collect(),
        sentences: sentences.collect(),
        tables: text::tables(comparison)
            .into_iter()
            .map(|table| Grid { titles: table.titles, rows: table.rows })
            .collect(),
        sweep: text::sweep(comparison).map(Grid::from),
        limits: comparison.limitations.iter().cloned().chain(of_runs).collect(),
        data: runs
            .iter()
            .zip(&comparison.runs)
            .map(|(drawn, run)| encoded(&drawn.picture, &labels(&drawn.diagnosis, &run.label)))
            .collect(),
    };
    page(&comparison.statement, &view.render()?, true)
}
