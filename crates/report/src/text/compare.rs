//! What does a comparison show in words and rows?

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{Comparison, Figure, FigureGroup, FigureUnit, FindingId, Growth};

use super::Table;

/// Figures of one kind, with the name of each run as a title.
pub(crate) struct FigureTable {
    pub(crate) titles: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Which figures a comparison shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    /// Those that changed, and the step.
    Changed,
}

/// Times that change by less than this share of the step are not shown unless all are.
const SMALL_TIME: f64 = 0.01;
/// Parts of the step that take at least this share of it are always shown.
const LARGE_PART: f64 = 0.05;
/// GB/s: a lower rate is that of a few bytes, which says nothing about the link.
const LEAST_RATE: f64 = 0.1;
/// Other figures that change by less than this, in percent.
const SMALL_CHANGE: f64 = 5.0;

/// Whether a figure differs enough between two of the runs to explain something.
fn is_changed(figure: &Figure, step_ms: f64) -> bool {
    let (low, high) = figure
        .values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    match figure.group {
        _ if figure.has_moved => true,
        FigureGroup::Step => true,
        FigureGroup::Part if high >= LARGE_PART * step_ms => true,
        group if is_time(group) => high - low >= SMALL_TIME * step_ms,
        // Copies of a few bytes: neither their time nor their rate explains anything.
        FigureGroup::Copies if figure.unit == FigureUnit::MillisecondsPerStep => {
            high >= SMALL_TIME * step_ms && is_large(low, high)
        }
        FigureGroup::Copies if figure.unit == FigureUnit::GigabytesPerSecond => {
            high >= LEAST_RATE && is_large(low, high)
        }
        _ => is_large(low, high),
    }
}

fn is_large(low: f64, high: f64) -> bool {
    high - low >= SMALL_CHANGE / 100.0 * high.abs().max(low.abs())
}

/// How many figures [`Shown::Changed`] leaves out.
pub(crate) fn left_out(comparison: &Comparison) -> usize {
    let step_ms = longest_step(comparison);
    comparison.figures.iter().filter(|figure| !is_changed(figure, step_ms)).count()
}

fn longest_step(comparison: &Comparison) -> f64 {
    let steps = comparison.figures.iter().filter(|figure| figure.group == FigureGroup::Step);
    steps.flat_map(|figure| &figure.values).copied().fold(0.0, f64::max)
}

/// Every figure in one row of one table. The first table explains the difference of the step.
pub(crate) fn tables(comparison: &Comparison, shown: Shown) -> Vec<FigureTable> {
    let mut tables: Vec<(&str, FigureTable)> = Vec::new();
    let step_ms = longest_step(comparison);
    let is_shown = |figure: &&Figure| shown == Shown::All || is_changed(figure, step_ms);
    for figure in comparison.figures.iter().filter(is_shown) {
        let title = title(figure.group);
        let at = tables.iter().position(|(of, _)| *of == title).unwrap_or_else(|| {
            tables.push((title, FigureTable { titles: titles(comparison, figure.group), rows: Vec::new() }));
            tables.len() - 1
        });
        tables[at].1.rows.push(row(figure));
    }
    tables.into_iter().map(|(_, table)| table).collect()
}

fn titles(comparison: &Comparison, group: FigureGroup) -> Vec<String> {
    let mut titles = vec![title(group).to_owned()];
    titles.extend(comparison.runs.iter().map(|run| run.label.clone()));
    titles.push(if is_time(group) { "difference" } else { "change" }.to_owned());
    titles
}

fn title(group: FigureGroup) -> &'static str {
    match group {
        FigureGroup::Step | FigureGroup::Part => "where the time of a step goes, as recorded",
        FigureGroup::Copies => "copies per step",
        FigureGroup::Block => "blocks, time per step",
        FigureGroup::Kernel => "kernels, time per step",
        FigureGroup::Compiled => "torch.compile, whole trace",
        FigureGroup::Other => "other figures, per step",
    }
}

/// Whether the differences of a group are times that can be added up.
fn is_time(group: FigureGroup) -> bool {
    match group {
        FigureGroup::Step | FigureGroup::Part | FigureGroup::Block | FigureGroup::Kernel => true,
        FigureGroup::Copies | FigureGroup::Compiled | FigureGroup::Other => false,
    }
}

fn row(figure: &Figure) -> Vec<String> {
    let name = match figure.group {
        FigureGroup::Part => format!("  {}", figure.name),
        FigureGroup::Kernel | FigureGroup::Block => shortened(&figure.name),
        _ => figure.name.clone(),
    };
    let mut cells = vec![name];
    cells.extend(figure.values.iter().map(|value| cell(*value, figure.unit)));
    cells.push(if is_time(figure.group) { difference(figure) } else { change(figure) });
    cells
}

