//! Why was a device idle? Looks at the edge that the work after each gap waited on, and at the host during the gap.

use busbound_trace::{Call, Event, EventId, Interval, IntervalSet, Nanos, Timestamp, TrackId};
use serde::{Deserialize, Serialize};

use crate::graph::{Graph, WorkId};
use crate::graph_launches::GraphLaunches;
use crate::host::{Host, HostUse};
use crate::thresholds::{AFTER_IDLE, BEFORE_IDLE, KERNEL_GAP, LAUNCH_LATENCY, QUEUED_GAP};

/// The cause of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GapCause {
    /// The host was inside a copy call: staging pageable memory, or waiting for the copy.
    Copy,
    /// The host was launching: inside launch calls, or in the short host work between them.
    Launch,
    /// The host was inside a sync call.
    Synchronization,
    /// The host waited for the next batch.
    Input,
    /// The host did its own work: operators on the CPU, allocation, Python, or something that is not recorded.
    Host,
    /// The work was launched in time and waited for something that is not visible in the trace.
    Queued,
    /// A gap between kernels: too short to have another cause.
    KernelGap,
    /// The cause is not visible in the trace.
    Unexplained,
}

impl GapCause {
    /// Every cause.
    pub const ALL: &'static [Self] = &[
        Self::Copy,
        Self::Launch,
        Self::Synchronization,
        Self::Input,
        Self::Host,
        Self::Queued,
        Self::KernelGap,
        Self::Unexplained,
    ];

    /// What `busbound explain` calls it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Copy => "idle_copy",
            Self::Launch => "idle_launch",
            Self::Synchronization => "idle_sync",
            Self::Input => "idle_input",
            Self::Host => "idle_host",
            Self::Queued => "idle_queued",
            Self::KernelGap => "idle_kernel_gap",
            Self::Unexplained => "idle_unexplained",
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Copy => "host inside a copy call",
            Self::Launch => "waiting for a launch",
            Self::Synchronization => "host inside a sync call",
            Self::Input => "waiting for input",
            Self::Host => "host busy with other work",
            Self::Queued => "launched, but waiting for something not in this trace",
            Self::KernelGap => "gap between kernels",
            Self::Unexplained => "cause not visible in this trace",
        }
    }
}

/// A part of a gap with one cause.
#[derive(Debug, Clone, Copy)]
struct Piece {
    interval: Interval,
    cause: GapCause,
    host: Option<HostUse>,
    event: Option<EventId>,
}

/// A part of a gap in a device's work, with one cause.
#[derive(Debug, Clone, Copy)]
pub struct Gap<'a> {
    pub device: i32,
    pub interval: Interval,
    /// All of the gap.
    pub whole: Interval,
    pub cause: GapCause,
    /// What the host did, if it is the cause, and the event that it was in.
    pub host: Option<HostUse>,
    pub during: Option<EventId>,
    /// The work that ended the gap, and the call that launched what the device waited for.
    pub work: Option<Event<'a>>,
    pub call: Option<Event<'a>>,
}

/// What the causes of gaps are found with.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'t, 'a> {
    pub graph: &'t Graph,
    pub host: &'t Host<'a>,
    pub launches: &'t GraphLaunches<'t>,
    /// The thread that ends the steps: time after the last work is its time.
    pub thread: Option<TrackId>,
}

