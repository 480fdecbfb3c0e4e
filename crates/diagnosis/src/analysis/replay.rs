//! Which steps are replayed to predict the effect of a change, and how much does the change save?

use busbound_trace::{Interval, Nanos, Timestamp, Trace};
use busbound_whatif::replay::{Predicted, Replay, TraceRange};

use crate::activity::timeline::DeviceTimeline;
use crate::saving::Saving;
use crate::steps::window::Window;

/// How many steps are replayed: all, or only the first ones of a very long trace, because each scenario replays them
/// several times.
pub(crate) fn steps_replayed(trace: &Trace, window: &Window) -> usize {
    const EVENTS: usize = 60_000;
    const FEWEST: usize = 3;
    let (steps, events) = (window.steps.len(), trace.len());
    if events <= EVENTS { steps } else { (steps * EVENTS / events).max(FEWEST).min(steps) }
}

/// The part of the trace that is replayed.
pub(crate) struct Replayed {
    pub(crate) range: TraceRange,
    /// If it is only a part of a long trace without steps: which one.
    pub(crate) part: Option<Interval>,
    /// Its length as a share of all that it stands for.
    pub(crate) share: f64,
    /// When what it stands for begins.
    pub(crate) begin: Timestamp,
}

pub(super) fn part_of(trace: &Trace, window: &Window, timelines: &[DeviceTimeline]) -> Option<Replayed> {
    let steps = steps_replayed(trace, window);
    if let Some(&end) = steps.checked_sub(1).and_then(|last| window.work_ends.get(last)) {
        // A last step that is cut off has a start but is not counted as a step: its calls still belong to the replay.
        let starts = if steps < window.steps.len() { &window.starts[..steps] } else { &window.starts[..] };
        let range = TraceRange { starts: starts.to_vec(), whole: steps, end };
        let begin = *range.starts.first()?;
        return Some(Replayed { range, part: None, share: 1.0, begin });
    }
    let start = trace.events().map(|event| event.start()).min()?;
    let end = timelines.iter().filter_map(|line| line.busy.hull()).map(|hull| hull.end).max()?;
    let whole = Interval::new(start, end);
    let part = representative(trace.len(), timelines, whole);
    let Interval { start, end } = part.unwrap_or(whole);
    let share = (end - start).as_millis() / whole.length().as_millis();
    let range = TraceRange { starts: vec![start], whole: 1, end };
    Some(Replayed { range, part, share, begin: whole.start })
}

/// Of a long trace without steps: a part that is like the whole. `None` if the trace is not long, or no part is like it.
fn representative(events: usize, timelines: &[DeviceTimeline], whole: Interval) -> Option<Interval> {
    /// A trace with fewer events is replayed as a whole.
    const LONG: usize = 1_000_000;
    const EVENTS: usize = 150_000;
    /// If no part is like the whole, longer ones are tried.
    const LONGER: [i64; 2] = [1, 3];
    const PLACES: i64 = 16;
    /// The most that the share of any kind of work may differ.
    const ALIKE: f64 = 0.03;
    if events < LONG {
        return None;
    }
    let all = shares(timelines, whole);
    let parts = (events / EVENTS) as i64;
    let total = whole.length().get();
    LONGER.into_iter().find_map(|times| {
        let length = total / parts * times;
        let at = |place: i64| {
            let start = whole.start + Nanos::new((total - length) / PLACES * place);
            let part = Interval::new(start, start + Nanos::new(length));
            let differences = all.iter().zip(shares(timelines, part)).map(|(all, part)| (all - part).abs());
            (differences.fold(0.0, f64::max), part)
        };
        let (difference, part) = (1..PLACES).map(at).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (difference <= ALIKE).then_some(part)
    })
}

/// What each device does in an interval: the share of each kind of work.
fn shares(timelines: &[DeviceTimeline], within: Interval) -> Vec<f64> {
    let kinds =
        timelines.iter().flat_map(|line| [&line.compute, &line.communication, &line.bus_copies, &line.busy]);
    let length = within.length().as_millis();
    kinds.map(|set| set.length_within(within).as_millis() / length).collect()
}

/// What the changes save per step, by replaying the trace.
pub(crate) fn saving(replay: &Replay, predicted: &Predicted) -> Option<Saving> {
    let now = replay.step_ms();
    // The relative uncertainty of the step also applies to the saving; without a saving, it adds nothing.
    let spread = predicted.spread;
    predicted.applies.then(|| Saving {
        low: (now - predicted.worst_ms).max(0.0) * (1.0 - spread),
        high: ((now - predicted.best_ms).max(0.0) * (1.0 + spread)).min(now),
    })
}
