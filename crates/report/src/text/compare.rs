//! What does a comparison say in words?

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{Comparison, Figure, FigureUnit, FindingId};

use super::Table;

/// Every figure that differs or matters, a row each.
pub(crate) fn figures(comparison: &Comparison) -> (Vec<String>, Vec<Vec<String>>) {
    let mut titles = vec!["per step".to_owned()];
    titles.extend(comparison.runs.iter().map(|run| run.label.clone()));
    titles.push("change".to_owned());
    let rows = comparison.figures.iter().map(row).collect();
    (titles, rows)
}

fn row(figure: &Figure) -> Vec<String> {
    let mut cells = vec![figure.name.clone()];
    let cell = |value: &f64| match figure.unit {
        _ if *value == 0.0 => "–".to_owned(),
        // Copies are of bytes as well as of gigabytes.
        FigureUnit::MegabytesPerStep => bytes((value * 1e6).round() as u64),
        FigureUnit::Microseconds if *value >= 1e3 => milliseconds(value / 1e3),
        FigureUnit::Count | FigureUnit::PerStep if value.fract() == 0.0 => count(*value as u64),
        FigureUnit::Count | FigureUnit::PerStep => number(*value),
        unit => format!("{} {}", number(*value), unit.symbol()),
    };
    cells.extend(figure.values.iter().map(cell));
    cells.push(match figure.delta_pct {
        Some(pct) if pct.abs() < 0.5 => "same".to_owned(),
        Some(-100.0) => "gone".to_owned(),
        Some(pct) if pct > 900.0 => format!("× {:.0}", 1.0 + pct / 100.0),
        Some(pct) => format!("{pct:+.0} %"),
        None => "new".to_owned(),
    });
    cells
}

fn number(value: f64) -> String {
    match value.abs() {
        a if a < 0.0995 => format!("{value:.3}"),
        a if a < 9.995 => format!("{value:.2}"),
        a if a < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Which findings came and went.
pub(crate) fn findings(comparison: &Comparison) -> Vec<String> {
    let list = |what: &str, ids: &[FindingId]| {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        (!ids.is_empty()).then(|| format!("{what}: {}", ids.join(", ")))
    };
    [
        list("Findings that went away", &comparison.gone),
        list("Findings that appeared", &comparison.appeared),
        list("Findings that stayed", &comparison.stayed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Throughput over the label, and what grew faster.
pub(crate) fn sweep(comparison: &Comparison) -> Option<Table> {
    let sweep = comparison.sweep.as_ref()?;
    let rows = sweep
        .values
        .iter()
        .zip(&sweep.throughput)
        .zip(&comparison.runs)
        .map(|((_, rate), run)| vec![run.label.clone(), format!("{} /s", number(*rate))])
        .collect();
    Some(Table { titles: vec!["sweep", "throughput"], rows })
}

pub(crate) fn growth(comparison: &Comparison) -> Vec<String> {
    let Some(sweep) = &comparison.sweep else { return Vec::new() };
    sweep
        .grew_faster
        .iter()
        .map(|growth| {
            let factor = growth.factor.map_or("from nothing".to_owned(), |factor| format!("× {factor:.2}"));
            format!(
                "{} grew {factor}, {} ms more than {} did",
                growth.part,
                number(growth.beyond_ms),
                sweep.key
            )
        })
        .collect()
}
