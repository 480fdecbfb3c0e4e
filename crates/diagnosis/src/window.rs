//! Which steps does the trace hold, and how long is one?

use std::collections::BTreeMap;

use busbound_trace::{Event, EventKind, Interval, Nanos, Timestamp, Trace, TrackId};
use serde::Serialize;

use crate::survey::steps::pattern_of;

/// The steps found, in time order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    /// From each step's start to the next one's; the last ends where its work does.
    pub(crate) steps: Vec<Interval>,
    pub(crate) pattern: Option<String>,
}

/// Length of steps in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTimes {
    pub count: usize,
    pub pattern: String,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    pub warmup_dropped: usize,
}

impl Window {
    /// Steps from the annotation that looks most like one, with the device's work ending at `work_end`.
    pub(crate) fn of(trace: &Trace, work_end: Option<Timestamp>) -> Self {
        let mut patterns: BTreeMap<(TrackId, String), Vec<Event<'_>>> = BTreeMap::new();
        let is_old_step = |event: &Event<'_>| {
            event.kind() == EventKind::Operator && event.name().starts_with("ProfilerStep#")
        };
        for event in trace.events().filter(|e| e.kind() == EventKind::Annotation || is_old_step(e)) {
            patterns.entry((event.track_id(), pattern_of(event.name()))).or_default().push(event);
        }
        let best = patterns.into_iter().filter_map(|((_, pattern), mut events)| {
            events.sort_by_key(Event::start);
            let rank = likeness(&pattern)?;
            let one_after_the_other = events.windows(2).all(|pair| pair[0].end() <= pair[1].start());
            one_after_the_other.then_some((rank, pattern, events))
        });
        // The most step-like word; of equals the one that covers most time.
        let best = best.max_by_key(|(rank, _, events)| {
            (*rank, events.last().zip(events.first()).map(|(last, first)| last.end() - first.start()))
        });
        let Some((_, pattern, events)) = best else { return Self::default() };
        let starts: Vec<Timestamp> = events.iter().map(Event::start).collect();
        let last_end = events.last().map(Event::end);
        let end = last_end.into_iter().chain(work_end).max().unwrap_or_default();
        let ends = starts.iter().skip(1).copied().chain([end]);
        let steps = starts.iter().zip(ends).map(|(&start, end)| Interval::new(start, end)).collect();
        Self { steps, pattern: Some(pattern) }
    }

    /// What totals are divided by for figures per step.
    pub(crate) fn count(&self) -> usize {
        self.steps.len().max(1)
    }

    pub(crate) fn times(&self) -> Option<StepTimes> {
        let mut lengths: Vec<Nanos> = self.steps.iter().map(|step| step.length()).collect();
        lengths.sort_unstable();
        let quantile = |q: f64| lengths[((lengths.len() - 1) as f64 * q).round() as usize].as_millis();
        Some(StepTimes {
            count: lengths.len(),
            pattern: self.pattern.clone()?,
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            min_ms: quantile(0.0),
            max_ms: quantile(1.0),
            warmup_dropped: 0,
        })
    }
}

/// How much an annotation's pattern looks like a step of the whole run; `None` if not at all.
fn likeness(pattern: &str) -> Option<u8> {
    let lower = pattern.to_ascii_lowercase();
    match lower.as_str() {
        "profilerstep#*" => Some(9),
        "step" | "train_step" | "training_step" | "iteration" | "iter" => Some(8),
        _ if lower.starts_with("optimizer.") || lower.starts_with("nccl:") => None,
        _ if ["step*", "step_*", "step *", "iter*", "iter_*", "iteration*", "iteration_*"]
            .contains(&lower.as_str()) =>
        {
            Some(7)
        }
        _ => None,
    }
}
