//! Two or more runs on one page: their timelines on one scale, and every figure of each run.

use askama::Template;
use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Comparison, Drawn, Figure, FigureGroup, FigureId};

use super::bar::{self, Bar};
use super::data::encoded;
use super::filters;
use super::grid::Grid;
use super::page;
use super::run::labels;
use super::sections::{LegendEntry, legend};
use crate::error::RenderError;
use crate::text::compare as text;

#[derive(Template)]
#[template(path = "compare.html")]
struct CompareView {
    statement: String,
    runs: Vec<Compared>,
    sentences: Vec<String>,
    changes: Vec<Changed>,
    tables: Vec<Grid>,
    sweep: Option<Grid>,
    limits: Vec<String>,
    legend: Vec<LegendEntry>,
    data: Vec<String>,
}

struct Compared {
    label: String,
    path: String,
    verdict: String,
    bar: Option<Bar>,
    /// Of the longest step, so that the bars share one scale.
    percent: f64,
}

/// How much one part of the step changed.
struct Changed {
    what: String,
    values: String,
    difference: String,
    is_longer: bool,
    /// Of the largest change.
    percent: f64,
}

/// Most parts shown; tables have all of them.
const CHANGES: usize = 10;
/// Changes below this share of the largest are not shown.
const SMALLEST: f64 = 0.01;

/// The parts of the step, largest change first.
fn changes(comparison: &Comparison) -> Vec<Changed> {
    let parts = comparison.figures.iter().filter(|figure| figure.group == FigureGroup::Part);
    let mut parts: Vec<&Figure> = parts.filter(|figure| figure.delta != 0.0).collect();
    parts.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()));
    let largest = parts.first().map_or(1.0, |figure| figure.delta.abs());
    parts.retain(|figure| figure.delta.abs() >= SMALLEST * largest);
    let times =
        |figure: &Figure| figure.values.iter().map(|ms| milliseconds(*ms)).collect::<Vec<_>>().join(" → ");
    let changed = |figure: &&Figure| Changed {
        what: figure.name.clone(),
        values: times(figure),
        difference: text::difference(figure),
        is_longer: figure.delta > 0.0,
        percent: 100.0 * figure.delta.abs() / largest,
    };
    parts.iter().take(CHANGES).map(changed).collect()
}

/// A comparison, and its runs in the same order.
pub(super) fn comparison_as_html(comparison: &Comparison, runs: &[Drawn]) -> Result<String, RenderError> {
    let step = |drawn: &Drawn| FigureId::SpanMs.of(&drawn.diagnosis).unwrap_or(0.0);
    let longest = runs.iter().map(step).fold(f64::MIN_POSITIVE, f64::max);
    let compared = comparison.runs.iter().zip(runs).map(|(run, drawn)| Compared {
        label: run.label.clone(),
        path: run.path.clone(),
        verdict: run.verdict.clone(),
        percent: 100.0 * step(drawn) / longest,
        bar: Some(bar::of(&drawn.diagnosis)).filter(|bar| !bar.parts.is_empty()),
    });
    let sentences = comparison
        .stages
        .iter()
        .map(|stages| stages.statement.clone())
        .chain(text::growth(comparison))
        .chain(text::findings(comparison))
        .chain(comparison.environment.iter().map(|difference| format!("Differs: {difference}")));
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
        changes: changes(comparison),
        tables: text::tables(comparison, text::Shown::All)
            .into_iter()
            .map(|table| Grid { titles: table.titles, rows: table.rows })
            .collect(),
        sweep: text::sweep(comparison).map(Grid::from),
        limits: comparison.limitations.iter().cloned().chain(of_runs).collect(),
        legend: legend(runs.iter().map(|drawn| &drawn.picture)),
        data: runs
            .iter()
            .zip(&comparison.runs)
            .map(|(drawn, run)| encoded(&drawn.picture, &labels(drawn, &run.label)))
            .collect(),
    };
    page(&comparison.statement, &view.render()?, true)
}
