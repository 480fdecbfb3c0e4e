//! One bar per resource: the step now, with the resource 10% faster, and with it free.

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Diagnosis, ResourceBound, Unit};

use crate::text::bounds as text;

pub(super) struct BoundsView {
    pub(super) about: String,
    pub(super) unit: Unit,
    pub(super) now: String,
    pub(super) rows: Vec<BoundRow>,
}

pub(super) struct BoundRow {
    pub(super) resource: &'static str,
    pub(super) busy: String,
    pub(super) exposed: String,
    pub(super) faster: String,
    pub(super) free: String,
    /// Of the step now.
    pub(super) faster_percent: f64,
    pub(super) free_percent: f64,
}

impl BoundsView {
    /// `None` if the trace cannot say.
    pub(super) fn of(diagnosis: &Diagnosis) -> Option<Self> {
        let now = diagnosis.window.baseline_ms.max(f64::MIN_POSITIVE);
        let percent = |ms: f64| (100.0 * ms / now).clamp(0.0, 100.0);
        let row = |bound: &ResourceBound| BoundRow {
            resource: text::word(bound.resource),
            busy: milliseconds(bound.busy_ms),
            exposed: milliseconds(bound.exposed_ms),
            faster: milliseconds(bound.step_if_10pct_faster_ms),
            free: milliseconds(bound.step_if_free_ms),
            faster_percent: percent(bound.step_if_10pct_faster_ms),
            free_percent: percent(bound.step_if_free_ms),
        };
        Some(Self {
            about: text::about(diagnosis)?,
            unit: diagnosis.unit(),
            now: milliseconds(diagnosis.window.baseline_ms),
            rows: text::ranked(diagnosis).into_iter().map(row).collect(),
        })
    }
}