fn cell(value: f64, unit: FigureUnit) -> String {
    match unit {
        _ if value == 0.0 => "–".to_owned(),
        FigureUnit::Milliseconds | FigureUnit::MillisecondsPerStep | FigureUnit::MillisecondsPerItem => {
            milliseconds(value)
        }
        FigureUnit::Microseconds => milliseconds(value / 1e3),
        // Copies move a few bytes as well as gigabytes.
        FigureUnit::MegabytesPerStep => bytes((value * 1e6).round() as u64),
        FigureUnit::Count | FigureUnit::PerStep if value.fract() == 0.0 => count(value as u64),
        FigureUnit::PerSecond if value >= 1000.0 => format!("{}/s", count(value.round() as u64)),
        FigureUnit::PerSecond => format!("{}/s", number(value)),
        FigureUnit::Percent => format!("{}%", number(value)),
        FigureUnit::Count | FigureUnit::PerStep | FigureUnit::Share => number(value),
        FigureUnit::GigabytesPerSecond => format!("{} {}", number(value), unit.symbol()),
    }
}

/// `-12.1 ms`.
pub(crate) fn difference(figure: &Figure) -> String {
    match milliseconds(figure.delta.abs()) {
        // Less than a nanosecond.
        zero if zero == "0 ns" => "0".to_owned(),
        time if figure.delta < 0.0 => format!("-{time}"),
        time => format!("+{time}"),
    }
}

/// `-8%`, `18x`, `new`.
fn change(figure: &Figure) -> String {
    match figure.delta_pct {
        Some(pct) if pct.abs() < 0.5 => "same".to_owned(),
        Some(-100.0) => "gone".to_owned(),
        Some(pct) if pct > 900.0 => format!("{:.0}x", 1.0 + pct / 100.0),
        Some(pct) => format!("{pct:+.0}%"),
        None if figure.delta == 0.0 => "same".to_owned(),
        None => "new".to_owned(),
    }
}

/// A name that fits into one line of 80 columns. Its end distinguishes instances of one template.
fn shortened(name: &str) -> String {
    const MOST: usize = 46;
    const END: usize = 16;
    let name = name.strip_prefix("void ").unwrap_or(name);
    let length = name.chars().count();
    if length <= MOST {
        return name.to_owned();
    }
    let start: String = name.chars().take(MOST - END - 1).collect();
    let end: String = name.chars().skip(length - END).collect();
    format!("{start}…{end}")
}

fn number(value: f64) -> String {
    match value.abs() {
        a if a < 0.0995 => format!("{value:.3}"),
        a if a < 9.995 => format!("{value:.2}"),
        a if a < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Which findings each run has. Neither list says that a run got slower.
pub(crate) fn findings(comparison: &Comparison) -> Vec<String> {
    let list = |what: &str, ids: &[FindingId]| {
        let ids: Vec<String> = ids.iter().map(|id| format!("{} ({id})", id.title())).collect();
        (!ids.is_empty()).then(|| format!("{what}: {}", ids.join(", ")))
    };
    [
        list("No longer found", &comparison.gone),
        list("Found now", &comparison.appeared),
        list("Found in both", &comparison.stayed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Throughput over the label.
pub(crate) fn sweep(comparison: &Comparison) -> Option<Table> {
    let sweep = comparison.sweep.as_ref()?;
    let share = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.0}%", 100.0 * share));
    let row = |i: usize| {
        vec![
            comparison.runs[i].label.clone(),
            milliseconds(sweep.step_ms[i]),
            cell(sweep.throughput[i], FigureUnit::PerSecond),
            share(sweep.busy_share[i]),
            share(sweep.exposed_copy_share[i]),
        ]
    };
    let order: Vec<usize> = match sweep.series.as_slice() {
        [] => (0..comparison.runs.len()).collect(),
        several => several.iter().flat_map(|series| series.runs.iter().copied()).collect(),
    };
    let rows = order.into_iter().map(row).collect();
    Some(Table { titles: vec!["sweep", "step", "throughput", "GPU busy", "exposed copies"], rows })
}

/// Which parts of the step grew more than the label.
pub(crate) fn growth(comparison: &Comparison) -> Vec<String> {
    let Some(sweep) = &comparison.sweep else { return Vec::new() };
    let words = |growth: &Growth| {
        let factor = growth.factor.map_or("is new".to_owned(), |factor| format!("grew {factor:.1}x"));
        let beyond = milliseconds(growth.beyond_ms);
        format!("{} {factor}: {beyond} more than in proportion to {}", growth.part, sweep.key)
    };
    let of_series = sweep.series.iter().flat_map(|series| {
        series.grew_faster.iter().map(|growth| format!("{}: {}", series.name, words(growth)))
    });
    sweep.grew_faster.iter().map(words).chain(of_series).collect()
}
