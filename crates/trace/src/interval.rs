//! When was something active? Sets of time intervals with union, intersection and difference.
//!
//! All figures about overlap, exposed time and idle time are computed from these.

use crate::model::time::{Nanos, Timestamp};

/// A time interval; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Interval {
    pub fn new(start: Timestamp, end: Timestamp) -> Self {
        Self { start, end }
    }

    pub fn length(self) -> Nanos {
        if self.end > self.start { self.end - self.start } else { Nanos::ZERO }
    }

    pub fn contains(self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }

    /// From the earlier start to the later end.
    pub fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// What both cover. Empty, or with its end before its start, if they do not overlap.
    pub fn intersect(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }
}

/// Nanoseconds.
impl From<std::ops::Range<i64>> for Interval {
    fn from(nanos: std::ops::Range<i64>) -> Self {
        Self::new(Timestamp::from_nanos(nanos.start), Timestamp::from_nanos(nanos.end))
    }
}

/// A set of points in time, as sorted, disjoint, non-empty intervals that do not touch each other.
///
/// ```
/// use busbound_trace::{Interval, IntervalSet, Timestamp};
/// let at = Timestamp::from_nanos;
/// let kernels = IntervalSet::from_unsorted([Interval::new(at(0), at(10)), Interval::new(at(5), at(20))]);
/// let copies = IntervalSet::from_unsorted([Interval::new(at(15), at(30))]);
/// assert_eq!(kernels.length().get(), 20);
/// assert_eq!(kernels.intersection(&copies).length().get(), 5);
/// assert_eq!(copies.difference(&kernels).length().get(), 10);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet {
    intervals: Vec<Interval>,
}

impl IntervalSet {
    /// The union of any intervals.
    pub fn from_unsorted(intervals: impl IntoIterator<Item = Interval>) -> Self {
        let mut all: Vec<_> = intervals.into_iter().filter(|i| i.end > i.start).collect();
        // Streams are already sorted, so this mostly merges a few sorted runs.
        if !all.is_sorted_by_key(|i| i.start) {
            all.sort_by_key(|i| i.start);
        }
        // Joins in place what overlaps or touches.
        let mut count = 0;
        for at in 0..all.len() {
            let next = all[at];
            match all[..count].last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => {
                    all[count] = next;
                    count += 1;
                }
            }
        }
        all.truncate(count);
        all.shrink_to_fit();
        Self { intervals: all }
    }

    /// Adds an interval that does not begin before the last one added, as is the case for the events of a track.
    pub fn push(&mut self, interval: Interval) {
        debug_assert!(self.intervals.last().is_none_or(|last| last.start <= interval.start));
        if interval.end <= interval.start {
            return;
        }
        match self.intervals.last_mut() {
            Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
            _ => self.intervals.push(interval),
        }
    }

    /// Frees the memory that no interval uses.
    pub fn shrink(&mut self) {
        self.intervals.shrink_to_fit();
    }

    pub fn length(&self) -> Nanos {
        self.intervals.iter().map(|i| i.length()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// How many separate intervals it has.
    pub fn count(&self) -> usize {
        self.intervals.len()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Interval> + '_ {
        self.intervals.iter().copied()
    }

    /// From the first start to the last end.
    pub fn hull(&self) -> Option<Interval> {
        Some(Interval::new(self.intervals.first()?.start, self.intervals.last()?.end))
    }

    pub fn union(&self, other: &Self) -> Self {
        let mut set = Self::default();
        let (mut a, mut b) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if y.start < x.start => b.next(),
                (Some(_), _) => a.next(),
                (None, _) => b.next(),
            };
            match next {
                Some(interval) => set.push(interval),
                None => {
                    set.shrink();
                    return set;
                }
            }
        }
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let mut shared = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(&a), Some(&b)) = (self.intervals.get(i), other.intervals.get(j)) {
            let both = a.intersect(b);
            if both.end > both.start {
                shared.push(both);
            }
            if a.end < b.end { i += 1 } else { j += 1 }
        }
        Self { intervals: shared }
    }

    /// What is in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        let mut j = 0;
        for interval in self.iter() {
            while other.intervals.get(j).is_some_and(|o| o.end <= interval.start) {
                j += 1;
            }
            let mut from = interval.start;
            let mut k = j;
            while let Some(o) = other.intervals.get(k).filter(|o| o.start < interval.end) {
                if o.start > from {
                    rest.push(Interval::new(from, o.start));
                }
                from = from.max(o.end);
                k += 1;
            }
            if from < interval.end {
                rest.push(Interval::new(from, interval.end));
            }
        }
        Self { intervals: rest }
    }

    /// The part of this set that is within one interval.
    pub fn within(&self, window: Interval) -> Self {
        let from = self.intervals.partition_point(|i| i.end <= window.start);
        let inside = self.intervals[from..].iter().take_while(|i| i.start < window.end);
        let parts = inside.map(|i| i.intersect(window)).filter(|part| part.end > part.start);
        Self { intervals: parts.collect() }
    }

    /// Length of the part within one interval, without building the set.
    pub fn length_within(&self, window: Interval) -> Nanos {
        let from = self.intervals.partition_point(|i| i.end <= window.start);
        let inside = self.intervals[from..].iter().take_while(|i| i.start < window.end);
        inside.map(|i| i.intersect(window).length()).sum()
    }

    /// Whether any part of the set is within one interval.
    pub fn touches(&self, window: Interval) -> bool {
        self.last_within(window).is_some()
    }

    /// When the last part within one interval ends.
    pub fn last_within(&self, window: Interval) -> Option<Timestamp> {
        self.parts_from_end(window).next().map(|part| part.end)
    }

    /// What the set leaves free of an interval, latest first.
    pub fn free_from_end(&self, window: Interval) -> impl Iterator<Item = Interval> {
        let before = Interval::new(window.start, window.start);
        let mut end = window.end;
        self.parts_from_end(window).chain([before]).filter_map(move |part| {
            let free = Interval::new(part.end, end);
            end = part.start;
            (free.end > free.start).then_some(free)
        })
    }

    fn parts_from_end(&self, window: Interval) -> impl Iterator<Item = Interval> {
        let upto = self.intervals.partition_point(|i| i.start < window.end);
        let inside = self.intervals[..upto].iter().rev().take_while(move |i| i.end > window.start);
        inside.map(move |i| i.intersect(window)).filter(|part| part.end > part.start)
    }

    /// For questions about intervals in the order of time, from `at` on.
    pub fn cursor(&self, at: Timestamp) -> IntervalCursor<'_> {
        IntervalCursor { rest: &self.intervals[self.intervals.partition_point(|i| i.end <= at)..] }
    }

    pub fn covers(&self, at: Timestamp) -> bool {
        let next = self.intervals.partition_point(|i| i.end <= at);
        self.intervals.get(next).is_some_and(|i| i.contains(at))
    }
}

