//! What does a gate show in rows?

use busbound_diagnosis::quantity::count;
use busbound_diagnosis::{Check, GatedRun};

use super::Table;

/// Every requirement of one run with its result, failed ones first.
pub(crate) fn checks(run: &GatedRun) -> Table {
    let mut checks: Vec<&Check> = run.checks.iter().collect();
    checks.sort_by_key(|check| check.passed);
    let rows = checks.into_iter().map(row).collect();
    Table { titles: vec!["requirement", "value", "limit", "unit", "result"], rows }
}

fn row(check: &Check) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("unknown".to_owned(), digits);
    let outcome = if check.passed { "OK" } else { "FAILED" };
    vec![
        check.require.clone(),
        number(check.value),
        number(check.limit),
        check.unit.clone(),
        outcome.to_owned(),
    ]
}

fn digits(value: f64) -> String {
    match value.abs() {
        a if a >= 100_000.0 && value > 0.0 => count(value.round() as u64),
        a if a >= 100.0 => format!("{value:.1}"),
        a if a >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Requirements that could not be decided, with the reason.
pub(crate) fn undecided(run: &GatedRun) -> Vec<String> {
    let undecided = run.checks.iter().filter(|check| check.value.is_none());
    undecided.filter_map(|check| Some(format!("{}: {}", check.require, check.why.as_ref()?))).collect()
}
