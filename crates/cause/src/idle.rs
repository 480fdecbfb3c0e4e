//! Why was a device idle? The edge that the work at the end of each gap waited on, and what the host did meanwhile.

use busbound_trace::{Event, Interval, IntervalSet, Nanos, Timestamp};
use serde::{Deserialize, Serialize};

use crate::graph::{Graph, WorkId};
use crate::graph_launches::GraphLaunches;
use crate::host::Host;
use crate::thresholds::{AFTER_DRY, BEFORE_DRY, KERNEL_GAP, QUEUED_GAP, RECORDED_SHARE};

/// What a gap waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GapCause {
    /// The host was inside a copy call: staging pageable memory, or waiting for it.
    Copy,
    /// The queue was empty: the host had not launched yet.
    Launch,
    /// The host had waited for the device to finish, and only then launched on.
    Synchronization,
    /// The host waited for its next batch.
    Input,
    /// Too short to have a cause of its own: the device's turn-around between two pieces of work.
    Turnaround,
    /// The trace does not show it.
    Unexplained,
}

impl GapCause {
    /// Every cause.
    pub const ALL: &'static [Self] =
        &[Self::Copy, Self::Launch, Self::Synchronization, Self::Input, Self::Turnaround, Self::Unexplained];

    /// What `busbound explain` calls it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Copy => "idle_copy",
            Self::Launch => "idle_launch",
            Self::Synchronization => "idle_sync",
            Self::Input => "idle_input",
            Self::Turnaround => "idle_kernel_gap",
            Self::Unexplained => "idle_unexplained",
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Copy => "host inside a copy call",
            Self::Launch => "host had not launched yet",
            Self::Synchronization => "host had synchronized first",
            Self::Input => "waiting for input",
            Self::Turnaround => "turn-around between pieces of work",
            Self::Unexplained => "not explained by the trace",
        }
    }
}

/// One gap in a device's work.
#[derive(Debug, Clone, Copy)]
pub struct Gap<'a> {
    pub device: i32,
    pub interval: Interval,
    pub cause: GapCause,
    /// The work that ended it, and the call behind what the device waited for.
    pub work: Option<Event<'a>>,
    pub call: Option<Event<'a>>,
}

/// The causes of one device's gaps, which come in order of time.
pub fn causes<'a>(
    graph: &Graph,
    host: &Host<'a>,
    launches: &GraphLaunches<'_>,
    device: i32,
    gaps: &IntervalSet,
) -> Vec<Gap<'a>> {
    let trace = host.trace();
    let mut work: Vec<WorkId> =
        graph.streams_of(Some(device)).flat_map(|s| graph.streams[s].work.iter().copied()).collect();
    work.sort_by_key(|work| graph.work[*work].start);
    let migrates = |work: WorkId| trace.event(graph.work[work].event).migration().is_some();
    let call_of = |work: WorkId| graph.work[work].call.map(|call| trace.event(graph.calls[call].event));
    let (mut next, mut awaited) = (0, 0);
    // The last work that somebody launched, and when the last such work ended.
    let (mut launched, mut dry_since) = (None, None);
    let mut all = Vec::new();
    for interval in gaps.iter() {
        // The work that ended the gap; gaps come in order, so the search goes on from there.
        while let Some(&one) = work.get(next).filter(|one| graph.work[**one].start < interval.end.as_nanos())
        {
            if !migrates(one) {
                launched = Some(one);
                dry_since = dry_since.max(Some(graph.work[one].end));
            }
            next += 1;
        }
        // The driver moves pages of managed memory by itself: the device waits for the next work that is launched.
        awaited = awaited.max(next);
        while work.get(awaited).is_some_and(|one| migrates(*one)) {
            awaited += 1;
        }
        let call = work.get(awaited).and_then(|one| call_of(*one));
        let before = launched.and_then(call_of);
        let cause = match (before, call) {
            (Some(before), Some(call)) if launches.ran_unseen(&before, &call) => GapCause::Unexplained,
            _ => {
                let dry_since = dry_since.map_or(interval.start, Timestamp::from_nanos);
                cause_of(interval, dry_since, call.as_ref(), host)
            }
        };
        let ended_by = work.get(next).map(|one| trace.event(graph.work[*one].event));
        all.push(Gap { device, interval, cause, work: ended_by, call });
    }
    all
}

/// `dry_since` is when the last work ended that somebody launched; only migrations of managed memory ran since.
fn cause_of(gap: Interval, dry_since: Timestamp, call: Option<&Event<'_>>, host: &Host<'_>) -> GapCause {
    if gap.length().get() < KERNEL_GAP {
        return GapCause::Turnaround;
    }
    let gap = Interval::new(dry_since.min(gap.start), gap.end);
    let Some(call) = call else { return GapCause::Unexplained };
    let Some(thread) = host.thread(call.track_id()) else { return GapCause::Unexplained };
    if call.end() <= gap.start {
        // It was launched in time: the host is not the cause.
        return if gap.length().get() < QUEUED_GAP { GapCause::Turnaround } else { GapCause::Unexplained };
    }
    // What the thread was inside of from the moment the device ran dry until it launched.
    let window = Interval::new(gap.start, call.end().min(gap.end).max(call.start()));
    let half = window.length().get() / 2;
    let most_of = |times: &IntervalSet| times.length_within(window).get() > half;
    let just_before = |times: &IntervalSet| times.length_within(around_start(gap)).get() > 0;
    if most_of(&thread.input) {
        return GapCause::Input;
    }
    if most_of(&thread.copying) || just_before(&thread.copying_long) {
        return GapCause::Copy;
    }
    // It waited for the device until just now; whatever it then does, the device waits for that.
    if most_of(&thread.synchronizing) || just_before(&thread.synchronizing) {
        return GapCause::Synchronization;
    }
    let recorded = thread.recorded.length_within(window).get() as f64;
    if recorded < RECORDED_SHARE * window.length().get() as f64 {
        return GapCause::Unexplained;
    }
    GapCause::Launch
}

/// The moment at which the device ran dry: what the host comes out of then, it had been held by.
pub fn around_start(gap: Interval) -> Interval {
    Interval::new(gap.start + Nanos::new(-BEFORE_DRY), gap.start + Nanos::new(AFTER_DRY).min(gap.length()))
}
