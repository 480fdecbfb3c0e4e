//! Where does the time of a step go? Parts that never overlap and always sum to the whole.
//!
//! The span of a device, from its first work to its last, is split: each part takes its share of the time that earlier
//! parts left. Every moment is in exactly one part, whatever the trace contains.

use std::collections::BTreeMap;

use busbound_trace::{Interval, IntervalSet, Nanos};

use crate::activity::route::CopyRoute;
use crate::activity::timeline::DeviceTimeline;
use busbound_cause::idle::GapCause;

/// One part of a device's time. If several kinds of work overlap, the time counts for the first of them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Compute,
    /// Communication with no compute kernel running.
    Communication,
    /// Copies with no kernel running, by route.
    Copy(CopyRoute),
    /// Memsets with no kernel and no copy running.
    Memset,
    /// No work on the device, by what it waited for.
    Idle(GapCause),
}

impl Part {
    pub fn is_copy(self) -> bool {
        matches!(self, Self::Copy(_))
    }

    /// Exposed copies over the host link.
    pub fn is_bus_copy(self) -> bool {
        matches!(self, Self::Copy(route) if route.is_bus())
    }

    /// Exposed copies over the host link or between GPUs.
    pub fn is_transfer(self) -> bool {
        matches!(self, Self::Copy(route) if route.is_transfer())
    }

    pub fn is_idle(self) -> bool {
        matches!(self, Self::Idle(_))
    }
}

/// Time by part. The total is always the sum of the parts; it is not stored separately.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PartTimes {
    parts: BTreeMap<Part, Nanos>,
}

impl PartTimes {
    pub(crate) fn sum_of(&self, wanted: impl Fn(Part) -> bool) -> Nanos {
        self.parts.iter().filter(|(part, _)| wanted(**part)).map(|(_, time)| *time).sum()
    }

    pub(crate) fn span(&self) -> Nanos {
        self.sum_of(|_| true)
    }

    /// The time of a device, with what it waited for in its gaps. The pieces of gaps must not overlap each other or the work.
    pub(crate) fn of(
        timeline: &DeviceTimeline,
        gaps: impl IntoIterator<Item = (GapCause, Interval)>,
    ) -> Self {
        let busy = DeviceParts::of(timeline, []);
        let mut times = busy.times();
        let mut idle = times.parts.remove(&Part::Idle(GapCause::Unexplained)).unwrap_or_default();
        for (cause, interval) in gaps {
            times.add(Part::Idle(cause), interval.length());
            idle = idle - interval.length();
        }
        times.add(Part::Idle(GapCause::Unexplained), idle);
        times
    }

    fn add(&mut self, part: Part, time: Nanos) {
        *self.parts.entry(part).or_default() += time;
    }
}

/// The intervals of each part of one device's time.
#[derive(Debug)]
pub(crate) struct DeviceParts {
    sets: Vec<(Part, IntervalSet)>,
}

impl DeviceParts {
    /// Splits the time of a device. `gaps` says what it waited for; idle time outside of them is unexplained.
    pub(crate) fn of(
        timeline: &DeviceTimeline,
        gaps: impl IntoIterator<Item = (GapCause, Interval)>,
    ) -> Self {
        let mut cut = Cut { rest: IntervalSet::from_unsorted(timeline.hull()), sets: Vec::new() };
        cut.take(Part::Compute, &timeline.compute);
        cut.take(Part::Communication, &timeline.communication);
        for route in CopyRoute::ALL {
            cut.take(Part::Copy(route), timeline.copies_on(route));
        }
        cut.take(Part::Memset, &timeline.memsets);
        let mut by_cause: BTreeMap<GapCause, Vec<Interval>> = BTreeMap::new();
        for (cause, interval) in gaps {
            by_cause.entry(cause).or_default().push(interval);
        }
        for (cause, intervals) in by_cause {
            cut.take(Part::Idle(cause), &IntervalSet::from_unsorted(intervals));
        }
        cut.sets.push((Part::Idle(GapCause::Unexplained), cut.rest));
        Self { sets: cut.sets }
    }

    pub(crate) fn times(&self) -> PartTimes {
        self.summed(IntervalSet::length)
    }

    /// Only the time within one interval.
    pub(crate) fn times_within(&self, interval: Interval) -> PartTimes {
        self.summed(|set| set.length_within(interval))
    }

    fn summed(&self, length: impl Fn(&IntervalSet) -> Nanos) -> PartTimes {
        let mut times = PartTimes::default();
        for (part, set) in &self.sets {
            times.add(*part, length(set));
        }
        times
    }
}

/// A device's time while it is being split.
struct Cut {
    /// Time that no part has taken yet.
    rest: IntervalSet,
    sets: Vec<(Part, IntervalSet)>,
}

impl Cut {
    fn take(&mut self, part: Part, wanted: &IntervalSet) {
        if !wanted.is_empty() {
            self.sets.push((part, self.rest.intersection(wanted)));
            self.rest = self.rest.difference(wanted);
        }
    }
}

/// The time of all devices over all analyzed steps, by part. Averages per step and device are computed for display.
#[derive(Debug, Clone, PartialEq)]
pub struct StepBreakdown {
    times: PartTimes,
    devices: usize,
    /// The divisor for figures per step.
    steps: f64,
}