/// A position in a set: each question continues where the last one ended, so that none of them searches.
#[derive(Debug, Clone)]
pub struct IntervalCursor<'s> {
    rest: &'s [Interval],
}

impl IntervalCursor<'_> {
    /// The parts of the set within a window, which must not begin before the last one did.
    pub fn within(&mut self, window: Interval) -> impl Iterator<Item = Interval> {
        while self.rest.first().is_some_and(|i| i.end <= window.start) {
            self.rest = &self.rest[1..];
        }
        let inside = self.rest.iter().take_while(move |i| i.start < window.end);
        inside.map(move |i| i.intersect(window)).filter(|part| part.end > part.start)
    }

    pub fn length_within(&mut self, window: Interval) -> Nanos {
        self.within(window).map(Interval::length).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAYS: i64 = 200;

    /// Intervals on a short time line, so that membership can be counted point by point.
    fn any_intervals() -> impl Strategy<Value = Vec<Interval>> {
        let one = (0..DAYS, 0..20i64).prop_map(|(start, length)| {
            Interval::new(Timestamp::from_nanos(start), Timestamp::from_nanos((start + length).min(DAYS)))
        });
        prop::collection::vec(one, 0..20)
    }

    fn points(intervals: &[Interval]) -> Vec<bool> {
        (0..DAYS).map(|t| intervals.iter().any(|i| i.contains(Timestamp::from_nanos(t)))).collect()
    }

    fn set_points(set: &IntervalSet) -> Vec<bool> {
        (0..DAYS).map(|t| set.covers(Timestamp::from_nanos(t))).collect()
    }

    fn is_normal(set: &IntervalSet) -> bool {
        set.intervals.iter().all(|i| i.start < i.end)
            && set.intervals.windows(2).all(|w| w[0].end < w[1].start)
    }

    proptest! {
        #[test]
        fn sets_match_a_point_by_point_count(a in any_intervals(), b in any_intervals(), from in 0..DAYS, len in 0..DAYS) {
            let (pa, pb) = (points(&a), points(&b));
            let (sa, sb) = (IntervalSet::from_unsorted(a), IntervalSet::from_unsorted(b));
            prop_assert_eq!(&set_points(&sa), &pa);
            prop_assert_eq!(sa.length().get() as usize, pa.iter().filter(|p| **p).count());
            let cases = [
                (sa.union(&sb), pa.iter().zip(&pb).map(|(a, b)| *a || *b).collect::<Vec<_>>()),
                (sa.intersection(&sb), pa.iter().zip(&pb).map(|(a, b)| *a && *b).collect()),
                (sa.difference(&sb), pa.iter().zip(&pb).map(|(a, b)| *a && !*b).collect()),
            ];
            for (set, expected) in cases {
                prop_assert_eq!(&set_points(&set), &expected);
                prop_assert!(is_normal(&set), "{:?}", set);
            }
            let window = Interval::new(Timestamp::from_nanos(from), Timestamp::from_nanos(from + len));
            let only = IntervalSet::from_unsorted([window]);
            prop_assert_eq!(sa.within(window), sa.intersection(&only));
            prop_assert_eq!(sa.length_within(window), sa.intersection(&only).length());
            let last = sa.within(window).hull().map(|hull| hull.end);
            prop_assert_eq!((sa.last_within(window), sa.touches(window)), (last, last.is_some()));
            prop_assert!(sa.free_from_end(window).eq(only.difference(&sa).iter().rev()));
            let mut cursor = sa.cursor(Timestamp::from_nanos(from));
            for later in from..from + len {
                let window = Interval::new(Timestamp::from_nanos(later), window.end);
                prop_assert_eq!(cursor.length_within(window), sa.length_within(window));
            }
        }
    }
}
