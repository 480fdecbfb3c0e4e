//! `pin`: pins host memory.

use std::fmt;

use busbound_cause::thresholds::{ALWAYS_FRESH, EVENT_PASSES, PINNED_COPY_CALL, WORTH_FAULTS};
use busbound_cause::{CallId, Few, HostAction, HostCall, HostUse, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::cold::ColdCaches;
use super::edit::{OwnWaits, WORTH_MOVING, copy_ns, remove_call};
use super::{About, Assumed, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin;

/// The most that first touching fresh pages costs, in nanoseconds per byte. Measured on runs marked learn in fixtures/frameworks: a D2H
/// copy to fresh pages takes 2.8 µs per page of 4 KiB more than one to pages that were touched before.
const FAULTS_PER_BYTE: f64 = 0.7;
/// The most that freeing pages costs, in nanoseconds per byte: 0.2 µs per page. Measured on the same runs: 0.14.
const FREEING_PER_BYTE: f64 = 0.05;
/// A gather faster than this, in bytes per nanosecond, fills memory that it touched before. Measured (fixtures/frameworks, 20 to 54 MiB):
/// 28 to 76 into reused buffers, 8 to 16 into new ones.
const REUSED_GATHER: f64 = 25.0;
/// Host time after a D2H copy within its operator. More is a second copy on the host.
const AFTER_COPY: Time = 30_000;

impl Declared for Pin {
    const ABOUT: About = About {
        name: "pin",
        spelling: "pin",
        help: "pin host memory",
        doing: "pinning host buffers",
        effort: "pin the host buffers once (`pin_memory()`)",
        precondition: "the same host buffers are reused and fit in pinned memory",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let (own, cold) = (OwnWaits::of(graph), ColdCaches::of(graph));
        let staged = vec![None; graph.calls.len()];
        let mut follows = vec![false; graph.work.len()];
        graph.copies_in_a_row().into_iter().for_each(|(_, next)| follows[next] = true);
        let mut pinned = Pinned { staged, follows, made: Made::default() };
        for id in 0..graph.work.len() {
            pinned.pin(graph, id, &own, terms);
        }
        follow_up(graph, &pinned.staged, &terms.assumed);
        cold.warm(graph, terms.assumed.behind_staging, |_| true);
        pinned.made
    }
}

/// A copy that was staged.
#[derive(Debug, Clone, Copy)]
struct Staged {
    direction: Direction,
    bytes: u64,
}

/// Copies that are pinned so far.
struct Pinned {
    /// Per call: the last one of a copy that the host staged and no longer has to.
    staged: Vec<Option<Staged>>,
    /// Per work: whether it is a copy that follows another one of its direction on its stream.
    follows: Vec<bool>,
    made: Made,
}

impl Pinned {
    fn pin(&mut self, graph: &mut Model, id: WorkId, own: &OwnWaits, terms: &Terms<'_>) {
        let WorkKind::Copy { direction, pageable: true, bytes } = graph.work[id].kind else { return };
        // The time of a copy of unknown size cannot be predicted.
        if graph.work[id].kind.bus().is_none() || graph.work[id].dropped || bytes == 0 {
            return;
        }
        let work = &mut graph.work[id];
        work.kind = WorkKind::Copy { direction, pageable: false, bytes };
        work.alone = copy_ns(bytes, direction, false, terms.link) * terms.assumed.copies;
        // The measured delay includes staging, which starts before the copy: after its call, or after the copy before it.
        work.after_call = work.after_call.min(2 * EVENT_PASSES);
        // The rate of copies in a row includes what is between them.
        work.after_work = if self.follows[id] { 0 } else { work.after_work.min(2 * EVENT_PASSES) };
        self.made.changed += 1;
        let Some(call) = work.call else { return };
        // A call that stages nothing only enqueues the copy.
        graph.calls[call].cost = graph.calls[call].cost.min(PINNED_COPY_CALL);
        graph.calls[call].cost_use = HostUse::Launching;
        if graph.calls[call].action == HostAction::IssueBlocking(id) {
            if bytes >= WORTH_MOVING {
                self.staged[own.get(id).unwrap_or(call)] = Some(Staged { direction, bytes });
            }
            self.unblock(graph, id, own.get(id));
        }
        if bytes >= WORTH_FAULTS {
            touch_once(&mut graph.calls[call], bytes, &terms.assumed);
        }
    }

    /// The call of a pinned copy returns at once, unless it is synchronous: such a call waits for its copy, wherever the memory is.
    fn unblock(&self, graph: &mut Model, id: WorkId, own_wait: Option<CallId>) {
        let Some(call) = graph.work[id].call.filter(|call| !graph.calls[*call].is_synchronous) else {
            return;
        };
        graph.calls[call].action = HostAction::Issue(Few::one(id));
        // `save_on_cpu(pin_memory=True)` brings saved tensors back without waiting.
        if let Some(wait) = own_wait.filter(|_| graph.calls[call].is_unpacking) {
            remove_call(graph, wait);
        }
    }
}

/// Operators that fill memory before it is copied get faster if the memory is reused: fresh pages fault when they are touched
/// first. A trace does not show whether the pages were fresh; the rate of a gather does.
fn touch_once(call: &mut HostCall, bytes: u64, assumed: &Assumed) {
    let mut most = bytes as f64 * FAULTS_PER_BYTE;
    for (what, time) in &mut call.since.uses {
        let kept = match what {
            HostUse::Gather if (*time as f64) < bytes as f64 / REUSED_GATHER => assumed.gather_reused,
            HostUse::Gather => {
                (bytes as f64 / (assumed.gather_rate * *time as f64)).min(assumed.gather_fresh)
            }
            HostUse::Cast | HostUse::Operator => assumed.first_touch,
            // Calls that allocate touch no page of the copied memory: they stay.
            _ => continue,
        };
        let saved = (*time as f64 * (1.0 - kept)).min(most);
        most -= saved;
        *time -= saved as Time;
    }
}

/// Host work after a copy that is no longer staged gets faster: the memory is not freed. Data that comes down in another layout
/// is rearranged on the GPU before it goes into a pinned buffer, not on the host after it.
fn follow_up(graph: &mut Model, staged: &[Option<Staged>], assumed: &Assumed) {
    let Model { threads, calls, .. } = graph;
    // Only frameworks allocate and free memory around their copies.
    let has_framework = calls.iter().any(|call| call.since.operators > 0);
    for thread in &*threads {
        for (place, pair) in thread.windows(2).enumerate() {
            let Some(Staged { direction, bytes }) = staged[pair[0]].filter(|_| has_framework) else {
                continue;
            };
            if direction == Direction::DeviceToHost && bytes >= WORTH_FAULTS {
                let casts = calls[pair[1]].since.uses.iter_mut().filter(|(what, _)| *what == HostUse::Cast);
                casts.for_each(|(_, time)| *time = (*time).min(AFTER_COPY));
            }
            let freed = freed_before(calls, &thread[place + 1..], bytes);
            for (_, time) in calls[freed].since.uses.iter_mut().filter(|(what, _)| *what == HostUse::Python) {
                let saved =
                    (*time as f64 * (1.0 - assumed.freeing)).min(bytes as f64 * FREEING_PER_BYTE) as Time;
                *time -= saved;
            }
        }
    }
}

/// The call before which the memory of a copy is freed: right after the copy, or, if a function kept it, at the end of the step.
fn freed_before(calls: &[HostCall], later: &[CallId], bytes: u64) -> CallId {
    let python = |call: CallId| calls[call].since.of(HostUse::Python);
    let end = later.iter().copied().find(|call| calls[*call].action == HostAction::EndStep);
    end.filter(|end| bytes >= ALWAYS_FRESH && python(*end) > python(later[0])).unwrap_or(later[0])
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
