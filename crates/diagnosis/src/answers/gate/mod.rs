//! Does this run meet its requirements?
//!
//! A requirement compares [figures](FigureId) of a run with numbers or with a baseline ([expression]). It fails if it
//! cannot be decided.

mod expression;
mod figure;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use expression::{Requirement, RequirementError};

use crate::answers::diagnosis::Diagnosis;
use crate::figures::{FigureId, FigureUnit};
use crate::quantity::plural;
use crate::unit::Unit;
use expression::Values;
use figure::GateFigure;

pub const GATE_SCHEMA: &str = "busbound.gate/2";

/// The schema of the first release. Its figures have the same names, so its files are still valid baselines.
const FIRST_GATE_SCHEMA: &str = "busbound.gate/1";

/// The result of `busbound gate`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    pub schema: &'static str,
    pub passed: bool,
    pub statement: String,
    pub baseline: Option<String>,
    pub runs: Vec<GatedRun>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GatedRun {
    pub path: String,
    /// Whether the whole file could be read.
    pub complete: bool,
    pub verdict: String,
    /// What the figures are per.
    pub unit: Unit,
    pub passed: bool,
    pub checks: Vec<Check>,
    /// Every figure of the run, for use as a baseline.
    pub figures: BTreeMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    pub require: String,
    pub passed: bool,
    /// The left side; `null` if a figure is not available.
    pub value: Option<f64>,
    /// The right side; `null` if a figure is not available.
    pub limit: Option<f64>,
    pub unit: String,
    /// Why it failed; `null` if it passed.
    pub why: Option<String>,
}

/// Figures to compare with: of a run, or saved by an earlier gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    pub path: String,
    pub unit: Unit,
    pub figures: BTreeMap<String, f64>,
}

/// The part of a saved gate that a baseline needs.
#[derive(Debug, Deserialize)]
struct SavedGate {
    schema: String,
    runs: Vec<SavedRun>,
}

#[derive(Debug, Deserialize)]
struct SavedRun {
    unit: Unit,
    figures: BTreeMap<String, f64>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    #[error("is damaged, or not what `busbound gate --format json` writes: write it again ({0})")]
    Json(#[from] serde_json::Error),
    #[error("has schema {0:?}, not {GATE_SCHEMA:?}")]
    Schema(String),
    #[error("has {0} runs; a baseline needs exactly one")]
    Runs(usize),
}

impl Baseline {
    pub fn of(run: &Diagnosis) -> Self {
        Self { path: run.source.path.clone(), unit: run.unit(), figures: all_figures(run) }
    }

    /// A baseline that `busbound gate --format json` wrote.
    ///
    /// # Errors
    /// If it is something else, or has several runs.
    pub fn saved(path: &str, json: &str) -> Result<Self, BaselineError> {
        let saved: SavedGate = serde_json::from_str(json)?;
        if saved.schema != GATE_SCHEMA && saved.schema != FIRST_GATE_SCHEMA {
            return Err(BaselineError::Schema(saved.schema));
        }
        match <[SavedRun; 1]>::try_from(saved.runs) {
            Ok([run]) => Ok(Self { path: path.to_owned(), unit: run.unit, figures: run.figures }),
            Err(runs) => Err(BaselineError::Runs(runs.len())),
        }
    }
}

fn all_figures(run: &Diagnosis) -> BTreeMap<String, f64> {
    let catalog = FigureId::ALL.iter().filter_map(|figure| Some((figure.name().to_owned(), figure.of(run)?)));
    let rates = run.throughput.iter().filter_map(|rate| Some((rate.name.clone(), rate.per_s?)));
    catalog.chain(rates).collect()
}

struct RunValues<'a> {
    run: &'a Diagnosis,
    baseline: Option<&'a Baseline>,
}

impl Values for RunValues<'_> {
    fn figure(&self, figure: &GateFigure) -> Option<f64> {
        figure.of(self.run)
    }

    fn baseline(&self, figure: &GateFigure) -> Option<f64> {
        self.baseline?.figures.get(figure.name()).copied()
    }
}

