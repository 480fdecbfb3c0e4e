//! Which steps are replayed to predict the effect of a change, and how much does the change save?

use busbound_trace::Trace;
use busbound_whatif::replay::{Predicted, Replay, TraceRange};

use crate::activity::timeline::DeviceTimeline;
use crate::saving::Saving;
use crate::steps::window::Window;

/// How many steps are replayed: all, or only the first ones of a very long trace, because each scenario replays them
/// several times.
pub(crate) fn steps_replayed(trace: &Trace, window: &Window) -> usize {
    const EVENTS: usize = 60_000;
    const FEWEST: usize = 4;
    let (steps, events) = (window.steps.len(), trace.len());
    if events <= EVENTS { steps } else { (steps * EVENTS / events).max(FEWEST).min(steps) }
}

/// The part of the trace that is replayed.
pub(super) fn part_of(trace: &Trace, window: &Window, timelines: &[DeviceTimeline]) -> Option<TraceRange> {
    let steps = steps_replayed(trace, window);
    if let Some(last) = steps.checked_sub(1).and_then(|last| window.steps.get(last)) {
        // A last step that is cut off has a start but is not counted as a step: its calls still belong to the replay.
        let starts = if steps < window.steps.len() { &window.starts[..steps] } else { &window.starts[..] };
        return Some(TraceRange { starts: starts.to_vec(), end: last.end });
    }
    let calls = trace.events().map(|event| event.start()).min()?;
    let end = timelines.iter().filter_map(|line| line.busy.hull()).map(|hull| hull.end).max()?;
    Some(TraceRange { starts: vec![calls], end })
}

/// What the changes save per step, by replaying the trace.
pub(crate) fn saving(replay: &Replay, predicted: &Predicted) -> Option<Saving> {
    let now = replay.step_ms();
    // The relative uncertainty of the step also applies to the saving; without a saving, it adds nothing.
    let spread = predicted.high_ms / predicted.worst_ms - 1.0;
    predicted.applies.then(|| Saving {
        low: (now - predicted.worst_ms).max(0.0) * (1.0 - spread),
        high: ((now - predicted.best_ms).max(0.0) * (1.0 + spread)).min(now),
    })
}
