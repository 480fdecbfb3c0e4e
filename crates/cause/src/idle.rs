//! Why was a device idle? Looks at the edge that the work after each gap waited on, and at the host during the gap.

use busbound_trace::{Event, Interval, IntervalSet, Nanos, Timestamp};
use serde::{Deserialize, Serialize};

use crate::graph::{Graph, WorkId};
use crate::graph_launches::GraphLaunches;
use crate::host::Host;
use crate::thresholds::{AFTER_IDLE, BEFORE_IDLE, KERNEL_GAP, QUEUED_GAP, RECORDED_SHARE};

/// The cause of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GapCause {
    /// The host was inside a copy call: staging pageable memory, or waiting for the copy.
    Copy,
    /// The queue was empty: the device waited for a launch.
    Launch,
    /// The host waited for the device to finish and launched more work only after that.
    Synchronization,
    /// The host waited for the next batch.
    Input,
    /// A gap between kernels: too short to have another cause.
    KernelGap,
    /// The cause is not visible in the trace.
    Unexplained,
}

impl GapCause {
    /// Every cause.
    pub const ALL: &'static [Self] =
        &[Self::Copy, Self::Launch, Self::Synchronization, Self::Input, Self::KernelGap, Self::Unexplained];

    /// What `busbound explain` calls it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Copy => "idle_copy",
            Self::Launch => "idle_launch",
            Self::Synchronization => "idle_sync",
            Self::Input => "idle_input",
            Self::KernelGap => "idle_kernel_gap",
            Self::Unexplained => "idle_unexplained",
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Copy => "host inside a copy call",
            Self::Launch => "waiting for a launch",
            Self::Synchronization => "waiting after a host sync",
            Self::Input => "waiting for input",
            Self::KernelGap => "gap between kernels",
            Self::Unexplained => "cause not visible in this trace",
        }
    }
}

/// One gap in a device's work.
#[derive(Debug, Clone, Copy)]
pub struct Gap<'a> {
    pub device: i32,
    pub interval: Interval,
    pub cause: GapCause,
    /// The work that ended the gap, and the call that launched what the device waited for.
    pub work: Option<Event<'a>>,
    pub call: Option<Event<'a>>,
}

/// The causes of one device's gaps; `gaps` must be sorted by time.
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
    // The last work that a call launched, and when the device became idle after such work.
    let (mut launched, mut idle_since) = (None, None);
    let mut all = Vec::new();
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
        let cause = match (before, call) {
            (Some(before), Some(call)) if launches.ran_unseen(&before, &call) => GapCause::Unexplained,
            _ => {
                let idle_since = idle_since.map_or(interval.start, Timestamp::from_nanos);
                cause_of(interval, idle_since, call.as_ref(), host)
            }
        };
        let ended_by = work.get(next).map(|one| trace.event(graph.work[*one].event));
        all.push(Gap { device, interval, cause, work: ended_by, call });
    }
    all
}

/// `idle_since` is the end of the last launched work; only migrations of managed memory ran after it.
fn cause_of(gap: Interval, idle_since: Timestamp, call: Option<&Event<'_>>, host: &Host<'_>) -> GapCause {
    if gap.length().get() < KERNEL_GAP {
        return GapCause::KernelGap;
    }
    let gap = Interval::new(idle_since.min(gap.start), gap.end);
    let Some(call) = call else { return GapCause::Unexplained };
    let Some(thread) = host.thread(call.track_id()) else { return GapCause::Unexplained };
    if call.end() <= gap.start {
        // It was launched in time: the host is not the cause.
        return if gap.length().get() < QUEUED_GAP { GapCause::KernelGap } else { GapCause::Unexplained };
    }
    // What the thread did from the moment the device became idle until the launch.
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
    // The host waited for the device until just now; the device waits for whatever the host does next.
    if most_of(&thread.synchronizing) || just_before(&thread.synchronizing) {
        return GapCause::Synchronization;
    }
    let recorded = thread.recorded.length_within(window).get() as f64;
    if recorded < RECORDED_SHARE * window.length().get() as f64 {
        return GapCause::Unexplained;
    }
    GapCause::Launch
}

/// The time around the moment the device became idle: a host wait that ends here was waiting for the device.
pub fn around_start(gap: Interval) -> Interval {
    Interval::new(gap.start + Nanos::new(-BEFORE_IDLE), gap.start + Nanos::new(AFTER_IDLE).min(gap.length()))
}
