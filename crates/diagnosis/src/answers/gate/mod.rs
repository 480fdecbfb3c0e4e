//! Does this run still meet its bar?
//!
//! Requirements name [figures](FigureId) of a run and bound them by numbers or by a baseline ([expression]). What
//! cannot be decided does not pass.

mod expression;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use expression::{Requirement, RequirementError};

use crate::answers::diagnosis::Diagnosis;
use crate::figures::FigureId;
use crate::unit::Unit;
use expression::Values;

pub const GATE_SCHEMA: &str = "busbound.gate/2";

/// Of the first release: its figures have the same names, so its files still serve as baselines.
const FIRST_GATE_SCHEMA: &str = "busbound.gate/1";

/// What `busbound gate` tells.
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
    /// Whether all of the file could be read.
    pub complete: bool,
    pub verdict: String,
    /// What figures are for.
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
    /// Both sides of it; `null` where a figure is not told.
    pub value: Option<f64>,
    pub limit: Option<f64>,
    pub unit: String,
    /// Why it did not pass; `null` where it did.
    pub why: Option<String>,
}

/// Figures to be compared with: of a run, or saved by an earlier gate.
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
    #[error("is not what `busbound gate --format json` writes: {0}")]
    Json(#[from] serde_json::Error),
    #[error("has schema {0:?}, not {GATE_SCHEMA:?}")]
    Schema(String),
    #[error("holds {0} runs; a baseline is one")]
    Runs(usize),
}

impl Baseline {
    pub fn of(run: &Diagnosis) -> Self {
        Self { path: run.source.path.clone(), unit: run.unit(), figures: all_figures(run) }
    }

    /// A baseline that `busbound gate --format json` wrote.
    ///
    /// # Errors
    /// If it is something else, or speaks of several runs.
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
    FigureId::ALL.iter().filter_map(|figure| Some((figure.name().to_owned(), figure.of(run)?))).collect()
}

struct RunValues<'a> {
    run: &'a Diagnosis,
    baseline: Option<&'a Baseline>,
}

impl Values for RunValues<'_> {
    fn figure(&self, figure: FigureId) -> Option<f64> {
        figure.of(self.run)
    }

    fn baseline(&self, figure: FigureId) -> Option<f64> {
        self.baseline?.figures.get(figure.name()).copied()
    }
}

/// Holds every run against every requirement. A file read in part does not pass unless `partial` allows it.
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
                checks.push(read_in_part());
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
    let statement = match (failed.len(), failed.first()) {
        (_, None) => format!("Passed: {all} of {all} requirements hold."),
        (n, Some(first)) => {
            let why = first.why.as_deref().unwrap_or_default();
            let of = if runs.len() > 1 { format!(" over {} runs", runs.len()) } else { String::new() };
            format!("Failed: {n} of {all} requirements do not hold{of}; {}: {why}.", first.require)
        }
    };
    Gate {
        schema: GATE_SCHEMA,
        passed: failed.is_empty(),
        statement,
        baseline: baseline.map(|baseline| baseline.path.clone()),
        runs,
    }
}

/// Figures of a part say nothing of the rest.
fn read_in_part() -> Check {
    Check {
        require: "the whole file could be read".to_owned(),
        passed: false,
        value: None,
        limit: None,
        unit: String::new(),
        why: Some("it was read in part; --partial holds what was read to the bar".to_owned()),
    }
}

fn check(wanted: &Requirement, values: &RunValues<'_>) -> Check {
    let unit =
        wanted.figures().first().map_or(String::new(), |figure| figure.unit().phrase(values.run.unit()));
    let check =
        Check { require: wanted.text.clone(), passed: false, value: None, limit: None, unit, why: None };
    let has_other_unit =
        values.baseline.filter(|baseline| wanted.needs_baseline() && baseline.unit != values.run.unit());
    if let Some(baseline) = has_other_unit {
        let (own, other) = (values.run.unit(), &baseline.unit);
        let why = format!("this run's figures are for a {own}, the baseline's for a {other}");
        return Check { why: Some(why), ..check };
    }
    match wanted.decide(values) {
        None => Check { why: Some(why_undecided(wanted, values)), ..check },
        Some(outcome) => Check {
            passed: outcome.holds,
            value: Some(outcome.left),
            limit: Some(outcome.right),
            why: (!outcome.holds)
                .then(|| format!("{} against {}", short(outcome.left), short(outcome.right))),
            ..check
        },
    }
}

/// Why a requirement has no value.
fn why_undecided(wanted: &Requirement, values: &RunValues<'_>) -> String {
    let figures = wanted.figures();
    if let Some(figure) = figures.iter().find(|figure| values.figure(**figure).is_none()) {
        return format!("this run does not tell {figure} ({})", figure.summary());
    }
    let is_missing = |figure: &FigureId| values.baseline.is_some() && values.baseline(*figure).is_none();
    if wanted.needs_baseline() && figures.iter().any(is_missing) {
        return "the baseline does not tell it".to_owned();
    }
    "it divides by zero".to_owned()
}

/// Four digits, so that a failure by a little does not read `5.00 against 5.00`.
fn short(value: f64) -> String {
    match value.abs() {
        a if a >= 1000.0 || value == value.trunc() && a >= 1.0 => format!("{value:.0}"),
        a if a >= 100.0 => format!("{value:.1}"),
        a if a >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
