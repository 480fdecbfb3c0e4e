//! Which parts of the step explain its difference? The rows sum to the whole difference.

use serde::Serialize;

use super::{Figure, FigureGroup, step_ms};
use crate::answers::diagnosis::Diagnosis;
use crate::figures::FigureId;
use crate::quantity::milliseconds;
use crate::unit::Unit;

/// A part of the step in the first and in the last run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartChange {
    pub part: String,
    pub before_ms: f64,
    pub after_ms: f64,
}

impl PartChange {
    pub(super) fn statement(&self, unit: Unit) -> String {
        let (before, after) = (milliseconds(self.before_ms), milliseconds(self.after_ms));
        format!(" Largest change per {unit}: {} {before} → {after}.", self.part)
    }
}

/// The parts of a step, in milliseconds.
pub(super) fn of(run: &Diagnosis) -> impl Iterator<Item = (FigureId, f64)> + '_ {
    FigureId::PARTS.iter().map(|&figure| (figure, figure.of(run).unwrap_or(0.0)))
}

/// The parts, largest difference first. In each run they sum to its step.
pub(super) fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    // Without a GPU the step has no parts, and everything would be unexplained.
    if runs.iter().any(|run| run.devices.is_empty()) {
        return Vec::new();
    }
    let part = |part: &FigureId| {
        let values = runs.iter().map(|run| part.of(run).unwrap_or(0.0)).collect();
        Figure::of_time(FigureGroup::Part, part.label().to_owned(), values)
    };
    let mut list: Vec<Figure> = FigureId::PARTS.iter().filter_map(part).collect();
    list.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()));
    list
}

/// The part that changed most. Parts that changed in the other direction do not explain the difference.
pub(super) fn largest_change(runs: &[Diagnosis]) -> Option<PartChange> {
    let (first, last) = (runs.first()?, runs.last()?);
    let is_faster = step_ms(last) < step_ms(first);
    let figures = figures(runs);
    let same_direction = figures.iter().filter(|part| part.delta != 0.0 && (part.delta < 0.0) == is_faster);
    let largest = same_direction.max_by(|a, b| a.delta.abs().total_cmp(&b.delta.abs()))?;
    Some(PartChange {
        part: largest.name.clone(),
        before_ms: *largest.values.first()?,
        after_ms: *largest.values.last()?,
    })
}