/// Checks every run against every requirement. A file of which only a part could be read fails unless `partial` allows it.
pub fn gate(
    runs: &[Diagnosis],
    requirements: &[Requirement],
    baseline: Option<&Baseline>,
    partial: bool,
) -> Gate {
    let runs: Vec<GatedRun> = runs
        .iter()
        .map(|run| {
            let values = RunValues { run, baseline };
            let mut checks: Vec<Check> = requirements.iter().map(|wanted| check(wanted, &values)).collect();
            if !run.source.complete && !partial {
                checks.push(whole_file());
            }
            GatedRun {
                path: run.source.path.clone(),
                complete: run.source.complete,
                verdict: run.verdict.statement.clone(),
                unit: run.unit(),
                passed: checks.iter().all(|check| check.passed),
                checks,
                figures: all_figures(run),
            }
        })
        .collect();
    let failed: Vec<&Check> = runs.iter().flat_map(|run| &run.checks).filter(|check| !check.passed).collect();
    let all: usize = runs.iter().map(|run| run.checks.len()).sum();
    let statement = statement(&failed, all, runs.len());
    Gate {
        schema: GATE_SCHEMA,
        passed: failed.is_empty(),
        statement,
        baseline: baseline.map(|baseline| baseline.path.clone()),
        runs,
    }
}

fn statement(failed: &[&Check], all: usize, runs: usize) -> String {
    let of = if runs > 1 { format!(" in {runs} runs") } else { String::new() };
    let checks = plural(all as u64, "check", "checks");
    match failed.first() {
        None => format!("Passed: {checks}{of}."),
        Some(first) => {
            let why = first.why.as_deref().unwrap_or_default();
            format!("Failed: {} of {checks}{of}. {}: {why}.", failed.len(), first.require)
        }
    }
}

/// The figures of a part do not describe the rest of the file.
fn whole_file() -> Check {
    Check {
        require: "the whole file is readable".to_owned(),
        passed: false,
        value: None,
        limit: None,
        unit: String::new(),
        why: Some("it is cut off or damaged; --partial checks the part that can be read".to_owned()),
    }
}

fn check(wanted: &Requirement, values: &RunValues<'_>) -> Check {
    let unit = wanted.figures().first().map_or(String::new(), |figure| figure.unit(values.run.unit()));
    let check =
        Check { require: wanted.text.clone(), passed: false, value: None, limit: None, unit, why: None };
    let has_other_unit =
        values.baseline.filter(|baseline| wanted.needs_baseline() && baseline.unit != values.run.unit());
    if let Some(baseline) = has_other_unit {
        let (own, other) = (values.run.unit(), &baseline.unit);
        let why = format!("the figures of this run are per {own}, those of the baseline per {other}");
        return Check { why: Some(why), ..check };
    }
    let Some(outcome) = wanted.decide(values) else {
        return Check { why: Some(why_undecided(wanted, values)), ..check };
    };
    let (value, limit) = (short(outcome.left), short(outcome.right));
    let unit = if check.unit == FigureUnit::Share.symbol() { "" } else { check.unit.as_str() };
    let space = if unit.is_empty() || unit.starts_with(['/', '%']) { "" } else { " " };
    let of = format!("{space}{unit}");
    Check {
        passed: outcome.is_met,
        value: Some(outcome.left),
        limit: Some(outcome.right),
        why: (!outcome.is_met).then(|| format!("{value}{of} is not {} {limit}{of}", wanted.operator())),
        ..check
    }
}

/// Why a requirement has no value.
fn why_undecided(wanted: &Requirement, values: &RunValues<'_>) -> String {
    let figures = wanted.figures();
    if let Some(figure) = figures.iter().find(|figure| values.figure(figure).is_none()) {
        return format!("{} is not available in this run ({})", figure.name(), figure.summary());
    }
    let is_missing = |figure: &&&GateFigure| values.baseline.is_some() && values.baseline(figure).is_none();
    if let Some(figure) = figures.iter().find(is_missing).filter(|_| wanted.needs_baseline()) {
        return format!("{} is not available in the baseline", figure.name());
    }
    "it divides by zero".to_owned()
}

/// Four digits, so that a narrow failure does not read `5.00 is not < 5.00`.
fn short(value: f64) -> String {
    match value.abs() {
        a if a >= 1000.0 || value == value.trunc() && a >= 1.0 => format!("{value:.0}"),
        a if a >= 100.0 => format!("{value:.1}"),
        a if a >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
