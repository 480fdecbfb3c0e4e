//! What does a gate say in rows?

use busbound_diagnosis::{Check, GatedRun};

use super::Table;

/// Every requirement of one run: what it came to, those that failed first.
pub(crate) fn checks(run: &GatedRun) -> Table {
    let mut checks: Vec<&Check> = run.checks.iter().collect();
    checks.sort_by_key(|check| check.passed);
    let rows = checks.into_iter().map(row).collect();
    Table { titles: vec!["requirement", "is", "limit", "unit", ""], rows }
}

fn row(check: &Check) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("not told".to_owned(), digits);
    let outcome = if check.passed { "ok" } else { "FAILED" };
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
        a if a >= 100.0 => format!("{value:.1}"),
        a if a >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Requirements that could not be decided, and why.
pub(crate) fn undecided(run: &GatedRun) -> Vec<String> {
    let undecided = run.checks.iter().filter(|check| check.value.is_none());
    undecided.filter_map(|check| Some(format!("{}: {}", check.require, check.why.as_ref()?))).collect()
}
