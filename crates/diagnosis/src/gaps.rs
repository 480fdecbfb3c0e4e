//! Why was the device idle? Each gap between its work is laid to what the host did meanwhile.

use std::collections::BTreeMap;

use busbound_trace::{Event, Interval, Nanos, Place, Trace};
use serde::Serialize;

use crate::copies::is_on_bus;
use crate::host::{Call, Host};
use crate::timeline::DeviceTimeline;

/// What a gap waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GapCause {
    /// The host was inside a copy call: staging pageable memory, or waiting for it.
    Copy,
    /// Work was queued that waited for communication.
    Communication,
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
            Self::Communication => "waiting for communication",
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

/// Below this a gap is the device's own turn-around.
const TURNAROUND: i64 = 3_000;

/// Work launched before a gap began waits at most this long for reasons of the device.
const QUEUED_TURNAROUND: i64 = 15_000;

/// Gaps whose place in the program is looked up: the longest.
const LOOKED_AT: usize = 200;

/// Idle time by cause, most first.
pub(crate) fn idle_causes(trace: &Trace, host: &Host<'_>, timelines: &[DeviceTimeline]) -> Vec<IdleCause> {
    let mut sums: BTreeMap<GapCause, (u64, Nanos, Nanos, Nanos)> = BTreeMap::new();
    let mut longest: Vec<(Nanos, GapCause, Event<'_>)> = Vec::new();
    for timeline in timelines {
        let mut ends = first_work_at(trace, timeline.device);
        for gap in timeline.gaps().iter() {
            // The work that ended the gap; gaps come in order, so the search goes on from there.
            let work = loop {
                match ends.next() {
                    Some(event) if event.start() < gap.end => {}
                    other => break other,
                }
            };
            let call = work.and_then(|work| host.call_behind(&work));
            let cause = cause_of(gap, call.as_ref(), host);
            let sum = sums.entry(cause).or_default();
            sum.0 += 1;
            sum.1 += gap.length();
            sum.2 = sum.2.max(gap.length());
            let ends_in_copy = work
                .is_some_and(|work| work.transfer().is_some_and(|transfer| is_on_bus(transfer.direction)));
            if ends_in_copy {
                sum.3 += gap.length();
            }
            if let Some(call) = call
                && cause != GapCause::Turnaround
            {
                longest.push((gap.length(), cause, call));
            }
        }
    }
    longest.sort_by_key(|(length, ..)| std::cmp::Reverse(*length));
    let mut places: BTreeMap<(GapCause, String), (u64, Nanos)> = BTreeMap::new();
    for (length, cause, call) in longest.into_iter().take(LOOKED_AT) {
        if let Some(place) = host.around(&call).describe() {
            let sum = places.entry((cause, place)).or_default();
            sum.0 += 1;
            sum.1 += length;
        }
    }
    let mut causes: Vec<IdleCause> = sums
        .into_iter()
        .map(|(cause, (count, time, longest, before_copies))| {
            let mut here: Vec<_> = places
                .iter()
                .filter(|((of, _), _)| *of == cause)
                .map(|((_, place), &(count, time))| IdlePlace {
                    place: place.clone(),
                    count,
                    ms: time.as_millis(),
                })
                .collect();
            here.sort_by(|a, b| b.ms.total_cmp(&a.ms));
            here.truncate(5);
            IdleCause {
                cause,
                count,
                ms: time.as_millis(),
                longest_ms: longest.as_millis(),
                before_copies_ms: before_copies.as_millis(),
                places: here,
            }
        })
        .collect();
    causes.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    causes
}

/// All work of a device in order of start, over its streams.
fn first_work_at(trace: &Trace, device: i32) -> impl Iterator<Item = Event<'_>> {
    let mut work: Vec<Event<'_>> = trace
        .streams()
        .filter(|track| matches!(track.place(), Place::Stream { device: d, .. } if d == device))
        .flat_map(|track| track.events())
        .filter(|event| event.kind().is_gpu_work())
        .collect();
    work.sort_by_key(Event::start);
    work.into_iter()
}

fn cause_of(gap: Interval, call: Option<&Event<'_>>, host: &Host<'_>) -> GapCause {
    let length = gap.length().get();
    if length < TURNAROUND {
        return GapCause::Turnaround;
    }
    let Some(call) = call else { return GapCause::Unexplained };
    let Some(thread) = host.thread(call.track_id()) else { return GapCause::Unexplained };
    if call.end() <= gap.start && host.call_kind(call) != Call::Copy {
        // It was launched in time: the host is not to blame.
        return if length < QUEUED_TURNAROUND { GapCause::Turnaround } else { GapCause::Unexplained };
    }
    // What the thread was inside of from the moment the device ran dry until it launched.
    let window = Interval::new(gap.start, call.end().min(gap.end).max(call.start()));
    let half = window.length().get() / 2;
    let most_of = |times: &busbound_trace::IntervalSet| times.length_within(window).get() > half;
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
    let just_before =
        Interval::new(gap.start + Nanos::new(-2_000), gap.start + Nanos::new(50_000).min(gap.length()));
    if most_of(&thread.synchronising) || thread.synchronising.length_within(just_before).get() > 0 {
        return GapCause::Synchronisation;
    }
    if thread.recorded.length_within(window).get() * 5 < window.length().get() {
        return GapCause::Unexplained;
    }
    GapCause::Launch
}

/// The moment at which the device ran dry: what the host comes out of then, it had been held by.
fn just_before(gap: Interval) -> Interval {
    Interval::new(gap.start + Nanos::new(-2_000), gap.start + Nanos::new(50_000).min(gap.length()))
}
