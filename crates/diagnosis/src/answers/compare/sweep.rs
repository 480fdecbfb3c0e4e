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
}

/// Growth below this share of the step is noise.
const NOISE: f64 = 0.01;

pub(super) fn sweep(runs: &[Diagnosis], labels: &Labels) -> Sweep {
    let throughput =
        runs.iter().zip(&labels.values).map(|(run, label)| label / (step_ms(run) / 1e3)).collect();
    let mut grew = Vec::new();
    if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
        let ratio = growth_of(&labels.values);
        for ((part, a), (_, b)) in parts::of(first).zip(parts::of(last)) {
            let beyond_ms = b - a * ratio;
            if beyond_ms > NOISE * step_ms(last) {
                let factor = (a > 0.0).then(|| b / a);
                grew.push(Growth { part: part.label().to_owned(), factor, added_ms: b - a, beyond_ms });
            }
        }
        grew.sort_by(|x, y| y.beyond_ms.total_cmp(&x.beyond_ms));
    }
    Sweep {
        key: labels.key.clone(),
        values: labels.values.clone(),
        throughput,
        step_ms: runs.iter().map(step_ms).collect(),
        busy_share: runs.iter().map(|run| FigureId::BusyShare.of(run)).collect(),
        exposed_copy_share: runs.iter().map(|run| FigureId::ExposedCopyShare.of(run)).collect(),
        grew_faster: grew,
    }
}

/// The last value divided by the first.
fn growth_of(values: &[f64]) -> f64 {
    values.first().zip(values.last()).map_or(1.0, |(first, last)| last / first)
}

/// `4x batch: 274 ms → 79.8 ms per step (0.29x), 14x throughput. …`
pub(super) fn statement(runs: &[Diagnosis], sweep: &Sweep) -> String {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return String::new() };
    let (key, unit) = (&sweep.key, first.unit());
    let (a, b) = (step_ms(first), step_ms(last));
    let cause = match sweep.grew_faster.first() {
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
        factor(growth_of(&sweep.values)),
        milliseconds(a),
        milliseconds(b),
        factor(b / a),
        factor(growth_of(&sweep.throughput)),
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
