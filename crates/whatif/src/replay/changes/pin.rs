//! `pin`: pins host memory.

use std::fmt;

use busbound_cause::thresholds::{EVENT_PASSES, PINNED_COPY_CALL};
use busbound_cause::{CallId, HostAction, HostCall, HostUse, Model, Time, WorkId, WorkKind};

use super::edit::{OwnWaits, WORTH_MOVING, copy_ns};
use super::{About, Assumed, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin;

/// Smaller buffers come from memory that the allocator keeps.
const WORTH_FAULTS: u64 = 1 << 20;
/// The maximum cost of cold caches on the host after a staged copy.
const COLD_CACHES: Time = 150_000;

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
        let mut pinned = Pinned { is_behind: vec![false; graph.calls.len()], made: Made::default() };
        for id in 0..graph.work.len() {
            pinned.pin(graph, id, &own, terms);
        }
        warm_caches(graph, &pinned.is_behind, &terms.assumed);
        pinned.made
    }
}

/// Copies that are pinned so far.
struct Pinned {
    /// Per call: whether it staged a copy that the host no longer has to wait for.
    is_behind: Vec<bool>,
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
        let calls = &mut graph.calls[call];
        // A call that stages nothing only enqueues the copy.
        calls.cost = calls.cost.min(PINNED_COPY_CALL);
        calls.cost_use = HostUse::Launching;
        if calls.action == HostAction::IssueBlocking(id) {
            // A synchronous call waits for its copy, wherever the memory is.
            if !calls.is_synchronous {
                calls.action = HostAction::Issue(vec![id]);
            }
            if bytes >= WORTH_MOVING {
                self.is_behind[own.get(id).unwrap_or(call)] = true;
            }
        }
        if bytes >= WORTH_FAULTS {
            touch_once(&mut graph.calls[call], terms.assumed.first_touch);
        }
    }
}

/// Operators that fill memory before it is copied get faster if the memory is reused: fresh pages fault when they are touched
/// first. A trace does not show whether the pages were fresh.
fn touch_once(call: &mut HostCall, share: f64) {
    for (what, time) in &mut call.since.uses {
        if matches!(what, HostUse::Gather | HostUse::Cast | HostUse::Operator | HostUse::Allocation) {
            *time = (*time as f64 * share) as Time;
        }
    }
}

/// Host work after a copy that is no longer staged gets faster: caches are warm, and the memory is not freed.
fn warm_caches(graph: &mut Model, is_behind: &[bool], assumed: &Assumed) {
    for thread in &graph.threads {
        for pair in thread.windows(2).filter(|pair: &&[CallId]| is_behind[pair[0]]) {
            let next = &mut graph.calls[pair[1]];
            for (_, time) in next.since.uses.iter_mut().filter(|(what, _)| *what == HostUse::Python) {
                *time = (*time as f64 * assumed.first_touch) as Time;
            }
            let saved = (next.gap() as f64 * (1.0 - assumed.behind_staging)) as Time;
            next.set_gap(next.gap() - saved.min(COLD_CACHES));
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
