//! Is the GPU idle while the host pins memory?

use busbound_cause::{HostUse, Resource};
use busbound_trace::{Event, IntervalSet, Nanos, TrackId};
use serde_json::json;

use super::common::host_idle::host_gaps;
use super::common::pinning::{PIN_OPERATORS, pin_operators};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::gaps::{CallTimes, call_times, idle_inside_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Pinning memory within the step",
    doing: "pinning buffers once",
    precondition: "The steps reuse buffers of the same sizes, which fit in pinned memory.",
    basis: "bound: idle time inside calls that pin memory",
    candidate: Candidate::None(
        "No what-if change removes calls that pin memory: the trace does not show which buffers could be reused.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Host, Resource::Launch],
    check,
    document: Document {
        meaning: "Host memory is pinned within the steps (`cudaHostAlloc`, `cudaHostRegister`, `pin_memory()`), and the GPU is idle \
                  meanwhile. Pinning fresh memory takes 0.5 to 0.7 s per GB (one H200's host, fixtures/machines/raw/pinned.json), longer \
                  than copying it from pageable memory. `pin_memory()` also copies the data on the host, so that the copy to the GPU is \
                  the second one. The pin thread of a `DataLoader` needs Python's interpreter lock and the driver's lock for \
                  both, and launches wait for them.",
        computed: "Evidence: GPU idle time inside such calls and operators is 3% or more of the time: those of the launching thread, \
                   and those of other threads that pin while the launching thread does something that is not recorded. Saving: 50% to \
                   100% of the idle time of the launching thread; of other threads 0% to 100%, because locks are not recorded.",
        fix: "Allocate pinned buffers once, before the loop, and copy into them. PyTorch reuses pinned blocks that were freed, but rounds \
              their size up to a power of two: buffers of slightly different sizes may still be new.",
        code: &[CODE],
        assumes: "The steps reuse buffers of the same sizes, which fit in pinned memory.",
    },
};

const CODE: &str = "\
buffers = [torch.empty(largest, pin_memory=True) for _ in range(2)]    # once
copied = [torch.cuda.Event() for _ in range(2)]
for step, batch in enumerate(batches):
    copied[step % 2].synchronize()                                     # this buffer is free again
    part = buffers[step % 2][: batch.numel()].view_as(batch).copy_(batch)
    x = part.to(device, non_blocking=True)
    copied[step % 2].record()";

/// Share of the time that the GPU must wait.
const LEAST: f64 = 0.03;

/// Whether a call pins memory.
fn pins(call: &Event<'_>) -> bool {
    ["HostAlloc", "HostRegister", "MallocHost", "MemAllocHost"].iter().any(|part| call.name().contains(part))
}

/// What pins memory, on any thread.
struct Pinning<'a> {
    calls: Vec<Event<'a>>,
    operators: Vec<Event<'a>>,
}

impl<'a> Pinning<'a> {
    fn of(facts: &Facts<'a>) -> Self {
        let calls = facts.host.allocations().filter(pins).collect();
        let operators = pin_operators(facts);
        Self { calls, operators }
    }

    /// How often memory is pinned: by operators, or by calls where no operators are recorded.
    fn count(&self) -> usize {
        let outer = self.operators.iter().filter(|event| event.name() == PIN_OPERATORS[0]).count();
        match (outer, self.operators.len()) {
            (0, 0) => self.calls.len(),
            (0, inner) => inner,
            (outer, _) => outer,
        }
    }

    /// What is counted.
    fn several(&self, count: f64) -> String {
        let (one, several) = match self.operators.is_empty() {
            true => ("call that pins host memory", "calls that pin host memory"),
            false => ("call of pin_memory()", "calls of pin_memory()"),
        };
        plural(count.round().max(1.0) as u64, one, several)
    }

    /// When each thread pins memory.
    fn times(&self) -> CallTimes {
        call_times(self.calls.iter().chain(&self.operators).copied())
    }
}

/// Idle time in which another thread pins memory, and the launching thread does something that is not recorded: it may wait for a lock.
fn idle_beside_ms(facts: &Facts<'_>, times: &CallTimes) -> f64 {
    let launching: Vec<TrackId> = facts.host.launching_threads().map(|(track, _)| track).collect();
    let others = times.iter().filter(|(track, _)| !launching.contains(track));
    let pinning = IntervalSet::from_unsorted(others.flat_map(|(_, times)| times.iter()));
    let unrecorded = host_gaps(facts, HostUse::Python).map(|gap| pinning.length_within(gap.interval));
    unrecorded.sum::<Nanos>().as_millis()
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    // Without steps, a buffer that is pinned once looks like one that is pinned in a loop.
    if facts.unit() == Unit::Trace {
        return None;
    }
    let pinning = Pinning::of(facts);
    let times = pinning.times();
    let (own, beside) = (idle_inside_ms(&facts.gaps, &times), idle_beside_ms(facts, &times));
    let idle = own + beside;
    if idle < LEAST * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let per_step = pinning.count() as f64 / steps;
    let host: f64 = times.values().map(|times| times.length().as_millis()).sum();
    let thread = match beside > own {
        true => {
            " They run on another thread, such as the loader's pin thread, and may keep launches waiting for Python's or the driver's lock."
        }
        false => "",
    };
    let copies = if pinning.operators.is_empty() {
        ""
    } else {
        " pin_memory() copies the data on the host first: the copy to the GPU is the second one."
    };
    Some(Draft {
        title: Some(format!("Pinning memory within the {unit}")),
        seen: format!(
            "{} per {unit} {} {}, and the GPU is idle for {} of it.{copies}{thread}",
            pinning.several(per_step),
            if per_step.round() <= 1.0 { "takes" } else { "take" },
            milliseconds(host / steps),
            milliseconds(idle / steps),
        ),
        evidence: json!({
            "calls_per_step": per_step,
            "host_ms_per_step": host / steps,
            "idle_ms_per_step": idle / steps,
            "idle_beside_ms_per_step": beside / steps,
        }),
        saves: Saving { low: 0.5 * own / facts.gpu_steps(), high: idle / facts.gpu_steps() },
        fix: Fix::new("Allocate pinned buffers once, before the loop, and copy into them. Pinning takes longer than copying.").code(CODE),
        at: times.values().flat_map(|times| times.iter()).collect(),
    })
}
