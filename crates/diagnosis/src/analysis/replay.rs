//! Which steps are run again to predict what a change does to them, and what does it save?

use busbound_trace::Trace;
use busbound_whatif::replay::{Change, Replay, Stretch};

use crate::activity::timeline::DeviceTimeline;
use crate::saving::Saving;
use crate::steps::window::Window;

/// Steps that are run again: all, but of a very long trace the first, because each scenario runs them several times.
pub(crate) fn steps_run_again(trace: &Trace, window: &Window) -> usize {
    const EVENTS: usize = 300_000;
    const FEWEST: usize = 10;
    let (steps, events) = (window.steps.len(), trace.len());
    if events <= EVENTS { steps } else { (steps * EVENTS / events).max(FEWEST).min(steps) }
}

/// The stretch of the trace that is run again.
pub(super) fn stretch_of(trace: &Trace, window: &Window, timelines: &[DeviceTimeline]) -> Option<Stretch> {
    let steps = steps_run_again(trace, window);
    if let Some(last) = steps.checked_sub(1).and_then(|last| window.steps.get(last)) {
        // A last step that is not whole has a beginning and is no step: its calls are part of it all.
        let starts = if steps < window.steps.len() { &window.starts[..steps] } else { &window.starts[..] };
        return Some(Stretch { starts: starts.to_vec(), end: last.end });
    }
    let calls = trace.events().map(|event| event.start()).min()?;
    let end = timelines.iter().filter_map(|line| line.busy.hull()).map(|hull| hull.end).max()?;
    Some(Stretch { starts: vec![calls], end })
}

/// What a change of this name saves a step, by running the trace again.
pub(crate) fn saving(replay: &Replay, changes: &[Change]) -> Option<Saving> {
    let predicted = replay.predict(changes);
    let now = replay.step_ms();
    // What is uncertain of a step is so of what is taken from it; what nothing is taken from gains nothing.
    let spread = predicted.high_ms / predicted.worst_ms - 1.0;
    predicted.applies.then(|| Saving {
        low: (now - predicted.worst_ms).max(0.0) * (1.0 - spread),
        high: (now - predicted.best_ms).max(0.0) * (1.0 + spread),
    })
}
