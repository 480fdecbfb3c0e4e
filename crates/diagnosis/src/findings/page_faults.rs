//! Do copies go to or from memory that the operating system has just handed out?

use busbound_cause::thresholds::HOST_STRETCH;
use busbound_cause::{HostUse, Resource};
use busbound_trace::{Direction, Event, EventKind, Interval, IntervalSet, Nanos};
use busbound_whatif::replay::{Pin, Stage};
use serde_json::json;

use super::common::copies::{bytes_moved, times_of};
use super::common::host_idle::host_gaps;
use super::common::pageable::{copied_once, is_once, pageable};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::activity::gaps::{call_times, idle_inside_ms};
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
use crate::quantity::{bytes, milliseconds, plural};
use crate::saving::Saving;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Page faults in fresh host memory",
    doing: "reusing host buffers",
    precondition: "The sizes repeat, so that one buffer can be reused. Pinning a buffer for a single copy costs more than it saves.",
    basis: "bound: exposed D2H copy time and idle time inside the calls, beyond the link's pinned rate; or idle time while the host fills and frees fresh memory",
    candidate: Candidate::AlsoWithoutCode(|| vec![Pin.into()], || vec![Stage.into()]),
    effort: Effort::OneLine,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h, Resource::Host],
    check,
    document: Document {
        meaning: "Copies go to or from host memory that was just allocated. The operating system maps each page at its first use, \
                  and takes the pages back when the tensor is freed. Such copies reach 1 to 3 GB/s, reused pageable memory \
                  12 to 15, pinned memory the link's rate. `.cpu()`, `.to(\"cpu\")` and `save_on_cpu` allocate a new tensor \
                  for each copy.",
        computed: "Evidence: D2H copies of 1 MiB or more to pageable memory run below 4 GB/s, from their start until their call returns, and move at least half of the bytes of \
                   such copies, and the GPU waits for them at least 3% of the time. In programs other than PyTorch, not if as much was copied up before: results may go to where the input was. Or: H2D copies of 1 MiB or more from pageable memory follow a CPU operator that allocates \
                   its output, and after each copy the host spends 200 µs or more on something that is not recorded \
                   (freeing it), and the GPU waits for that at least 3% of the time. Saving: the trace replayed with `pin`. If \
                   that is not possible, a bound: exposed copy time and idle time inside the calls, beyond the pinned rate; or the idle \
                   time while memory is freed, and half of the idle time while it is filled.",
        fix: "Allocate the host buffer once, pinned, and copy into it in each step. CPU operators take it as `out=`.",
        code: &[CODE],
        assumes: "The sizes repeat, so that one buffer can be reused.",
    },
};

const CODE: &str = "\
out = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)    # once per shape
out.copy_(x, non_blocking=True)                               # not x.cpu()
rows = torch.index_select(table, 0, indices, out=out)         # on the CPU: not table[indices]";

/// D2H copies to pageable memory that is reused reach three times this rate.
const FRESH_GBPS: f64 = 4.0;
/// Share of the time that the GPU must wait.
const WORTH_IT: f64 = 0.03;
/// No CPU operator writes fresh memory faster; a shorter operator filled something else.
const FASTEST_FILL_GBPS: f64 = 100.0;
/// Share of a fill of fresh memory that is page faults: filling 34 MB took 2.3 ms, and 1.0 ms into a reused buffer.
const FAULTS_IN_FILL: f64 = 0.5;

const FIX: &str = "Allocate one host buffer with torch.empty(…, pin_memory=True), and reuse it.";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    to_fresh_memory(facts).or_else(|| from_fresh_memory(facts))
}

