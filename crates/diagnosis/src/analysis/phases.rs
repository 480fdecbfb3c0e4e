//! What do the phases of a run take, apart from its steps?

use busbound_cause::Host;
use busbound_trace::{Direction, Event, EventKind, Trace};
use serde::Serialize;

use super::loading::{Loading, loading};
use crate::quantity::{bytes, milliseconds, plural};
use crate::steps::phases::{FoundPhase, PhaseFound, PhaseKind, span};

/// Loading, evaluation, checkpoints, and what the program marks as a phase. None of it is in the figures of the steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunPhase {
    pub kind: PhaseKind,
    /// The range, function or mark that it was found by.
    pub name: String,
    pub found: PhaseFound,
    /// How often it occurs.
    pub count: usize,
    /// On the host, all together.
    pub ms: f64,
    /// Of the time of the trace, 0 to 1.
    pub share: f64,
    /// Bytes that it copied to the device and back.
    pub h2d_bytes: u64,
    pub d2h_bytes: u64,
    /// What bounds it; only for loading.
    pub loading: Option<Loading>,
    pub statement: String,
}

/// The phases for the answer. `link_gbps` is the peak of the first GPU's link, if known.
pub(crate) fn phases(
    found: &[FoundPhase],
    trace: &Trace,
    host: &Host<'_>,
    link_gbps: Option<f64>,
) -> Vec<RunPhase> {
    if found.is_empty() {
        return Vec::new();
    }
    let whole_ms = span(trace).map_or(0.0, |span| span.length().as_millis());
    found.iter().map(|phase| run_phase(phase, trace, host, link_gbps, whole_ms)).collect()
}

fn run_phase(
    phase: &FoundPhase,
    trace: &Trace,
    host: &Host<'_>,
    link_gbps: Option<f64>,
    whole_ms: f64,
) -> RunPhase {
    let copies: Vec<Event<'_>> = trace
        .events()
        .filter(|event| event.kind() == EventKind::Copy)
        .filter(|copy| phase.times.covers(host.call_behind(copy).map_or(copy.start(), |call| call.start())))
        .collect();
    let moved = |direction| {
        let of = copies
            .iter()
            .filter_map(|copy| copy.transfer().filter(|transfer| transfer.direction == direction)?.bytes);
        of.fold(0u64, |sum, bytes| sum.saturating_add(bytes.get()))
    };
    let (h2d_bytes, d2h_bytes) = (moved(Direction::HostToDevice), moved(Direction::DeviceToHost));
    let ms = phase.times.length().as_millis();
    let loading = (phase.kind == PhaseKind::Loading)
        .then(|| loading(phase, trace, host, &copies, h2d_bytes, link_gbps));
    let mut made = RunPhase {
        kind: phase.kind,
        name: phase.name.clone(),
        found: phase.found,
        count: phase.times.count(),
        ms,
        share: if whole_ms > 0.0 { ms / whole_ms } else { 0.0 },
        h2d_bytes,
        d2h_bytes,
        loading,
        statement: String::new(),
    };
    made.statement = made.describe();
    made
}

impl RunPhase {
    fn describe(&self) -> String {
        let what = match self.kind {
            PhaseKind::Loading => "loading",
            PhaseKind::Evaluation => "evaluation",
            PhaseKind::Checkpoint => "checkpoints",
            PhaseKind::Other => "phase",
        };
        let times = plural(self.count as u64, "time", "times");
        let name = match (self.kind, self.found) {
            (PhaseKind::Evaluation, PhaseFound::Inferred) => format!("inferred: {}", self.name),
            _ => format!("`{}`", self.name),
        };
        let mut text = format!(
            "{what} ({name}, {times}): {}, {:.0}% of the trace",
            milliseconds(self.ms),
            100.0 * self.share
        );
        for (what, moved) in [("H2D", self.h2d_bytes), ("D2H", self.d2h_bytes)] {
            if moved > 0 {
                text.push_str(&format!("; {} {what}", bytes(moved)));
            }
        }
        match &self.loading {
            Some(loading) => format!("{text}. {}", loading.describe()),
            None => text,
        }
    }
}
