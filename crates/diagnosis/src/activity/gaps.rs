//! Why was the device idle? The gaps of [`busbound_cause::idle`], summed by cause and place in the program.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use busbound_cause::idle::{self, Gap, GapCause, Gaps, Piece};
use busbound_cause::{Graph, GraphLaunches, Host};
use busbound_trace::{Event, Interval, IntervalSet, Nanos, Timestamp, TrackId};
use serde::Serialize;

use crate::activity::copies::is_on_bus;
use crate::activity::timeline::DeviceTimeline;

/// Idle time of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleCause {
    pub cause: GapCause,
    /// Gaps of the GPU's work that it is a cause of.
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
) -> Gaps<'a> {
    let launches = GraphLaunches::of(host.trace());
    let terms = idle::Terms { graph, host, launches: &launches, thread };
    // There is at most one gap after each time the device is busy, and one before.
    let room = timelines.iter().map(|line| line.busy.count() + 1).sum();
    let mut all = Gaps::with_room(host.trace(), room);
    for line in timelines {
        all.append(idle::causes(terms, line.device, &line.gaps()));
    }
    all.shrink();
    all
}

fn ends_in_bus_copy(gap: &Gap<'_>) -> bool {
    gap.work.is_some_and(|work| work.transfer().is_some_and(|transfer| is_on_bus(transfer.direction)))
}

/// Idle time by cause, most first.
pub(crate) fn idle_causes(gaps: &Gaps<'_>, host: &Host<'_>) -> Vec<IdleCause> {
    let mut sums: BTreeMap<GapCause, CauseSum> = BTreeMap::new();
    let mut index = 0;
    for (gap, pieces) in gaps.iter() {
        let before_copy = ends_in_bus_copy(&gap);
        for (i, piece) in pieces.clone().enumerate() {
            let sum = sums.entry(piece.cause).or_default();
            sum.add(index, &piece, before_copy);
            // A gap counts once for each of its causes, in however many pieces.
            if pieces.clone().take(i).all(|earlier| earlier.cause != piece.cause) {
                sum.count += 1;
            }
            index += 1;
        }
    }
    let mut causes: Vec<_> = sums.into_iter().map(|(cause, sum)| sum.answer(cause, gaps, host)).collect();
    causes.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    causes
}

/// The pieces of one cause.
#[derive(Default)]
struct CauseSum {
    /// The gaps that they are in.
    count: u64,
    total: Nanos,
    longest: Nanos,
    before_copies: Nanos,
    /// The longest pieces to look up, by index; of these, the shortest is at the top.
    located: BinaryHeap<(Reverse<Nanos>, Timestamp, usize)>,
}

impl CauseSum {
    fn add(&mut self, index: usize, piece: &Piece, before_copy: bool) {
        let length = piece.interval.length();
        self.total += length;
        self.longest = self.longest.max(length);
        if before_copy {
            self.before_copies += length;
        }
        let key = (Reverse(length), piece.interval.start, index);
        if self.located.len() < LOCATED {
            self.located.push(key);
        } else if let Some(mut top) = self.located.peek_mut().filter(|top| key < **top) {
            *top = key;
        }
    }

    fn answer(self, cause: GapCause, gaps: &Gaps<'_>, host: &Host<'_>) -> IdleCause {
        let mut places: BTreeMap<String, (u64, Nanos)> = BTreeMap::new();
        let mut longest_place = None;
        let is_located = cause != GapCause::KernelGap;
        let located = if is_located { self.located.into_sorted_vec() } else { Vec::new() };
        for (i, (Reverse(length), _, index)) in located.into_iter().enumerate() {
            let call = gaps.gap_of(&gaps.piece(index)).call;
            let Some(place) = call.and_then(|call| host.around(&call).describe()) else { continue };
            if i == 0 {
                longest_place = Some(place.clone());
            }
            let sum = places.entry(place).or_default();
            sum.0 += 1;
            sum.1 += length;
        }
        let mut places: Vec<_> = places
            .into_iter()
            .map(|(place, (count, time))| IdlePlace { place, count, ms: time.as_millis() })
            .collect();
        places.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        places.truncate(5);
        IdleCause {
            cause,
            count: self.count,
            ms: self.total.as_millis(),
            longest_ms: self.longest.as_millis(),
            longest_place,
            before_copies_ms: self.before_copies.as_millis(),
            places,
        }
    }
}

/// Idle time of these causes in gaps that start during, or just after, these host calls.
pub(crate) fn idle_around_ms(gaps: &Gaps<'_>, causes: &[GapCause], calls: &CallTimes) -> f64 {
    let near_calls = |gap: &Gap<'_>, pieces: &mut dyn Iterator<Item = Piece>| {
        let starts_near = times_of(gap, calls)
            .is_some_and(|calls| calls.length_within(idle::around_start(gap.interval)) > Nanos::ZERO);
        let calls = times_of(gap, calls).filter(|calls| calls.length_within(gap.interval) > Nanos::ZERO);
        let is_near = |piece: &Piece| {
            starts_near || calls.is_some_and(|calls| calls.length_within(piece.interval) > Nanos::ZERO)
        };
        let these = pieces.filter(|piece| causes.contains(&piece.cause) && is_near(piece));
        these.map(|piece| piece.interval.length()).sum::<Nanos>()
    };
    gaps.iter().map(|(gap, mut pieces)| near_calls(&gap, &mut pieces)).sum::<Nanos>().as_millis()
}

/// Idle time while the thread that ended the gap was inside these calls.
pub(crate) fn idle_inside_ms(gaps: &Gaps<'_>, calls: &CallTimes) -> f64 {
    // The pieces of a gap are all of it.
    let inside =
        |gap: Gap<'_>| times_of(&gap, calls).map_or(Nanos::ZERO, |calls| calls.length_within(gap.interval));
    gaps.iter().map(|(gap, _)| inside(gap)).sum::<Nanos>().as_millis()
}

/// The times of the thread that ended a gap.
fn times_of<'c>(gap: &Gap<'_>, calls: &'c CallTimes) -> Option<&'c IntervalSet> {
    calls.get(&gap.call?.track_id())
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