/// D2H copies that are far slower than pageable memory has to be.
fn to_fresh_memory(facts: &Facts<'_>) -> Option<Draft> {
    let mut copies: Vec<_> =
        pageable(facts, Direction::DeviceToHost).filter(|copy| copy.is_large()).collect();
    let all = bytes_moved(&copies, Direction::DeviceToHost);
    copies
        .retain(|copy| copy.bytes().is_some_and(|bytes| (bytes as f64) < FRESH_GBPS * nanos_with_host(copy)));
    let moved = bytes_moved(&copies, Direction::DeviceToHost);
    if copies.is_empty() || moved < all.div_ceil(2) || may_be_where_it_came_from(facts, &copies) {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let exposed = facts.exposed_ms(copies.iter().copied());
    let in_calls = idle_inside_ms(&facts.gaps, &call_times(copies.iter().filter_map(|copy| copy.call)));
    let pinned = copies.iter().map(|copy| expected_ns(copy, &facts.links)).sum::<f64>() / 1e6;
    let beyond = exposed + in_calls - pinned;
    if beyond < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let gbps = moved as f64 / copies.iter().map(|copy| nanos_with_host(copy)).sum::<f64>();
    let high = facts.breakdown.averaged(beyond)?;
    let new = if unit == Unit::Trace { "new".to_owned() } else { format!("new in each {unit}") };
    let probably = if facts.program == Program::Cuda { "probably " } else { "" };
    Some(Draft {
        title: None,
        saves: Saving { low: 0.5 * high, high },
        seen: format!(
            "{} of {} per {unit} to pageable memory at {gbps:.1} GB/s, including the host's part of the copy. Reused pageable memory is faster: this memory is {probably}{new}, and every page is mapped at its first use.",
            plural((copies.len() as f64 / steps).round().max(1.0) as u64, "copy", "copies"),
            bytes(moved / copies.len() as u64),
        ),
        evidence: json!({
            "copies_per_step": copies.len() as f64 / steps,
            "bytes_per_step": moved as f64 / steps,
            "gbps_with_host": gbps,
            "exposed_ms_per_step": exposed / steps,
            "idle_in_calls_ms_per_step": in_calls / steps,
            "pinned_ms_per_step": pinned / steps,
        }),
        fix: match facts.program {
            _ if is_once(facts, &copies) => copied_once(),
            Program::Cuda => Fix::new("Allocate one host buffer with cudaMallocHost, and reuse it."),
            Program::PyTorch | Program::Xla => Fix::new(FIX).code(CODE),
        },
        at: times_of(&copies),
    })
}

/// A program that is not PyTorch may copy results to where their input was, which the host has written: then it is not new.
fn may_be_where_it_came_from(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> bool {
    let uploads: Vec<&Copy<'_>> = pageable(facts, Direction::HostToDevice).collect();
    let came_up = |copy: &&Copy<'_>| {
        let is_same =
            |upload: &&&Copy<'_>| upload.bytes() == copy.bytes() && upload.event.end() <= copy.event.start();
        uploads.iter().any(|upload| is_same(&upload))
    };
    facts.program == Program::Cuda && copies.iter().all(came_up)
}

/// From the start of a copy until the host has all of it: bytes that have crossed the bus still have to reach their pages.
fn nanos_with_host(copy: &Copy<'_>) -> f64 {
    let until = copy.call.filter(|_| copy.blocked > Nanos::ZERO).map_or(copy.event.end(), |call| call.end());
    (until - copy.event.start()).max(copy.event.duration()).get() as f64
}

/// Host memory that an operator allocates and fills, one copy reads, and the program then frees.
struct Fresh<'f, 'a> {
    copies: Vec<&'f Copy<'a>>,
    filling: Vec<Interval>,
    freeing: Vec<Interval>,
}

impl<'f, 'a> Fresh<'f, 'a> {
    fn of(facts: &'f Facts<'a>) -> Self {
        let mut fresh = Self { copies: Vec::new(), filling: Vec::new(), freeing: Vec::new() };
        for copy in pageable(facts, Direction::HostToDevice).filter(|copy| copy.is_large()) {
            let Some(upload) = copy.call.and_then(|call| outermost_operator(facts, &call)) else { continue };
            let (Some(filling), Some(freeing)) =
                (filled_before(facts, copy, &upload), freed_after(facts, &upload))
            else {
                continue;
            };
            fresh.copies.push(copy);
            fresh.filling.push(filling);
            fresh.freeing.push(freeing);
        }
        fresh
    }
}

fn outermost_operator<'a>(facts: &Facts<'a>, call: &Event<'_>) -> Option<Event<'a>> {
    let track = facts.trace.track(call.track_id());
    let around = track.events_before(call.start()).take(64);
    around.filter(|event| event.kind() == EventKind::Operator && event.end() >= call.end()).last()
}

/// The CPU operator right before an upload, if it allocates its output.
fn filled_before(facts: &Facts<'_>, copy: &Copy<'_>, upload: &Event<'_>) -> Option<Interval> {
    const RIGHT_BEFORE: i64 = 100_000;
    let track = facts.trace.track(upload.track_id());
    let is_near = |event: &Event<'_>| {
        event.end() <= upload.start() && (upload.start() - event.end()).get() < RIGHT_BEFORE
    };
    let before = track.events_before(upload.start()).take(64);
    let operators = before.filter(|event| event.kind() == EventKind::Operator && is_near(event));
    let fill = operators.max_by_key(|event| event.duration())?;
    let inside = || track.events_between(fill.start(), fill.end());
    let allocates = inside().any(|event| event.name().starts_with("aten::empty"));
    let on_device =
        inside().any(|event| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall));
    let could_fill = copy.bytes()? as f64 <= FASTEST_FILL_GBPS * fill.duration().get() as f64;
    (allocates && could_fill && !on_device).then(|| fill.interval())
}

