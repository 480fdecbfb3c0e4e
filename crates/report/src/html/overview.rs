//! The summary of several files: a table of runs to sort and to open, or the ranks of one run.

use askama::Template;
use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Diagnosis, FigureId};
use busbound_fleet::FleetAnswer;

use super::run::file_name;
use super::section::RunSection;
use super::{colors, filters, prose, ranks};
use crate::error::RenderError;
use crate::markdown::fleet::fleet_as_markdown;
use crate::runs::Runs;
use crate::text::diagnosis as single;
use crate::text::fleet as text;

/// The summary of all inputs as the first article of a page.
pub(super) fn overview(about: &Runs<'_>, shown: &[&RunSection]) -> Result<String, RenderError> {
    match about.fleet {
        Some(fleet) => fleet_article(fleet),
        None => runs(about, shown),
    }
}

/// Ranks of one run: the answer, the pictures, then every figure.
pub(super) fn fleet_article(fleet: &FleetAnswer) -> Result<String, RenderError> {
    Ok(prose::article_with("summary", &fleet_as_markdown(fleet), &ranks::pictures(fleet)?))
}

#[derive(Template)]
#[template(path = "runs_table.html")]
struct RunsView {
    statement: String,
    why: Option<String>,
    rows: Vec<RunRow>,
    unread: Vec<String>,
}

struct RunRow {
    /// The number of its section, if the page has one.
    section: Option<usize>,
    name: String,
    path: String,
    bound: &'static str,
    /// Milliseconds, to sort by.
    step: f64,
    step_text: String,
    parts: Vec<RowPart>,
    steps: Option<Sparkline>,
    finding: String,
    /// Milliseconds that the first finding saves at most, to sort by.
    saves: f64,
}

struct RowPart {
    class: &'static str,
    what: String,
    percent: f64,
}

struct Sparkline {
    points: String,
    label: String,
}

fn runs(about: &Runs<'_>, shown: &[&RunSection]) -> Result<String, RenderError> {
    let paths: Vec<&str> = about.all.iter().map(|run| run.source.path.as_str()).collect();
    let longest = about.all.iter().map(step_ms).fold(f64::MIN_POSITIVE, f64::max);
    let row = |(run, name): (&Diagnosis, String)| {
        let section = shown.iter().find(|section| section.diagnosis.source.path == run.source.path);
        let first = run.findings.first();
        RunRow {
            section: section.map(|section| section.number),
            name,
            path: run.source.path.clone(),
            bound: run.verdict.bound.title(),
            step: step_ms(run),
            step_text: match step_ms(run) {
                0.0 => "–".to_owned(),
                ms => format!("{}/{}", milliseconds(ms), run.unit()),
            },
            parts: parts(run, longest),
            steps: sparkline(run),
            finding: first.map_or(String::new(), |finding| finding.title.clone()),
            saves: first.map_or(0.0, |finding| finding.saves_ms_per_step.high),
        }
    };
    let view = RunsView {
        statement: single::overview(about.all),
        why: about.why_not_merged(),
        rows: about.all.iter().zip(short_names(&paths)).map(row).collect(),
        unread: about.unread.iter().map(text::unread).collect(),
    };
    Ok(view.render()?)
}

fn step_ms(run: &Diagnosis) -> f64 {
    FigureId::SpanMs.of(run).unwrap_or(0.0)
}

fn parts(run: &Diagnosis, longest: f64) -> Vec<RowPart> {
    let part = |(figure, ms): (FigureId, f64)| {
        let what = format!("{}: {}", figure.label(), milliseconds(ms));
        RowPart { class: colors::of_part(figure, run), what, percent: 100.0 * ms / longest }
    };
    let parts = FigureId::drawn(FigureId::PARTS, run).into_iter();
    parts.filter(|(_, ms)| *ms > 0.002 * longest).map(part).collect()
}

/// Most points of a sparkline.
const POINTS: usize = 60;

/// The length of each step, as a line on a scale from zero.
fn sparkline(run: &Diagnosis) -> Option<Sparkline> {
    let steps = run.window.steps.as_ref().filter(|steps| steps.each_ms.len() > 2)?;
    let every = steps.each_ms.len().div_ceil(POINTS);
    // Of each group of steps, the longest: an outlier must stay visible.
    let values: Vec<f64> =
        steps.each_ms.chunks(every).map(|chunk| chunk.iter().copied().fold(0.0, f64::max)).collect();
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let x = |i: usize| 100.0 * i as f64 / (values.len() - 1).max(1) as f64;
    let point = |(i, ms): (usize, &f64)| format!("{:.1},{:.1}", x(i), 19.0 - 18.0 * ms / most);
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    let range = busbound_diagnosis::quantity::milliseconds_range(steps.min_ms, steps.max_ms);
    Some(Sparkline { points: points.join(" "), label: format!("{} steps, {range}", steps.count) })
}

/// The shortest ends of paths that tell them apart.
pub(super) fn short_names(paths: &[&str]) -> Vec<String> {
    let end = |path: &str, parts: usize| {
        let all: Vec<&str> = path.split(['/', '\\']).collect();
        all[all.len().saturating_sub(parts)..].join("/")
    };
    let longest = paths.iter().map(|path| path.split(['/', '\\']).count()).max().unwrap_or(1);
    let name = |path: &&str| {
        let is_unique = |parts: &usize| {
            let own = end(path, *parts);
            paths.iter().filter(|other| end(other, *parts) == own).count() == 1
        };
        (1..=longest).find(is_unique).map_or_else(|| file_name(path).to_owned(), |parts| end(path, parts))
    };
    paths.iter().map(name).collect()
}

#[test]
fn names_are_the_shortest_ends_that_differ() {
    assert_eq!(short_names(&["/a/b/x.json", "/a/c/y.json"]), ["x.json", "y.json"]);
    assert_eq!(short_names(&["/a/b/x.json", "/a/c/x.json"]), ["b/x.json", "c/x.json"]);
    assert_eq!(short_names(&["/a/x.json", "/a/x.json"]), ["x.json", "x.json"]);
}
