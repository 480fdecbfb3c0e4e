//! How do the figures follow a label such as the batch size, and what grew more than it?

use serde::Serialize;

use super::change::times_of;
use super::{parts, step_ms};
use crate::answers::diagnosis::Diagnosis;
use crate::figures::FigureId;
use crate::quantity::milliseconds;
use crate::unit::Unit;

/// How the figures follow the label.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    pub key: String,
    pub values: Vec<f64>,
    /// Label units per second: samples per second if the label is the batch size.
    pub throughput: Vec<f64>,
    /// Milliseconds of a step.
    pub step_ms: Vec<f64>,
    /// Share of the time in which the GPU ran anything; `null` without GPU events.
    pub busy_share: Vec<Option<f64>>,
    /// Share of the time in which only copies ran; `null` without GPU events.
    pub exposed_copy_share: Vec<Option<f64>>,
    /// Parts of the step that grew more than the label, most added time first. Empty if there are several series.
    pub grew_faster: Vec<Growth>,
    /// The runs by what else they differ in; empty if that is nothing.
    pub series: Vec<Series>,
}

/// Runs that differ only in the label.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// `memory=pinned`.
    pub name: String,
    /// The positions of its runs, in the order of their values.
    pub runs: Vec<usize>,
    /// The answer in a sentence.
    pub statement: String,
    /// Parts of the step that grew more than the label, most added time first.
    pub grew_faster: Vec<Growth>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    pub part: String,
    /// `null` if it was zero in the first run.
    pub factor: Option<f64>,
    pub added_ms: f64,
    /// Time beyond growth in proportion to the label.
    pub beyond_ms: f64,
}

/// How the runs differ, e.g. `batch` = 2, 4, 8.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    pub key: String,
    pub values: Vec<f64>,
    /// What else they differ in: one series for each combination.
    pub others: Vec<SeriesLabel>,
}

/// What series of runs differ in, e.g. `memory` = pinned, pinned, pageable.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesLabel {
    pub key: String,
    /// Of each run.
    pub values: Vec<String>,
}

impl Labels {
    /// One series.
    pub fn new(key: impl Into<String>, values: Vec<f64>) -> Self {
        Self { key: key.into(), values, others: Vec::new() }
    }

    /// `batch=2, memory=pinned`.
    pub(super) fn of_run(&self, run: usize) -> String {
        let own = format!("{}={}", self.key, self.values[run]);
        std::iter::once(own).chain(self.series_of(run)).collect::<Vec<_>>().join(", ")
    }

    fn series_of(&self, run: usize) -> Option<String> {
        let each = self.others.iter().map(|label| format!("{}={}", label.key, label.values[run]));
        (!self.others.is_empty()).then(|| each.collect::<Vec<_>>().join(", "))
    }

    /// The names of the series and their runs, in the order in which they occur.
    fn series(&self) -> Vec<(String, Vec<usize>)> {
        let mut all: Vec<(String, Vec<usize>)> = Vec::new();
        for run in 0..self.values.len() {
            let Some(name) = self.series_of(run) else { continue };
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, runs)) => runs.push(run),
                None => all.push((name, vec![run])),
            }
        }
        for (_, runs) in &mut all {
            runs.sort_by(|a, b| self.values[*a].total_cmp(&self.values[*b]));
        }
        all
    }
}

/// Growth below this share of the step is noise.
const NOISE: f64 = 0.01;

pub(super) fn sweep(runs: &[Diagnosis], labels: &Labels) -> Sweep {
    let throughput: Vec<f64> =
        runs.iter().zip(&labels.values).map(|(run, label)| label / (step_ms(run) / 1e3)).collect();
    let one = |(name, of): (String, Vec<usize>)| {
        let members: Vec<&Diagnosis> = of.iter().map(|run| &runs[*run]).collect();
        let values: Vec<f64> = of.iter().map(|run| labels.values[*run]).collect();
        let rates: Vec<f64> = of.iter().map(|run| throughput[*run]).collect();
        let grew_faster = growth(&members, &values);
        let text = sentence(&members, &labels.key, (&values, &rates), &grew_faster);
        Series { statement: format!("{name}: {text}"), name, runs: of, grew_faster }
    };
    let series: Vec<Series> = labels.series().into_iter().map(one).collect();
    let all: Vec<&Diagnosis> = runs.iter().collect();
    Sweep {
        key: labels.key.clone(),
        values: labels.values.clone(),
        throughput,
        step_ms: runs.iter().map(step_ms).collect(),
        busy_share: runs.iter().map(|run| FigureId::BusyShare.of(run)).collect(),
        exposed_copy_share: runs.iter().map(|run| FigureId::ExposedCopyShare.of(run)).collect(),
        grew_faster: if series.is_empty() { growth(&all, &labels.values) } else { Vec::new() },
        series,
    }
}