/// The time after an upload in which nothing is recorded, if it is long.
fn freed_after(facts: &Facts<'_>, upload: &Event<'_>) -> Option<Interval> {
    let track = facts.trace.track(upload.track_id());
    let next = track.events_from(track.position(upload.end())).next()?;
    let after = Interval::new(upload.end(), next.start());
    (after.length().get() >= HOST_STRETCH).then_some(after)
}

fn from_fresh_memory(facts: &Facts<'_>) -> Option<Draft> {
    let fresh = Fresh::of(facts);
    if fresh.copies.is_empty() {
        return None;
    }
    let idle_in = |what: &[HostUse], times: &[Interval]| {
        let times = IntervalSet::from_unsorted(times.iter().copied());
        let gaps = what.iter().flat_map(|what| host_gaps(facts, *what));
        let idle = gaps.map(|gap| times.length_within(gap.interval)).sum::<Nanos>().as_millis();
        facts.breakdown.averaged(idle).unwrap_or(0.0)
    };
    let (filling, freeing) =
        (idle_in(HostUse::WORK, &fresh.filling), idle_in(&[HostUse::Python], &fresh.freeing));
    if freeing < WORTH_IT * facts.step_ms() {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let per = unit.per();
    let moved = bytes_moved(&fresh.copies, Direction::HostToDevice);
    let high = freeing + FAULTS_IN_FILL * filling;
    Some(Draft {
        title: None,
        seen: format!(
            "{} of {} per {unit} from memory that a CPU operator has just allocated: the GPU is idle for {}{per} while the host fills it, and for {} while the host frees it after the copy.",
            plural((fresh.copies.len() as f64 / steps).round().max(1.0) as u64, "copy", "copies"),
            bytes(moved / fresh.copies.len() as u64),
            milliseconds(filling),
            milliseconds(freeing),
        ),
        evidence: json!({
            "copies": fresh.copies.len(),
            "bytes_per_step": moved as f64 / steps,
            "idle_while_filling_ms_per_step": filling,
            "idle_while_freeing_ms_per_step": freeing,
        }),
        saves: Saving { low: 0.5 * freeing, high },
        fix: Fix::new(FIX).code(CODE),
        at: fresh.freeing,
    })
}
