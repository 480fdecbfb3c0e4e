//! Which steps does the trace hold, and how long is one?
//!
//! A host that runs ahead marks its steps faster than the device works through them: a step ends where
//! the work launched in it does.

use std::collections::BTreeMap;

use busbound_trace::{Event, EventKind, Interval, Nanos, Timestamp, Trace, TrackId};
use serde::Serialize;

use crate::host::Host;
use crate::survey::steps::pattern_of;

/// The steps found, in time order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    /// From the end of the step before to its own end, on the device where there is one.
    pub(crate) steps: Vec<Interval>,
    /// Where each step's annotation starts on the host.
    pub(crate) starts: Vec<Timestamp>,
    /// Steps' worth of work in the trace: more than the steps marked, if work was recorded that had been
    /// launched before the first.
    rounds: f64,
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
    /// Steps from the annotation that looks most like one.
    pub(crate) fn of(trace: &Trace, host: &Host<'_>) -> Self {
        let mut patterns: BTreeMap<(TrackId, String), Vec<Event<'_>>> = BTreeMap::new();
        let steps: Vec<bool> = trace.names().iter().map(|name| name.starts_with("ProfilerStep#")).collect();
        let is_old_step =
            |event: &Event<'_>| event.kind() == EventKind::Operator && steps[event.name_id().index()];
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
        let (work, rounds) = work_of_steps(trace, host, &starts);
        let mut steps: Vec<Interval> = Vec::with_capacity(starts.len());
        for (i, event) in events.iter().enumerate() {
            let next_start = starts.get(i + 1).copied();
            let start = match (steps.last(), work[i]) {
                (Some(before), _) => before.end,
                // Work queued before the first step may still be running when it begins.
                (None, Some(work)) if events.len() > 1 => work.start.max(event.start()),
                (None, _) => event.start(),
            };
            let end = work[i].map_or(next_start.unwrap_or(event.end()), |work| work.end.max(event.end()));
            steps.push(Interval::new(start, end.max(start)));
        }
        Self { steps, starts, rounds, pattern: Some(pattern) }
    }

    /// What totals are divided by for figures per step.
    pub(crate) fn rounds(&self) -> f64 {
        if self.steps.is_empty() { 1.0 } else { self.rounds }
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

/// First start and last end of the device's work launched in each step, and how many steps' worth of
/// work there is in all.
fn work_of_steps(trace: &Trace, host: &Host<'_>, starts: &[Timestamp]) -> (Vec<Option<Interval>>, f64) {
    let mut work: Vec<Option<Interval>> = vec![None; starts.len()];
    let (mut inside, mut before) = (0u64, 0u64);
    for event in trace.events().filter(|event| event.kind().is_gpu_work()) {
        // Work whose launch is not in the trace had been launched before recording began.
        let step = host
            .call_behind(&event)
            .and_then(|call| starts.partition_point(|&start| start <= call.start()).checked_sub(1));
        let Some(step) = step else {
            before += 1;
            continue;
        };
        inside += 1;
        let known = work[step].get_or_insert(Interval::new(event.start(), event.end()));
        known.start = known.start.min(event.start());
        known.end = known.end.max(event.end());
    }
    // Unless launches are missing throughout, which says nothing of steps.
    let more = if inside > before { before as f64 / inside as f64 } else { 0.0 };
    (work, starts.len() as f64 * (1.0 + more))
}