/// The causes of one device's gaps; `gaps` must be sorted by time.
pub fn causes<'a>(terms: Terms<'_, 'a>, device: i32, gaps: &IntervalSet) -> Vec<Gap<'a>> {
    let Terms { graph, host, launches, thread } = terms;
    let trace = host.trace();
    let mut work: Vec<WorkId> =
        graph.streams_of(Some(device)).flat_map(|s| graph.streams[s].work.iter().copied()).collect();
    work.sort_by_key(|work| graph.work[*work].start);
    let migrates = |work: WorkId| trace.event(graph.work[work].event).migration().is_some();
    let call_of = |work: WorkId| graph.work[work].call.map(|call| trace.event(graph.calls[call].event));
    let (mut next, mut awaited) = (0, 0);
    // The last work that a call launched, and when the device became idle after such work.
    let (mut launched, mut idle_since) = (None, None);
    let (mut all, mut pieces) = (Vec::new(), Vec::new());
    for interval in gaps.iter() {
        // The work that ended the gap; gaps are sorted, so the search continues from there.
        while let Some(&one) = work.get(next).filter(|one| graph.work[**one].start < interval.end.as_nanos())
        {
            if !migrates(one) {
                launched = Some(one);
                idle_since = idle_since.max(Some(graph.work[one].end));
            }
            next += 1;
        }
        // The driver migrates managed memory without a call: the device waits for the next launched work.
        awaited = awaited.max(next);
        while work.get(awaited).is_some_and(|one| migrates(*one)) {
            awaited += 1;
        }
        let call = work.get(awaited).and_then(|one| call_of(*one));
        let before = launched.and_then(call_of);
        match (before, call) {
            (Some(before), Some(call)) if launches.ran_unseen(&before, &call) => {
                add(&mut pieces, interval, GapCause::Unexplained, None);
            }
            (_, None) if next == work.len() && thread.is_some() => {
                thread.into_iter().for_each(|thread| host_pieces(host, thread, interval, &mut pieces));
            }
            _ => {
                let idle_since = idle_since.map_or(interval.start, Timestamp::from_nanos);
                split(interval, idle_since, call.as_ref(), host, &mut pieces);
            }
        }
        let ended_by = work.get(next).map(|one| trace.event(graph.work[*one].event));
        all.extend(pieces.drain(..).map(|part| Gap {
            device,
            interval: part.interval,
            whole: interval,
            cause: part.cause,
            host: part.host,
            during: part.event,
            work: ended_by,
            call,
        }));
    }
    all
}

/// Splits a gap at the launch of the work that ends it: before the launch by what the host did, after it the device waited.
fn split(
    gap: Interval,
    idle_since: Timestamp,
    call: Option<&Event<'_>>,
    host: &Host<'_>,
    pieces: &mut Vec<Piece>,
) {
    // Only migrations of managed memory ran since `idle_since`.
    if gap.length().get() < KERNEL_GAP {
        return add(pieces, gap, GapCause::KernelGap, None);
    }
    let Some(call) = call.filter(|call| host.thread(call.track_id()).is_some()) else {
        return add(pieces, gap, GapCause::Unexplained, None);
    };
    let late = Interval::new(idle_since.min(gap.start), gap.end);
    if call.end() <= late.start {
        let is_short = late.length().get() < QUEUED_GAP;
        let cause = if is_short { GapCause::KernelGap } else { GapCause::Queued };
        return add(pieces, gap, cause, None);
    }
    let launch = call.start().max(gap.start).min(gap.end);
    host_pieces(host, call.track_id(), Interval::new(gap.start, launch), pieces);
    let is_copy = host.call_kind(call) == Call::Copy;
    let own = if is_copy { GapCause::Copy } else { GapCause::Launch };
    // A launch takes this long to reach an idle device.
    let reached = (call.end() + Nanos::new(LAUNCH_LATENCY)).min(gap.end).max(launch);
    add(pieces, Interval::new(launch, reached), own, Some(call.id()));
    add(pieces, Interval::new(reached, gap.end), GapCause::Queued, None);
}

/// Adds a piece that is not about what the host did.
fn add(pieces: &mut Vec<Piece>, interval: Interval, cause: GapCause, event: Option<EventId>) {
    if interval.length() > Nanos::ZERO {
        pieces.push(Piece { interval, cause, host: None, event });
    }
}

/// Idle time by what a thread did.
fn host_pieces(host: &Host<'_>, thread: TrackId, interval: Interval, pieces: &mut Vec<Piece>) {
    for used in host.uses_followed(thread, interval) {
        // Which launch it was says nothing about the gap.
        let event = used.event.filter(|_| used.what != HostUse::Launching);
        match pieces.last_mut().filter(|last| (last.host, last.event) == (Some(used.what), event)) {
            Some(last) => last.interval = last.interval.hull(used.interval),
            None => pieces.push(Piece {
                interval: used.interval,
                cause: cause_of(used.what),
                host: Some(used.what),
                event,
            }),
        }
    }
}

/// The cause of idle time in which the host did this.
fn cause_of(what: HostUse) -> GapCause {
    match what {
        HostUse::Launching => GapCause::Launch,
        HostUse::CopyCall => GapCause::Copy,
        HostUse::Synchronizing => GapCause::Synchronization,
        HostUse::Input => GapCause::Input,
        HostUse::Waiting => GapCause::Unexplained,
        _ => GapCause::Host,
    }
}

/// The time around the moment the device became idle: a host wait that ends here was waiting for the device.
pub fn around_start(gap: Interval) -> Interval {
    Interval::new(gap.start + Nanos::new(-BEFORE_IDLE), gap.start + Nanos::new(AFTER_IDLE).min(gap.length()))
}
