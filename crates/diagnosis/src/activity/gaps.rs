//! Why was the device idle? Each gap between its work is laid to what the host did meanwhile.

use std::collections::BTreeMap;

use busbound_trace::{Event, Interval, IntervalSet, Nanos, Place, Timestamp, Trace, TrackId};
use serde::{Deserialize, Serialize};

use crate::activity::copies::is_on_bus;
use crate::activity::host::Host;
use crate::activity::timeline::DeviceTimeline;
use crate::activity::unseen::GraphLaunches;

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
    Synchronisation,
    /// The host waited for its next batch.
    Input,
    /// Too short to have a cause of its own: the device's turn-around between two pieces of work.
    Turnaround,
    /// The trace does not show it.
    Unexplained,
}

impl GapCause {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Copy => "host inside a copy call",
            Self::Launch => "host had not launched yet",
            Self::Synchronisation => "host had synchronised first",
            Self::Input => "waiting for input",
            Self::Turnaround => "turn-around between pieces of work",
            Self::Unexplained => "not explained by the trace",
        }
    }
}

/// Idle time of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleCause {
    pub cause: GapCause,
    pub count: u64,
    pub ms: f64,
    pub longest_ms: f64,
    /// Where the program was when the longest ended.
    pub longest_place: Option<String>,
    /// Of the time, that before a copy over the bus and not before a kernel.
    pub before_copies_ms: f64,
    /// Where the program was when the longest of these gaps ended, by time.
    pub places: Vec<IdlePlace>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdlePlace {
    pub place: String,
    pub count: u64,
    pub ms: f64,
}

/// One gap in a device's work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap<'a> {
    pub(crate) device: i32,
    pub(crate) interval: Interval,
    pub(crate) cause: GapCause,
    /// The work that ended it, and the call behind that.
    pub(crate) work: Option<Event<'a>>,
    pub(crate) call: Option<Event<'a>>,
}

impl Gap<'_> {
    fn ends_in_bus_copy(&self) -> bool {
        self.work.is_some_and(|work| work.transfer().is_some_and(|transfer| is_on_bus(transfer.direction)))
    }
}

/// Below this a gap is the device's own turn-around.
const TURNAROUND: i64 = 3_000;

/// Work launched before a gap began waits at most this long for reasons of the device.
const QUEUED_TURNAROUND: i64 = 15_000;

/// Gaps whose place in the program is looked up: the longest.
const LOOKED_AT: usize = 200;

/// Every gap of every device, in order.
pub(crate) fn gaps<'a>(trace: &'a Trace, host: &Host<'a>, timelines: &[DeviceTimeline]) -> Vec<Gap<'a>> {
    let mut all = Vec::new();
    let unseen = GraphLaunches::of(trace).unseen;
    for timeline in timelines {
        let works = first_work_at(trace, timeline.device);
        let (mut next, mut awaited) = (0, 0);
        // The last work that somebody launched, and when the last such work ended.
        let (mut launched, mut dry_since) = (None, None);
        for interval in timeline.gaps().iter() {
            // The work that ended the gap; gaps come in order, so the search goes on from there.
            while let Some(work) = works.get(next).filter(|work| work.start() < interval.end) {
                if work.migration().is_none() {
                    launched = Some(*work);
                    dry_since = dry_since.max(Some(work.end()));
                }
                next += 1;
            }
            let work = works.get(next).copied();
            // The driver moves pages of managed memory by itself: what the device waits for is the next work that is launched.
            awaited = awaited.max(next);
            while works.get(awaited).is_some_and(|work| work.migration().is_some()) {
                awaited += 1;
            }
            let call = works.get(awaited).and_then(|work| host.call_behind(work));
            let before = launched.and_then(|work| host.call_behind(&work));
            let cause = match (before, call) {
                (Some(before), Some(call)) if ran_unseen(&unseen, &before, &call) => GapCause::Unexplained,
                _ => cause_of(interval, dry_since.unwrap_or(interval.start), call.as_ref(), host),
            };
            all.push(Gap { device: timeline.device, interval, cause, work, call });
        }
    }
    all
}

