//! `pin`: pins host memory.

use std::fmt;

use busbound_cause::thresholds::{EVENT_PASSES, PINNED_COPY_CALL, WORTH_FAULTS};
use busbound_cause::{CallId, Few, HostAction, HostCall, HostUse, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::edit::{OwnWaits, WORTH_MOVING, copy_ns, remove_call};
use super::{About, Assumed, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin;

/// The most that first touching fresh pages costs, in nanoseconds per byte. Measured on runs marked learn in fixtures/frameworks: a D2H
/// copy to fresh pages takes 2.8 µs per page of 4 KiB more than one to pages that were touched before.
const FAULTS_PER_BYTE: f64 = 0.7;
/// The most that freeing pages costs, in nanoseconds per byte: 0.2 µs per page. Measured on the same runs: 0.14.
const FREEING_PER_BYTE: f64 = 0.05;
/// Host time after a D2H copy within its operator. More is a second copy on the host.
const AFTER_COPY: Time = 30_000;
/// The maximum cost of cold caches for one piece of host work after a staged copy.
const COLD_CACHES: Time = 150_000;
/// The host time after which cold caches cost a third of what they cost right after a staged copy. Measured: launches after
/// staged and after pinned copies of the same program (`accelerate-model_offload_3` in fixtures/frameworks).
const COLD_FOR: Time = 400_000;

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
        let own = OwnWaits::of(graph);
        let mut pinned = Pinned { staged: vec![None; graph.calls.len()], made: Made::default() };
        for id in 0..graph.work.len() {
            pinned.pin(graph, id, &own, terms);
        }
        follow_up(graph, &pinned.staged, &terms.assumed);
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
        work.after_work = work.after_work.min(2 * EVENT_PASSES);
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
            touch_once(&mut graph.calls[call], bytes, terms.assumed.first_touch);
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
/// first. A trace does not show whether the pages were fresh.
fn touch_once(call: &mut HostCall, bytes: u64, share: f64) {
    let mut most = bytes as f64 * FAULTS_PER_BYTE;
    for (what, time) in &mut call.since.uses {
        if matches!(what, HostUse::Gather | HostUse::Cast | HostUse::Operator | HostUse::Allocation) {
            let saved = (*time as f64 * (1.0 - share)).min(most);
            most -= saved;
            *time -= saved as Time;
        }
    }
}

/// Host work after a copy that is no longer staged gets faster: the memory is not freed. Data that comes down in another layout
/// is rearranged on the GPU before it goes into a pinned buffer, not on the host after it.
fn follow_up(graph: &mut Model, staged: &[Option<Staged>], assumed: &Assumed) {
    for pair in graph.threads.iter().flat_map(|thread| thread.windows(2)) {
        let Some(Staged { direction, bytes }) = staged[pair[0]] else { continue };
        for (what, time) in &mut graph.calls[pair[1]].since.uses {
            let saved = match what {
                HostUse::Python => {
                    (*time as f64 * (1.0 - assumed.freeing)).min(bytes as f64 * FREEING_PER_BYTE)
                }
                HostUse::Cast if direction == Direction::DeviceToHost && bytes >= WORTH_FAULTS => {
                    (*time - AFTER_COPY).max(0) as f64
                }
                _ => continue,
            };
            *time -= saved as Time;
        }
    }
    for thread in &graph.threads {
        warm_caches(&mut graph.calls, thread, staged, assumed.behind_staging);
    }
}

/// Staging evicts the CPU caches: host work after it is slower, less and less so.
fn warm_caches(calls: &mut [HostCall], thread: &[CallId], staged: &[Option<Staged>], kept: f64) {
    let mut since = Time::MAX;
    for &id in thread {
        let call = &mut calls[id];
        let (gap, cost) = (call.gap(), call.cost);
        if since < 4 * COLD_FOR {
            let share = (1.0 - kept) * (-(since as f64) / COLD_FOR as f64).exp();
            call.set_gap(gap - ((gap as f64 * share) as Time).min(COLD_CACHES));
            if matches!(call.action, HostAction::Issue(_)) {
                call.cost -= (cost as f64 * share) as Time;
            }
            since += gap + cost;
        }
        if staged[id].is_some() {
            since = 0;
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
