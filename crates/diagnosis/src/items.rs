//! What was each copy, each collective, each gap, each step? One row each, for tables; a diagnosis has the totals.
//!
//! Rows cover the whole trace. Each says whether the figures of the diagnosis include it.

use std::collections::BTreeMap;

use busbound_machine::Machine;
use busbound_trace::{
    Collective, Direction, EventId, Interval, IntervalSet, MemoryKind, MigrationCause, NameId, Nanos,
    Timestamp, Trace,
};

use crate::activity::collectives::CollectiveRun;
use crate::activity::copies::Copy;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::breakdown::{DeviceParts, Part, PartTimes};
use crate::analysis::facts::{Facts, gaps_of};
use crate::answers::diagnosis::{AnalysisScope, Diagnosis, diagnose_and};
use crate::answers::survey::Source;
use crate::options::Options;
use crate::steps::steady::LeftOut;
use busbound_cause::CollectiveOp;
use busbound_cause::idle::{GapCause, Piece};

/// The rows of the tables, in addition to the events themselves.
#[derive(Debug, Clone)]
pub struct Items {
    pub steps: Vec<StepItem>,
    /// By device and stream, then by time.
    pub copies: Vec<CopyItem>,
    /// By device and stream, then by time.
    pub collectives: Vec<CollectiveItem>,
    /// By device, then by time.
    pub gaps: Vec<GapItem>,
    /// By event index: the step that launched the event.
    step_of: Vec<Option<u32>>,
}

/// One copy on a device, and what it cost the host.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyItem {
    pub event: EventId,
    pub device: i32,
    pub stream: i64,
    pub direction: Direction,
    pub src: MemoryKind,
    pub dst: MemoryKind,
    pub bytes: Option<u64>,
    pub gbps: Option<f64>,
    /// Time in which no kernel ran on its device.
    pub exposed: Nanos,
    /// Host time inside the copy call, if the call waited for the copy.
    pub blocking: Nanos,
    /// Host time in a synchronization right after the call.
    pub waited_after: Nanos,
    /// The step that launched the copy.
    pub step: Option<u32>,
    pub analyzed: bool,
    /// The innermost operator that contains the call.
    pub operator: Option<NameId>,
    /// Why pages moved, if the copy is a migration of managed memory.
    pub migration: Option<MigrationCause>,
}

/// One collective on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveItem {
    pub event: EventId,
    pub device: i32,
    pub stream: i64,
    pub op: CollectiveOp,
    /// What was exchanged, if the trace records it.
    pub message: Option<Collective>,
    /// Of the message, as nccl-tests counts them.
    pub bytes: Option<u64>,
    /// Bytes over the whole duration, including waiting.
    pub algbw_gbps: Option<f64>,
    pub busbw_gbps: Option<f64>,
    /// Time in which no compute kernel ran on its device.
    pub exposed: Nanos,
    /// What it took longer than the fastest with the same message.
    pub waiting: Option<Nanos>,
    /// The step that launched it.
    pub step: Option<u32>,
    pub analyzed: bool,
}

/// Idle time between two kernels, copies or memsets of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapItem {
    pub device: i32,
    pub start: Timestamp,
    pub duration: Nanos,
    pub cause: GapCause,
    /// The work that ended the gap.
    pub ended_by: Option<EventId>,
    /// The step that launched that work.
    pub step: Option<u32>,
    pub analyzed: bool,
}

/// One step: from the end of the previous step to its own end. Times are summed over the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepItem {
    pub start: Timestamp,
    pub duration: Nanos,
    /// When the host starts the step, which can be long before the device does.
    pub host_start: Timestamp,
    pub warm_up: bool,
    pub outlier: bool,
    pub analyzed: bool,
    pub compute: Nanos,
    pub communication: Nanos,
    pub copying: Nanos,
    pub exposed_copy: Nanos,
    pub exposed_communication: Nanos,
    pub idle: Nanos,
}

impl Items {
    /// The step that launched this GPU event.
    pub fn step_of(&self, event: EventId) -> Option<u32> {
        *self.step_of.get(event.index())?
    }
}

/// Like [`diagnose`](crate::diagnose), and returns every copy, collective, gap and step as a row.
pub fn diagnose_and_itemize(
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
) -> (Diagnosis, Items) {
    diagnose_and(trace, source, machine, options, items)
}

fn items(analyzed: &AnalysisScope<'_, '_>) -> Items {
    let AnalysisScope { left_out, is_part, .. } = *analyzed;
    let whole = analyzed.whole();
    let scope = Scope { left_out, whole, is_part };
    let mut step_of = vec![None; whole.trace.numbers()];
    for event in whole.trace.events() {
        step_of[event.id().index()] = number(whole.window.step_of_work(&event));
    }
    Items {
        steps: steps(whole, left_out),
        copies: whole.copies.iter().map(|copy| copy_item(copy, whole, &scope)).collect(),
        collectives: whole.collectives.iter().map(|run| collective_item(run, whole, &scope)).collect(),
        gaps: gaps(analyzed),
        step_of,
    }
}

fn number(step: Option<usize>) -> Option<u32> {
    u32::try_from(step?).ok()
}

/// Which part of the trace the diagnosis covers.
struct Scope<'a> {
    left_out: &'a LeftOut,
    whole: &'a Facts<'a>,
    is_part: bool,
}