/// Parts of the step that grew more than the label, from the first run to the last.
fn growth(runs: &[&Diagnosis], values: &[f64]) -> Vec<Growth> {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Vec::new() };
    let ratio = growth_of(values);
    let mut grew = Vec::new();
    for ((part, a), (_, b)) in parts::of(first).zip(parts::of(last)) {
        let beyond_ms = b - a * ratio;
        if beyond_ms > NOISE * step_ms(last) {
            let factor = (a > 0.0).then(|| b / a);
            grew.push(Growth { part: part.label().to_owned(), factor, added_ms: b - a, beyond_ms });
        }
    }
    grew.sort_by(|x, y| y.beyond_ms.total_cmp(&x.beyond_ms));
    grew
}

/// The last value divided by the first.
fn growth_of(values: &[f64]) -> f64 {
    values.first().zip(values.last()).map_or(1.0, |(first, last)| last / first)
}

pub(super) fn statement(runs: &[Diagnosis], sweep: &Sweep) -> String {
    if sweep.series.is_empty() {
        let runs: Vec<&Diagnosis> = runs.iter().collect();
        return sentence(&runs, &sweep.key, (&sweep.values, &sweep.throughput), &sweep.grew_faster);
    }
    let each = sweep.series.iter().map(|series| series.statement.clone());
    between(sweep).into_iter().chain(each).collect::<Vec<_>>().join(" ")
}

/// How much faster the fastest series is than the slowest, at the largest value that several series have.
fn between(sweep: &Sweep) -> Option<String> {
    let mut values = sweep.values.clone();
    values.sort_by(f64::total_cmp);
    let at = |value: f64| {
        let of = |series: &Series| {
            let run = series.runs.iter().find(|run| sweep.values[**run] == value)?;
            Some((sweep.step_ms[*run], series.name.clone()))
        };
        sweep.series.iter().filter_map(of).collect::<Vec<_>>()
    };
    let (value, found) =
        values.into_iter().rev().map(|value| (value, at(value))).find(|(_, found)| found.len() > 1)?;
    let fastest = found.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let slowest = found.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "At {}={value}, {} takes {} per step, {} takes {} ({}).",
        sweep.key,
        fastest.1,
        milliseconds(fastest.0),
        slowest.1,
        milliseconds(slowest.0),
        factor(slowest.0 / fastest.0)
    ))
}

/// `4x batch: 274 ms → 79.8 ms per step (0.29x), 14x throughput. …`
fn sentence(
    runs: &[&Diagnosis],
    key: &str,
    (values, throughput): (&[f64], &[f64]),
    grew: &[Growth],
) -> String {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return String::new() };
    let unit = first.unit();
    let (a, b) = (step_ms(first), step_ms(last));
    if runs.len() == 1 {
        return format!("{} per {unit} with {key}={}.", milliseconds(a), values[0]);
    }
    let cause = match grew.first() {
        Some(part) => {
            let factor = part.factor.map_or("new".to_owned(), factor);
            let added = milliseconds(part.added_ms);
            format!("Grew more than {key}: {} ({factor}, +{added} per {unit}).", part.part)
        }
        None if unit == Unit::Trace => format!("Nothing grew more than {key}."),
        None => format!("No part of the {unit} grew more than {key}."),
    };
    format!(
        "{} {key}: {} → {} per {unit} ({}), {} throughput. {cause}",
        factor(growth_of(values)),
        milliseconds(a),
        milliseconds(b),
        factor(b / a),
        factor(growth_of(throughput)),
    )
}

/// `2x`, `0.38x`: a factor in either direction.
fn factor(factor: f64) -> String {
    match factor {
        f if f == f.trunc() => format!("{f:.0}x"),
        f if f < 1.0 => format!("{f:.2}x"),
        f => times_of(f),
    }
}
