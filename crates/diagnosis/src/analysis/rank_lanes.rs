//! When did this rank copy, exchange data and compute? The beginning of its steps, to put ranks side by side on one clock.

use busbound_cause::CollectiveOp;
use busbound_trace::{Direction, EventKind, Interval, IntervalSet, Nanos, Place, Timestamp};
use serde::{Deserialize, Serialize};

use crate::activity::collectives::ON_HOST;
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;

/// What one rank does at which times, on its own clock. Empty if its process uses several GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankLanes {
    /// The lists cover the time from here, in nanoseconds, …
    pub from_ns: i64,
    /// … to here: the beginning of a long recording.
    pub until_ns: i64,
    /// Copies from host memory to the GPU.
    pub h2d: LaneTimes,
    /// Copies from the GPU to host memory.
    pub d2h: LaneTimes,
    /// Collectives on the GPU, or on the host if there are none.
    pub collectives: LaneTimes,
    /// Whether these collectives run on the host: then they reach the GPU as copies.
    pub collectives_on_host: bool,
    /// Kernels without communication. Without a GPU, operators on the host.
    pub compute: LaneTimes,
}

/// Times of one kind, in order and apart from each other; both lists have the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneTimes {
    pub starts_ns: Vec<i64>,
    pub durations_ns: Vec<i64>,
}

/// Times of each kind that are kept: 20 bytes each in JSON.
const KEPT: usize = 256;
/// Copies and collectives that are closer are one.
const SAME: Nanos = Nanos::new(5_000);
/// Kernels that are closer are drawn as one, or if the gap is below this share of the time per kept one.
const SAME_COMPUTE: Nanos = Nanos::new(20_000);
const INVISIBLE: f64 = 0.002;

impl LaneTimes {
    fn of(times: &IntervalSet) -> Self {
        Self {
            starts_ns: times.iter().map(|time| time.start.as_nanos()).collect(),
            durations_ns: times.iter().map(|time| time.length().get()).collect(),
        }
    }

    /// Start and end of each.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.starts_ns.iter().zip(&self.durations_ns).map(|(&at, &for_ns)| (at, at.saturating_add(for_ns)))
    }

    pub fn is_empty(&self) -> bool {
        self.starts_ns.is_empty()
    }
}

impl RankLanes {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.until_ns <= self.from_ns
    }
}

/// Of a trace with one device, or without any.
pub(crate) fn rank_lanes(facts: &Facts<'_>) -> RankLanes {
    if facts.timelines.len() > 1 {
        return RankLanes::default();
    }
    let (communication, compute) = match facts.timelines.first() {
        Some(timeline) => (timeline.communication.clone(), timeline.compute.clone()),
        None => (IntervalSet::default(), operators(facts)),
    };
    let collectives_on_host = communication.is_empty();
    let collectives = if collectives_on_host { exchanges_on_host(facts) } else { communication };
    let copies = |direction: Direction| {
        let of = facts.copies.iter().filter(|copy| copy.transfer.direction == direction);
        merged(&IntervalSet::from_unsorted(of.map(Copy::interval)), SAME)
    };
    let (h2d, d2h) = (copies(Direction::HostToDevice), copies(Direction::DeviceToHost));
    let collectives = merged(&collectives, SAME);
    let Some(whole) =
        [&h2d, &d2h, &collectives, &compute].into_iter().filter_map(IntervalSet::hull).reduce(Interval::hull)
    else {
        return RankLanes::default();
    };
    let start = facts.window.starts.first().map_or(whole.start, |step| (*step).min(whole.start));
    let ends = [&h2d, &d2h, &collectives].map(|lane| end_of_kept(lane, whole.end));
    let until = ends.into_iter().min().unwrap_or(whole.end);
    let within = Interval::new(start, until);
    let invisible = Nanos::new((INVISIBLE * within.length().get() as f64) as i64);
    let compute = merged(&compute.within(within), SAME_COMPUTE.max(invisible));
    // Programs with many streams of short kernels have more gaps than can be seen.
    let until = until.min(end_of_kept(&compute, until));
    let within = Interval::new(start, until);
    let lane = |times: &IntervalSet| LaneTimes::of(&times.within(within));
    RankLanes {
        from_ns: start.as_nanos(),
        until_ns: until.as_nanos(),
        h2d: lane(&h2d),
        d2h: lane(&d2h),
        collectives: lane(&collectives),
        collectives_on_host,
        compute: lane(&compute),
    }
}

/// Where the last time begins that is too many; `end` if all are kept.
fn end_of_kept(times: &IntervalSet, end: Timestamp) -> Timestamp {
    times.iter().nth(KEPT).map_or(end, |one| one.start)
}

/// Times that are closer than this are one.
fn merged(times: &IntervalSet, gap: Nanos) -> IntervalSet {
    let mut all: Vec<Interval> = Vec::new();
    for time in times.iter() {
        match all.last_mut().filter(|last| time.start - last.end < gap) {
            Some(last) => *last = last.hull(time),
            None => all.push(time),
        }
    }
    IntervalSet::from_unsorted(all)
}

fn operators(facts: &Facts<'_>) -> IntervalSet {
    let works = facts.trace.events().filter(|event| {
        event.kind() == EventKind::Operator
            && matches!(event.place(), Place::Thread { .. })
            && !event.name().starts_with("c10d::")
    });
    IntervalSet::from_unsorted(works.map(|event| event.interval()))
}

fn exchanges_on_host(facts: &Facts<'_>) -> IntervalSet {
    let exchanges = facts.trace.events().filter(|event| {
        event.kind() == EventKind::Annotation
            && matches!(event.place(), Place::Thread { .. })
            && event.name().strip_prefix(ON_HOST).is_some_and(|of| CollectiveOp::named(of).synchronizes())
    });
    IntervalSet::from_unsorted(exchanges.map(|event| event.interval()))
}