impl Scope<'_> {
    /// Decides like the cut of the trace: by the step that launched the work, or else by when it ran.
    fn contains(&self, step: Option<usize>, start: Timestamp) -> bool {
        if !self.is_part {
            return true;
        }
        let steady = &self.left_out.steady;
        match step {
            Some(step) => steady.contains(&step),
            None => {
                let steps = self.whole.window.steps.get(steady.clone()).unwrap_or_default();
                let (first, last) = (steps.first(), steps.last());
                first.zip(last).is_some_and(|(first, last)| (first.start..last.end).contains(&start))
            }
        }
    }
}

fn copy_item(copy: &Copy<'_>, facts: &Facts<'_>, scope: &Scope<'_>) -> CopyItem {
    let step = facts.window.step_of_work(&copy.event);
    let timeline = facts.timelines.iter().find(|timeline| timeline.device == copy.device);
    let exposed = timeline.map_or(copy.event.duration(), |timeline| timeline.exposed_copy(copy.interval()));
    CopyItem {
        event: copy.event.id(),
        device: copy.device,
        stream: copy.stream,
        direction: copy.transfer.direction,
        src: copy.transfer.src,
        dst: copy.transfer.dst,
        bytes: copy.bytes(),
        gbps: copy.gbps(),
        exposed,
        blocking: copy.blocked,
        waited_after: copy.waited_after,
        step: number(step),
        analyzed: scope.contains(step, copy.event.start()),
        operator: copy
            .call
            .and_then(|call| facts.host.operator_around(&call))
            .map(|operator| operator.name_id()),
        migration: copy.event.migration().map(|migration| migration.cause),
    }
}

fn collective_item(run: &CollectiveRun<'_>, facts: &Facts<'_>, scope: &Scope<'_>) -> CollectiveItem {
    let (event, time) = (run.event, run.event.interval());
    let step = facts.window.step_of_work(&event);
    let timeline = facts.timelines.iter().find(|timeline| timeline.device == run.device);
    let algbw_gbps = run.algbw_gbps();
    let ranks = run.message.and_then(|message| message.group_size).filter(|ranks| *ranks > 1);
    CollectiveItem {
        event: event.id(),
        device: run.device,
        stream: run.stream,
        op: run.op,
        message: run.message,
        bytes: run.bytes,
        algbw_gbps,
        busbw_gbps: ranks.and_then(|ranks| Some(algbw_gbps? * run.op.bus_factor(ranks)?)),
        exposed: timeline.map_or(time.length(), |timeline| timeline.exposed_communication(time)),
        waiting: run.waiting,
        step: number(step),
        analyzed: scope.contains(step, event.start()),
    }
}

/// The gaps of the analyzed part, which its idle time is the sum of, and those of the rest.
fn gaps(analyzed: &AnalysisScope<'_, '_>) -> Vec<GapItem> {
    let (whole, facts) = (analyzed.whole(), analyzed.facts);
    let of = |from: &Facts<'_>, piece: &Piece, interval: Interval, analyzed: bool| {
        let gap = from.gaps.gap_of(piece);
        GapItem {
            device: gap.device,
            start: interval.start,
            duration: interval.length(),
            cause: piece.cause,
            ended_by: gap.work.map(|work| work.id()),
            step: number(gap.work.and_then(|work| whole.window.step_of_work(&work))),
            analyzed,
        }
    };
    let mut gaps: Vec<GapItem> =
        facts.gaps.pieces().map(|piece| of(facts, &piece, piece.interval, true)).collect();
    if !analyzed.is_part {
        return gaps;
    }
    let mut known: BTreeMap<i32, Vec<Interval>> = BTreeMap::new();
    for piece in facts.gaps.pieces() {
        known.entry(facts.gaps.gap_of(&piece).device).or_default().push(piece.interval);
    }
    let known: BTreeMap<i32, IntervalSet> =
        known.into_iter().map(|(device, times)| (device, IntervalSet::from_unsorted(times))).collect();
    let nothing = IntervalSet::default();
    for piece in whole.gaps.pieces() {
        let known = known.get(&whole.gaps.gap_of(&piece).device).unwrap_or(&nothing);
        let rest = IntervalSet::from_unsorted([piece.interval]).difference(&known.within(piece.interval));
        gaps.extend(rest.iter().map(|interval| of(whole, &piece, interval, false)));
    }
    gaps.sort_by_key(|gap| (gap.device, gap.start));
    gaps
}

fn steps(facts: &Facts<'_>, left_out: &LeftOut) -> Vec<StepItem> {
    let parts: Vec<DeviceParts> = facts
        .timelines
        .iter()
        .map(|timeline| DeviceParts::of(timeline, gaps_of(&facts.gaps, timeline.device)))
        .collect();
    let step = |(i, interval): (usize, &Interval)| {
        let times: Vec<PartTimes> = parts.iter().map(|device| device.times_within(*interval)).collect();
        let part = |wanted: fn(Part) -> bool| times.iter().map(|device| device.sum_of(wanted)).sum();
        let within = |of: fn(&DeviceTimeline) -> &IntervalSet| {
            facts.timelines.iter().map(|timeline| of(timeline).length_within(*interval)).sum()
        };
        StepItem {
            start: interval.start,
            duration: interval.length(),
            host_start: facts.window.starts.get(i).copied().unwrap_or(interval.start),
            warm_up: i < left_out.warm_up,
            outlier: left_out.outlier_steps.binary_search(&i).is_ok(),
            analyzed: left_out.steady.contains(&i),
            compute: part(|part| part == Part::Compute),
            communication: within(|timeline| &timeline.communication),
            copying: within(|timeline| &timeline.copies),
            exposed_copy: part(Part::is_copy),
            exposed_communication: part(|part| part == Part::Communication),
            idle: part(Part::is_idle),
        }
    };
    facts.window.steps.iter().enumerate().map(step).collect()
}
