//! The bar of a step: its parts, with idle time by cause, add up to it.

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Diagnosis, FigureId};

use super::colors;

pub(super) struct Bar {
    pub(super) of: String,
    pub(super) parts: Vec<BarPart>,
}

pub(super) struct BarPart {
    pub(super) what: &'static str,
    pub(super) class: &'static str,
    pub(super) time: String,
    pub(super) percent: f64,
    /// The id of its explanation.
    pub(super) explained: &'static str,
    /// Whether that is the explanation of a figure, not of an idle cause.
    pub(super) is_figure: bool,
}

/// Parts below this share of the step have no place in the bar.
const SMALLEST: f64 = 0.005;

/// Where the time of a step goes.
pub(super) fn of(diagnosis: &Diagnosis) -> Bar {
    let parts = FigureId::drawn(FigureId::PARTS, diagnosis);
    let total: f64 = parts.iter().map(|(_, ms)| ms).sum();
    let part = |(figure, ms): (FigureId, f64)| {
        let cause = figure.idle_cause();
        BarPart {
            what: figure.label(),
            class: colors::of_part(figure, diagnosis),
            time: milliseconds(ms),
            percent: 100.0 * ms / total.max(f64::MIN_POSITIVE),
            explained: cause.map_or(figure.name(), |cause| cause.id()),
            is_figure: cause.is_none(),
        }
    };
    Bar {
        of: format!("{} per {}", milliseconds(total), diagnosis.unit()),
        parts: parts.into_iter().filter(|(_, ms)| *ms > SMALLEST * total).map(part).collect(),
    }
}
