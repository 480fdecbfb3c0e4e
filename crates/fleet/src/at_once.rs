//! Do ranks use a shared PCIe uplink at the same time? By their aligned clocks, and only as far as the clocks' error allows.

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{LaneTimes, RankLanes};
use busbound_trace::{Direction, Interval, IntervalSet, Nanos, Timestamp};
use serde::Serialize;

use crate::align::Clock;

/// The time in which two or more ranks use an uplink at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtOnce {
    pub what: Meeting,
    /// The time that the lanes of all ranks cover.
    pub compared_ms: f64,
    /// By the clocks as they are aligned.
    pub ms: f64,
    /// If the clocks are off by their error, at least this much …
    pub low_ms: f64,
    /// … and at most this much.
    pub high_ms: f64,
    /// The time in which at least one of the ranks copies.
    pub any_ms: f64,
    /// Whether the clocks are good enough to say it.
    pub decided: bool,
}

/// What meets on an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Meeting {
    /// Copies to the GPUs of two or more ranks.
    H2dCopies,
    /// Copies from the GPUs of two or more ranks.
    D2hCopies,
    /// Host copies of one rank and a collective of another.
    CopiesAndCollectives,
}

impl Meeting {
    fn of(direction: Direction) -> Self {
        match direction {
            Direction::DeviceToHost => Self::D2hCopies,
            _ => Self::H2dCopies,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::H2dCopies => "H2D copies of two or more of them run",
            Self::D2hCopies => "D2H copies of two or more of them run",
            Self::CopiesAndCollectives => "host copies of one of them and a collective of another run",
        }
    }
}

/// One rank on the shared clock.
struct Placed {
    h2d: Bounded,
    d2h: Bounded,
    collectives: Bounded,
    covered: Interval,
}

/// Times by the aligned clock; those that are certain, and those that are possible.
struct Bounded {
    expected: IntervalSet,
    least: IntervalSet,
    most: IntervalSet,
}

/// The time in common decides if its range is at most this share of it, …
const DECIDED: f64 = 0.5;
/// … or at most this share of the time in which any of them copies.
const SMALL: f64 = 0.1;

/// Ranks that share an uplink, with their clocks. `through` is whether collectives cross the uplink. Empty if a clock is unknown, or the
/// ranks have no time in common.
pub(crate) fn at_once(ranks: &[(&RankLanes, Clock)], through: bool) -> Vec<AtOnce> {
    let placed: Vec<Placed> = ranks.iter().map(|(lanes, clock)| Placed::of(lanes, *clock)).collect();
    let covered = placed.iter().map(|rank| rank.covered).reduce(Interval::intersect);
    let Some(covered) = covered.filter(|time| time.length().get() > 0 && placed.len() > 1) else {
        return Vec::new();
    };
    let copies = [Direction::HostToDevice, Direction::DeviceToHost].map(|direction| {
        let of = |bound: fn(&Bounded) -> &IntervalSet| {
            let lanes: Vec<&IntervalSet> = placed.iter().map(|rank| bound(rank.copies(direction))).collect();
            twice(&lanes).length_within(covered)
        };
        let lanes = || placed.iter().map(|rank| &rank.copies(direction).expected);
        // Whatever the clocks are, two at once take at most half of what all take one after the other.
        let most = 0.5 * lanes().map(|lane| lane.length_within(covered).as_millis()).sum::<f64>();
        AtOnce::of(Meeting::of(direction), covered, (union(lanes()).length_within(covered), most), of)
    });
    let collectives = through.then(|| {
        let of = |bound: fn(&Bounded) -> &IntervalSet| met(&placed, bound).length_within(covered);
        let lanes = || placed.iter().flat_map(|rank| [&rank.h2d.expected, &rank.d2h.expected]);
        let most = lanes().map(|lane| lane.length_within(covered).as_millis()).sum::<f64>();
        let any = union(lanes()).length_within(covered);
        AtOnce::of(Meeting::CopiesAndCollectives, covered, (any, most), of)
    });
    copies.into_iter().chain(collectives).filter(|meeting| meeting.any_ms > 0.0).collect()
}

impl AtOnce {
    /// `any` is the time in which any of them copies, `most` the milliseconds that can be in common at all.
    fn of(
        what: Meeting,
        covered: Interval,
        (any, most): (Nanos, f64),
        of: impl Fn(fn(&Bounded) -> &IntervalSet) -> Nanos,
    ) -> Self {
        let ms = of(|bounded| &bounded.expected).as_millis();
        let low_ms = of(|bounded| &bounded.least).as_millis();
        let high_ms = of(|bounded| &bounded.most).as_millis().min(most).max(ms);
        let compared_ms = covered.length().as_millis();
        let any_ms = any.as_millis();
        let decided = high_ms - low_ms <= (DECIDED * ms).max(SMALL * any_ms);
        Self { what, compared_ms, ms, low_ms, high_ms, any_ms, decided }
    }

    /// The answer in a sentence.
    pub(crate) fn statement(&self) -> String {
        let percent = |ms: f64| 100.0 * ms / self.compared_ms;
        let what = self.what.describe();
        let compared = milliseconds(self.compared_ms);
        if !self.decided {
            return format!(
                "How long {what} at the same time is inconclusive: by the error of their clocks {} to {} of {compared}.",
                milliseconds(self.low_ms),
                milliseconds(self.high_ms)
            );
        }
        format!(
            "By their aligned clocks, {what} at the same time for {:.0}% of {compared} ({:.0}–{:.0}% by the clocks' error).",
            percent(self.ms),
            percent(self.low_ms),
            percent(self.high_ms)
        )
    }
}