impl StepBreakdown {
    pub(crate) fn of(devices: &[PartTimes], steps: f64) -> Self {
        let mut times = PartTimes::default();
        for (part, time) in devices.iter().flat_map(|device| &device.parts) {
            times.add(*part, *time);
        }
        Self { times, devices: devices.len(), steps }
    }

    /// The parts with nonzero time.
    pub fn parts(&self) -> impl Iterator<Item = (Part, Nanos)> + '_ {
        self.times.parts.iter().map(|(part, time)| (*part, *time)).filter(|(_, time)| *time > Nanos::ZERO)
    }

    /// The sum of the parts.
    pub fn span(&self) -> Nanos {
        self.times.span()
    }

    /// Total time of the selected parts over all devices and steps.
    pub fn sum_of(&self, wanted: impl Fn(Part) -> bool) -> Nanos {
        self.times.sum_of(wanted)
    }

    /// Milliseconds of the selected parts, per step and device; `None` without a device.
    pub fn per_step_ms(&self, wanted: impl Fn(Part) -> bool) -> Option<f64> {
        self.averaged(self.sum_of(wanted).as_millis())
    }

    /// A total over devices and steps, per step and device; `None` without a device.
    pub(crate) fn averaged(&self, total: f64) -> Option<f64> {
        (self.devices > 0).then(|| total / self.steps / self.devices as f64)
    }

    /// Share of the span, 0 to 1; `None` if the span is zero.
    pub fn share_of(&self, wanted: impl Fn(Part) -> bool) -> Option<f64> {
        let span = self.span().as_millis();
        (span > 0.0).then(|| self.sum_of(wanted).as_millis() / span)
    }
}

#[cfg(test)]
mod tests {
    use busbound_trace::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::activity::timeline::Work;

    const CAUSES: [GapCause; 6] = [
        GapCause::Copy,
        GapCause::Launch,
        GapCause::Synchronization,
        GapCause::Input,
        GapCause::KernelGap,
        GapCause::Unexplained,
    ];

    fn interval(start: i64, length: i64) -> Interval {
        Interval::new(Timestamp::from_nanos(start), Timestamp::from_nanos(start + length))
    }

    fn any_set() -> impl Strategy<Value = IntervalSet> {
        prop::collection::vec((0..300i64, 0..30i64), 0..12).prop_map(|list| {
            IntervalSet::from_unsorted(list.into_iter().map(|(start, length)| interval(start, length)))
        })
    }

    fn any_timeline() -> impl Strategy<Value = DeviceTimeline> {
        prop::collection::vec(any_set(), 3 + CopyRoute::ALL.len()).prop_map(|mut sets| {
            let mut next = || sets.pop().unwrap_or_default();
            let work = Work {
                compute: next(),
                communication: next(),
                memsets: next(),
                routes: std::array::from_fn(|_| next()),
            };
            DeviceTimeline::of(0, work)
        })
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_span_whatever_the_gaps_say(
            timelines in prop::collection::vec(any_timeline(), 1..4),
            gaps in prop::collection::vec((0..CAUSES.len(), 0..320i64, 0..60i64), 0..20),
            cut in (0..300i64, 0..100i64),
        ) {
            let gaps: Vec<_> = gaps.into_iter().map(|(cause, start, length)| (CAUSES[cause], interval(start, length))).collect();
            let parts: Vec<DeviceParts> =
                timelines.iter().map(|timeline| DeviceParts::of(timeline, gaps.iter().copied())).collect();
            let times: Vec<PartTimes> = parts.iter().map(DeviceParts::times).collect();
            let spans = timelines.iter().filter_map(DeviceTimeline::hull).map(Interval::length);
            let breakdown = StepBreakdown::of(&times, 3.0);
            prop_assert_eq!(breakdown.span(), spans.sum::<Nanos>());
            let window = interval(cut.0, cut.1);
            for ((timeline, parts), times) in timelines.iter().zip(&parts).zip(&times) {
                let hull = IntervalSet::from_unsorted(timeline.hull());
                prop_assert_eq!(parts.times_within(window).span(), hull.length_within(window));
                prop_assert_eq!(times.sum_of(|part| !part.is_idle()), timeline.busy.length());
                prop_assert_eq!(times.sum_of(|part| part == Part::Compute), timeline.compute.length());
                let exposed = timeline.exposed_copies(&timeline.copies);
                prop_assert_eq!(times.sum_of(Part::is_copy), exposed.length());
                let bus = timeline.exposed_copies(&timeline.bus_copies);
                prop_assert_eq!(times.sum_of(Part::is_bus_copy), bus.length());
            }
        }
    }

    #[test]
    fn gaps_are_counted_by_cause_and_the_rest_is_unexplained() {
        let set = |intervals: &[(i64, i64)]| {
            IntervalSet::from_unsorted(intervals.iter().map(|&(start, length)| interval(start, length)))
        };
        let work = Work { compute: set(&[(0, 10), (30, 10), (60, 10)]), ..Work::default() };
        let timeline = DeviceTimeline::of(0, work);
        let times = DeviceParts::of(&timeline, [(GapCause::Input, interval(10, 20))]).times();
        let of = |wanted: Part| times.sum_of(|part| part == wanted).get();
        assert_eq!(of(Part::Compute), 30);
        assert_eq!(of(Part::Idle(GapCause::Input)), 20);
        assert_eq!(of(Part::Idle(GapCause::Unexplained)), 20);
    }
}
