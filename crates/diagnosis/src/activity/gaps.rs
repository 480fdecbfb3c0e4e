//! Why was the device idle? The gaps of [`busbound_cause::idle`], summed by cause and place in the program.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use busbound_cause::idle::{self, Gap, GapCause};
use busbound_cause::{Graph, GraphLaunches, Host};
use busbound_trace::{Event, Interval, IntervalSet, Nanos, TrackId};
use serde::Serialize;

use crate::activity::copies::is_on_bus;
use crate::activity::timeline::DeviceTimeline;

/// Idle time of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleCause {
    pub cause: GapCause,
    pub count: u64,
    pub ms: f64,
    pub longest_ms: f64,
    /// Where the program was when the longest gap ended.
    pub longest_place: Option<String>,
    /// The part of `ms` in gaps that end with a copy over the bus rather than with a kernel.
    pub before_copies_ms: f64,
    /// Where the program was when the longest of these gaps ended, most time first.
    pub places: Vec<IdlePlace>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdlePlace {
    pub place: String,
    pub count: u64,
    pub ms: f64,
}

/// How many of the longest gaps get their place in the program looked up.
const LOCATED: usize = 200;

/// Every gap of every device, in order. `thread` ends the last step.
pub(crate) fn gaps<'a>(
    graph: &Graph,
    host: &Host<'a>,
    timelines: &[DeviceTimeline],
    thread: Option<TrackId>,
) -> Vec<Gap<'a>> {
    let launches = GraphLaunches::of(host.trace());
    let terms = idle::Terms { graph, host, launches: &launches, thread };
    let of_device = |line: &DeviceTimeline| idle::causes(terms, line.device, &line.gaps());
    let all = timelines.iter().map(of_device).reduce(|mut all, mut more| {
        all.append(&mut more);
        all
    });
    all.unwrap_or_default()
}

fn ends_in_bus_copy(gap: &Gap<'_>) -> bool {
    gap.work.is_some_and(|work| work.transfer().is_some_and(|transfer| is_on_bus(transfer.direction)))
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

fn idle_cause(cause: GapCause, gaps: Vec<&Gap<'_>>, host: &Host<'_>) -> IdleCause {
    let length = |gap: &&Gap<'_>| gap.interval.length();
    let (count, total) = (gaps.len() as u64, gaps.iter().map(length).sum::<Nanos>());
    let before_copies: Nanos = gaps.iter().filter(|gap| ends_in_bus_copy(gap)).map(length).sum();
    let longest = gaps.iter().map(length).max().unwrap_or_default();
    let mut places: BTreeMap<String, (u64, Nanos)> = BTreeMap::new();
    let mut longest_place = None;
    let located = if cause == GapCause::KernelGap { Vec::new() } else { longest_of(gaps, LOCATED) };
    for (i, gap) in located.iter().enumerate() {
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
        count,
        ms: total.as_millis(),
        longest_ms: longest.as_millis(),
        longest_place,
        before_copies_ms: before_copies.as_millis(),
        places,
    }
}

/// The longest gaps, longest first.
fn longest_of<'g, 'a>(mut gaps: Vec<&'g Gap<'a>>, count: usize) -> Vec<&'g Gap<'a>> {
    let order = |gap: &&Gap<'_>| (Reverse(gap.interval.length()), gap.interval.start, gap.device);
    if gaps.len() > count {
        gaps.select_nth_unstable_by_key(count, order);
        gaps.truncate(count);
    }
    gaps.sort_by_key(order);
    gaps
}

/// Idle time of these causes in gaps that start during, or just after, these host calls.
pub(crate) fn idle_around_ms(gaps: &[Gap<'_>], causes: &[GapCause], calls: &CallTimes) -> f64 {
    let near_calls = |gap: &&Gap<'_>| {
        let calls = gap.call.and_then(|call| calls.get(&call.track_id()));
        calls.is_some_and(|calls| {
            calls.length_within(idle::around_start(gap.whole)).get() > 0
                || calls.length_within(gap.interval).get() > 0
        })
    };
    let these = gaps.iter().filter(|gap| causes.contains(&gap.cause)).filter(near_calls);
    these.map(|gap| gap.interval.length()).sum::<Nanos>().as_millis()
}

/// Idle time while the thread that ended the gap was inside these calls.
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

/// When each thread was inside the selected calls.
pub(crate) type CallTimes = BTreeMap<TrackId, IntervalSet>;

pub(crate) fn call_times<'c>(calls: impl IntoIterator<Item = Event<'c>>) -> CallTimes {
    let mut by_thread: BTreeMap<TrackId, Vec<Interval>> = BTreeMap::new();
    for call in calls {
        by_thread.entry(call.track_id()).or_default().push(call.interval());
    }
    by_thread.into_iter().map(|(thread, times)| (thread, IntervalSet::from_unsorted(times))).collect()
}