/// Idle time by cause, most first.
pub(crate) fn idle_causes(gaps: &[Gap<'_>], host: &Host<'_>) -> Vec<IdleCause> {
    let mut by_cause: BTreeMap<GapCause, Vec<&Gap<'_>>> = BTreeMap::new();
    for gap in gaps {
        by_cause.entry(gap.cause).or_default().push(gap);
    }
    let mut causes: Vec<_> =
        by_cause.into_iter().map(|(cause, gaps)| idle_cause(cause, gaps, host)).collect();
    causes.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    causes
}

fn idle_cause(cause: GapCause, mut gaps: Vec<&Gap<'_>>, host: &Host<'_>) -> IdleCause {
    gaps.sort_by_key(|gap| (std::cmp::Reverse(gap.interval.length()), gap.interval.start));
    let length = |gap: &&Gap<'_>| gap.interval.length();
    let mut places: BTreeMap<String, (u64, Nanos)> = BTreeMap::new();
    let mut longest_place = None;
    let looked_at = if cause == GapCause::Turnaround { 0 } else { LOOKED_AT };
    for (i, gap) in gaps.iter().enumerate().take(looked_at) {
        let Some(place) = gap.call.and_then(|call| host.around(&call).describe()) else { continue };
        if i == 0 {
            longest_place = Some(place.clone());
        }
        let sum = places.entry(place).or_default();
        sum.0 += 1;
        sum.1 += gap.interval.length();
    }
    let mut places: Vec<_> = places
        .into_iter()
        .map(|(place, (count, time))| IdlePlace { place, count, ms: time.as_millis() })
        .collect();
    places.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    places.truncate(5);
    IdleCause {
        cause,
        count: gaps.len() as u64,
        ms: gaps.iter().map(length).sum::<Nanos>().as_millis(),
        longest_ms: gaps.first().map_or(0.0, |gap| gap.interval.length().as_millis()),
        longest_place,
        before_copies_ms: gaps
            .iter()
            .filter(|gap| gap.ends_in_bus_copy())
            .map(length)
            .sum::<Nanos>()
            .as_millis(),
        places,
    }
}

/// Idle time of one cause in gaps that begin while, or just after, the host was inside these calls.
pub(crate) fn idle_beside_ms(gaps: &[Gap<'_>], cause: GapCause, calls: &CallTimes) -> f64 {
    let beside = |gap: &&Gap<'_>| {
        let calls = gap.call.and_then(|call| calls.get(&call.track_id()));
        calls.is_some_and(|calls| {
            calls.length_within(just_before(gap.interval)).get() > 0
                || calls.length_within(gap.interval).get() > 0
        })
    };
    let these = gaps.iter().filter(|gap| gap.cause == cause).filter(beside);
    these.map(|gap| gap.interval.length()).sum::<Nanos>().as_millis()
}

/// Idle time during which the thread that ended it was inside these calls.
pub(crate) fn idle_inside_ms(gaps: &[Gap<'_>], calls: &CallTimes) -> f64 {
    if calls.is_empty() {
        return 0.0;
    }
    let inside = |gap: &Gap<'_>| {
        let calls = gap.call.and_then(|call| calls.get(&call.track_id()));
        calls.map_or(Nanos::ZERO, |calls| calls.length_within(gap.interval))
    };
    gaps.iter().map(inside).sum::<Nanos>().as_millis()
}

/// When threads were inside calls of some sort.
pub(crate) type CallTimes = BTreeMap<TrackId, IntervalSet>;

pub(crate) fn call_times<'c>(calls: impl IntoIterator<Item = Event<'c>>) -> CallTimes {
    let mut by_thread: BTreeMap<TrackId, Vec<Interval>> = BTreeMap::new();
    for call in calls {
        by_thread.entry(call.track_id()).or_default().push(call.interval());
    }
    by_thread.into_iter().map(|(thread, times)| (thread, IntervalSet::from_unsorted(times))).collect()
}

/// All work of a device in order of start, over its streams.
fn first_work_at(trace: &Trace, device: i32) -> Vec<Event<'_>> {
    let mut work: Vec<Event<'_>> = trace
        .streams()
        .filter(|track| matches!(track.place(), Place::Stream { device: d, .. } if d == device))
        .flat_map(|track| track.events())
        .filter(|event| event.kind().is_gpu_work())
        .collect();
    work.sort_by_key(Event::start);
    work
}

/// Whether a graph was launched between two calls of which the trace does not show what ran in it.
fn ran_unseen(unseen: &[Event<'_>], before: &Event<'_>, call: &Event<'_>) -> bool {
    let first = unseen.partition_point(|launch| launch.start() <= before.start());
    unseen.get(first).is_some_and(|launch| launch.start() < call.start())
}

/// `dry_since` is when the last work ended that somebody launched; only migrations of managed memory ran since.
fn cause_of(gap: Interval, dry_since: Timestamp, call: Option<&Event<'_>>, host: &Host<'_>) -> GapCause {
    if gap.length().get() < TURNAROUND {
        return GapCause::Turnaround;
    }
    let gap = Interval::new(dry_since.min(gap.start), gap.end);
    let length = gap.length().get();
    let Some(call) = call else { return GapCause::Unexplained };
    let Some(thread) = host.thread(call.track_id()) else { return GapCause::Unexplained };
    if call.end() <= gap.start {
        // It was launched in time: the host is not to blame.
        return if length < QUEUED_TURNAROUND { GapCause::Turnaround } else { GapCause::Unexplained };
    }
    // What the thread was inside of from the moment the device ran dry until it launched.
    let window = Interval::new(gap.start, call.end().min(gap.end).max(call.start()));
    let half = window.length().get() / 2;
    let most_of = |times: &IntervalSet| times.length_within(window).get() > half;
    if most_of(&thread.input) {
        return GapCause::Input;
    }
    if most_of(&thread.copying) {
        return GapCause::Copy;
    }
    if thread.copying_long.length_within(just_before(gap)).get() > 0 {
        return GapCause::Copy;
    }
    // It waited for the device until just now; whatever it then does, the device waits for that.
    if most_of(&thread.synchronising) || thread.synchronising.length_within(just_before(gap)).get() > 0 {
        return GapCause::Synchronisation;
    }
    if thread.recorded.length_within(window).wide() * 5 < window.length().wide() {
        return GapCause::Unexplained;
    }
    GapCause::Launch
}

/// The moment at which the device ran dry: what the host comes out of then, it had been held by.
fn just_before(gap: Interval) -> Interval {
    Interval::new(gap.start + Nanos::new(-2_000), gap.start + Nanos::new(50_000).min(gap.length()))
}
