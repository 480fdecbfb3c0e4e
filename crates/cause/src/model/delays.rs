//! How long is the delay between work and its known predecessors?

use super::Model;
use crate::Time;
use crate::graph::WorkId;
use crate::thresholds::STREAM_GAP;

/// When each known predecessor allowed the work to start.
struct Allowed {
    by_call: Option<Time>,
    by_work: Option<Time>,
    by_wait: Option<Time>,
}

impl Allowed {
    /// The latest of them explains the start.
    fn at(&self) -> Time {
        self.by_call.max(self.by_work).max(self.by_wait).unwrap_or(0)
    }
}

pub(super) fn set(model: &mut Model) {
    let before = predecessors(model);
    let usual = Usual::of(model, &before);
    for work in 0..model.work.len() {
        let allowed = Allowed {
            by_call: model.issued_at(work).map(|at| at + model.latency),
            by_work: before[work].map(|before| model.work[before].end),
            by_wait: model.work[work].waits.iter().map(|(on, between)| model.work[*on].end + between).max(),
        };
        set_one(model, work, &allowed, &usual);
    }
}

/// The previous work on the same stream, per work.
fn predecessors(model: &Model) -> Vec<Option<WorkId>> {
    let mut before = vec![None; model.work.len()];
    for pair in model.streams.iter().flat_map(|stream| stream.windows(2)) {
        before[pair[1]] = Some(pair[0]);
    }
    before
}

/// Typical delays, from work with an unambiguous predecessor.
struct Usual {
    after_call: Time,
    after_work: Time,
}

impl Usual {
    fn of(model: &Model, before: &[Option<WorkId>]) -> Self {
        let (mut after_call, mut after_work) = (Vec::new(), Vec::new());
        for work in 0..model.work.len() {
            let start = model.work[work].start;
            let by_call = model.issued_at(work).map(|at| start - at - model.latency);
            let by_work = before[work].map(|before| start - model.work[before].end);
            match (by_call, by_work) {
                (Some(call), Some(work)) if call < work && call >= 0 => after_call.push(call),
                (Some(call), None) if call >= 0 => after_call.push(call),
                (_, Some(work)) if work >= 0 => after_work.push(work),
                _ => {}
            }
        }
        let median = |mut values: Vec<Time>| {
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(STREAM_GAP).min(5 * STREAM_GAP)
        };
        Self { after_call: median(after_call), after_work: median(after_work) }
    }
}

/// Attributes the delay to the predecessor that explains the start; the others get at most a typical delay.
fn set_one(model: &mut Model, work: WorkId, allowed: &Allowed, usual: &Usual) {
    let work = &mut model.work[work];
    let explained = allowed.at();
    let late = (work.start - explained).max(0);
    let is_calls = allowed.by_call == Some(explained);
    let is_works = !is_calls && allowed.by_work == Some(explained);
    let room = |at: Option<Time>| at.map_or(0, |at| (work.start - at).max(0));
    work.after_call = match allowed {
        // Work without any predecessor in the trace keeps its measured start.
        Allowed { by_call: None, by_work: None, by_wait: None } => work.start,
        Allowed { by_call: None, .. } => 0,
        _ if is_calls => late,
        _ => room(allowed.by_call).min(usual.after_call),
    };
    work.after_work = if is_works { late } else { room(allowed.by_work).min(usual.after_work) };
    if !is_calls && !is_works {
        for (_, between) in &mut work.waits {
            *between += late;
        }
    }
}
