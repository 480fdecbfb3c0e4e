//! Which steps are run again to predict what a change does to them?

use busbound_whatif::replay::{Replay, Stretch};

use crate::analysis::facts::Facts;

pub(super) fn of(facts: &Facts<'_>) -> Option<Replay> {
    Replay::of(&facts.graph, &stretch_of(facts)?, &facts.link)
}

/// Steps that are run again: all, but of a very long trace the first, because each scenario runs them several times.
pub(crate) fn steps_run_again(facts: &Facts<'_>) -> usize {
    const EVENTS: usize = 300_000;
    const FEWEST: usize = 10;
    let (steps, events) = (facts.window.steps.len(), facts.trace.len());
    if events <= EVENTS { steps } else { (steps * EVENTS / events).max(FEWEST).min(steps) }
}

pub(crate) fn stretch_of(facts: &Facts<'_>) -> Option<Stretch> {
    let window = &facts.window;
    let steps = steps_run_again(facts);
    if let Some(last) = steps.checked_sub(1).and_then(|last| window.steps.get(last)) {
        // A last step that is not whole has a beginning and is no step: its calls are part of it all.
        let starts = if steps < window.steps.len() { &window.starts[..steps] } else { &window.starts[..] };
        return Some(Stretch { starts: starts.to_vec(), end: last.end });
    }
    let calls = facts.trace.events().map(|event| event.start()).min()?;
    let end = facts.timelines.iter().filter_map(|line| line.busy.hull()).map(|hull| hull.end).max()?;
    Some(Stretch { starts: vec![calls], end })
}