impl Placed {
    fn of(lanes: &RankLanes, clock: Clock) -> Self {
        let lane = |times: &LaneTimes| Bounded::of(times, clock);
        let none = LaneTimes::default();
        // What runs on the host reaches the GPU as copies.
        let collectives = if lanes.collectives_on_host { &none } else { &lanes.collectives };
        let at = |own: i64| Timestamp::from_nanos(clock.shared(own) as i64);
        Self {
            h2d: lane(&lanes.h2d),
            d2h: lane(&lanes.d2h),
            collectives: lane(collectives),
            covered: Interval::new(at(lanes.from_ns), at(lanes.until_ns)),
        }
    }

    fn copies(&self, direction: Direction) -> &Bounded {
        if direction == Direction::DeviceToHost { &self.d2h } else { &self.h2d }
    }
}

impl Bounded {
    fn of(times: &LaneTimes, clock: Clock) -> Self {
        let moved = |by: i64| {
            let times =
                times.iter().map(|(start, end)| (clock.shared(start) as i64, clock.shared(end) as i64));
            let wider = times.filter(move |(start, end)| end + by > start - by).map(move |(start, end)| {
                Interval::new(Timestamp::from_nanos(start - by), Timestamp::from_nanos(end + by))
            });
            IntervalSet::from_unsorted(wider)
        };
        let error = clock.error_ns as i64;
        Self { expected: moved(0), least: moved(-error), most: moved(error) }
    }
}

fn union<'a>(sets: impl Iterator<Item = &'a IntervalSet>) -> IntervalSet {
    IntervalSet::from_unsorted(sets.flat_map(IntervalSet::iter))
}

/// Where two or more of these sets overlap.
fn twice(sets: &[&IntervalSet]) -> IntervalSet {
    let (mut once, mut twice) = (IntervalSet::default(), IntervalSet::default());
    for set in sets {
        twice = twice.union(&once.intersection(set));
        once = once.union(set);
    }
    twice
}

/// Where one rank copies while another one is in a collective.
fn met(ranks: &[Placed], bound: fn(&Bounded) -> &IntervalSet) -> IntervalSet {
    let of_rank = |(at, rank): (usize, &Placed)| {
        let copies = bound(&rank.h2d).union(bound(&rank.d2h));
        let others = ranks.iter().enumerate().filter(|(other, _)| *other != at);
        copies.intersection(&union(others.map(|(_, other)| bound(&other.collectives))))
    };
    ranks.iter().enumerate().map(of_rank).fold(IntervalSet::default(), |all, of| all.union(&of))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Copies of `copy` every 10 ms for a second, beginning `after` the first rank's, and collectives in the last 4 ms of each 10.
    fn lanes(after: i64, copy: i64) -> RankLanes {
        let every = |at: i64, length: i64| LaneTimes {
            starts_ns: (0..100).map(|number| number * 10 * MS + at).collect(),
            durations_ns: vec![length; 100],
        };
        RankLanes {
            until_ns: 1000 * MS,
            h2d: every(after, copy),
            collectives: every(6 * MS, 4 * MS),
            ..RankLanes::default()
        }
    }

    fn meetings(ranks: &[(i64, i64, i64)], through: bool) -> Vec<AtOnce> {
        let lanes: Vec<(RankLanes, Clock)> = ranks
            .iter()
            .map(|&(after, copy, error)| (lanes(after, copy), Clock::of_error(error as f64)))
            .collect();
        at_once(&lanes.iter().map(|(lanes, clock)| (lanes, *clock)).collect::<Vec<_>>(), through)
    }

    #[test]
    fn copies_at_the_same_time_are_counted_once_for_all_ranks() {
        let found = meetings(&[(0, 4 * MS, 0), (2 * MS, 4 * MS, 10_000), (2 * MS, 4 * MS, 10_000)], false);
        let [copies] = found.as_slice() else { panic!("{found:?}") };
        // From 2 to 6 ms of each 10.
        assert_eq!((copies.what, copies.ms, copies.compared_ms), (Meeting::H2dCopies, 400.0, 1000.0));
        assert!(copies.decided && copies.low_ms < 400.0 && copies.high_ms > 400.0, "{copies:?}");
        // All three together copy for 12 ms in each 10: at most half of that is in common.
        assert!(copies.high_ms < 600.0, "{copies:?}");
        assert_eq!(
            copies.statement(),
            "By their aligned clocks, H2D copies of two or more of them run at the same time for 40% of 1.00 s (40–40% by the clocks' error)."
        );
    }

    #[test]
    fn copies_one_after_the_other_do_not_meet() {
        let found = meetings(&[(0, 2 * MS, 0), (4 * MS, 2 * MS, 100_000)], false);
        assert_eq!((found[0].ms, found[0].high_ms, found[0].decided), (0.0, 0.0, true));
    }

    /// Copies of 0.2 ms, and clocks that are known to 1 ms.
    #[test]
    fn clocks_that_are_less_certain_than_copies_are_long_decide_nothing() {
        let found = meetings(&[(0, MS / 5, 0), (MS / 10, MS / 5, MS)], false);
        assert!(!found[0].decided, "{found:?}");
        // No more than one copy lasts.
        assert_eq!((found[0].low_ms, found[0].high_ms), (0.0, 20.0));
        let text = found[0].statement();
        assert!(text.contains("is inconclusive: by the error of their clocks"), "{text}");
    }

    #[test]
    fn collectives_count_only_where_they_cross_the_uplink() {
        let ranks = [(5 * MS, 3 * MS, 0), (0, 2 * MS, 0)];
        assert_eq!(meetings(&ranks, false).len(), 1);
        let found = meetings(&ranks, true);
        // The copies of the first rank run with a collective from 6 to 8 ms; those of the second one with none.
        assert_eq!((found[1].what, found[1].ms), (Meeting::CopiesAndCollectives, 200.0));
    }
}
