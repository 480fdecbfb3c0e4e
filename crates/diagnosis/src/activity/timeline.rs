//! What was each device doing, and what ran at the same time?

use std::collections::BTreeMap;

use busbound_trace::{Direction, Event, EventKind, Interval, IntervalSet, Nanos, Place, Timestamp, Trace};
use serde::Serialize;

use crate::activity::route::CopyRoute;
use busbound_cause::CollectiveNames;

/// The time that figures cover.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Judged {
    /// The steps that the figures cover, if annotations mark them.
    pub(crate) steps: Option<Interval>,
    /// Nothing after this counts.
    pub(crate) until: Option<Timestamp>,
}

impl Judged {
    /// The part of an interval that counts.
    fn part_of(self, interval: Interval) -> Option<Interval> {
        match self.until {
            Some(until) if interval.start >= until => None,
            Some(until) => Some(Interval::new(interval.start, interval.end.min(until))),
            None => Some(interval),
        }
    }
}

/// When one device did what.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceTimeline {
    pub(crate) device: i32,
    pub(crate) compute: IntervalSet,
    pub(crate) communication: IntervalSet,
    /// Compute and communication.
    pub(crate) kernels: IntervalSet,
    /// By route, in the order of [`CopyRoute::ALL`].
    routes: [IntervalSet; CopyRoute::ALL.len()],
    /// Copies on any route.
    pub(crate) copies: IntervalSet,
    /// Copies over the host link, in either direction.
    pub(crate) bus_copies: IntervalSet,
    pub(crate) memsets: IntervalSet,
    pub(crate) busy: IntervalSet,
    judged: Judged,
}

impl DeviceTimeline {
    /// From the first to the last work, and all of the steps.
    pub(crate) fn hull(&self) -> Option<Interval> {
        let busy = self.busy.hull()?;
        Some(self.judged.steps.map_or(busy, |steps| steps.hull(busy)))
    }

    /// Times without work.
    pub(crate) fn gaps(&self) -> IntervalSet {
        match self.hull() {
            Some(hull) => {
                let mut gaps = IntervalSet::from_unsorted([hull]).difference(&self.busy);
                gaps.shrink();
                gaps
            }
            None => IntervalSet::default(),
        }
    }

    pub(crate) fn copies_on(&self, route: CopyRoute) -> &IntervalSet {
        &self.routes[route as usize]
    }

    /// Copies are exposed while no kernel runs on their device.
    pub(crate) fn exposed_copies(&self, copies: &IntervalSet) -> IntervalSet {
        let exposed = copies.difference(&self.kernels);
        if self.judged.until.is_none() {
            return exposed;
        }
        let counted = exposed.hull().and_then(|all| self.judged.part_of(all));
        exposed.intersection(&IntervalSet::from_unsorted(counted))
    }

    /// The exposed part of one copy.
    pub(crate) fn exposed_copy(&self, copy: Interval) -> Nanos {
        self.judged.part_of(copy).map_or(Nanos::ZERO, |copy| copy.length() - self.kernels.length_within(copy))
    }

    /// The exposed part of one communication kernel: communication is exposed while no compute kernel runs on its device.
    pub(crate) fn exposed_communication(&self, kernel: Interval) -> Nanos {
        kernel.length() - self.compute.length_within(kernel)
    }

    pub(crate) fn of(device: i32, work: Work) -> Self {
        let Work { compute, communication, routes, memsets } = work;
        let [h2d, d2h, peer, within, unplaced] = &routes;
        let bus_copies = h2d.union(d2h);
        let copies = bus_copies.union(peer).union(within).union(unplaced);
        let kernels = compute.union(&communication);
        let busy = kernels.union(&copies).union(&memsets);
        Self {
            device,
            compute,
            communication,
            kernels,
            routes,
            copies,
            bus_copies,
            memsets,
            busy,
            judged: Judged::default(),
        }
    }
}

/// Work of one stream, or of the streams of one device.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) compute: IntervalSet,
    pub(crate) communication: IntervalSet,
    /// Copies, in the order of [`CopyRoute::ALL`].
    pub(crate) routes: [IntervalSet; CopyRoute::ALL.len()],
    pub(crate) memsets: IntervalSet,
}

impl Work {
    fn add(&mut self, event: &Event<'_>, interval: Interval, communication: &CollectiveNames) {
        match event.kind() {
            EventKind::Kernel if communication.contains(event.name_id()) => self.communication.push(interval),
            EventKind::Kernel => self.compute.push(interval),
            EventKind::Memset => self.memsets.push(interval),
            _ => {
                let direction = event.transfer().map_or(Direction::Unknown, |transfer| transfer.direction);
                self.routes[CopyRoute::of(direction) as usize].push(interval);
            }
        }
    }

    fn union(&self, other: &Self) -> Self {
        Self {
            compute: self.compute.union(&other.compute),
            communication: self.communication.union(&other.communication),
            routes: std::array::from_fn(|route| self.routes[route].union(&other.routes[route])),
            memsets: self.memsets.union(&other.memsets),
        }
    }
}

/// The work of all streams. In pairs of equal size: one after another takes quadratic time if there are many.
fn united(mut streams: Vec<Work>) -> Work {
    while streams.len() > 1 {
        let mut left = streams.into_iter();
        let pairs = std::iter::from_fn(|| {
            let one = left.next()?;
            Some(match left.next() {
                Some(other) => one.union(&other),
                None => one,
            })
        });
        streams = pairs.collect();
    }
    streams.pop().unwrap_or_default()
}

/// The devices of a trace. The time of each includes all of `judged`.
pub(crate) fn timelines(
    trace: &Trace,
    communication: &CollectiveNames,
    judged: Judged,
) -> Vec<DeviceTimeline> {
    let mut devices: BTreeMap<i32, Vec<Work>> = BTreeMap::new();
    for stream in trace.streams() {
        let Place::Stream { device, .. } = stream.place() else { continue };
        let mut of_stream = None;
        for event in stream.events().filter(|event| event.kind().is_gpu_work()) {
            let Some(counted) = judged.part_of(event.interval()) else { continue };
            of_stream.get_or_insert_with(Work::default).add(&event, counted, communication);
        }
        let Some(mut of_stream) = of_stream else { continue };
        of_stream.compute.shrink();
        devices.entry(device).or_default().push(of_stream);
    }
    let timeline =
        |(device, streams)| DeviceTimeline { judged, ..DeviceTimeline::of(device, united(streams)) };
    devices.into_iter().map(timeline).collect()
}

/// From the first work of any device to the last.
pub(crate) fn whole(timelines: &[DeviceTimeline]) -> Option<Interval> {
    timelines.iter().filter_map(DeviceTimeline::hull).reduce(Interval::hull)
}

/// The exposed part of copies on one device.
pub(crate) fn exposed(timelines: &[DeviceTimeline], device: i32, copies: &IntervalSet) -> Nanos {
    match timelines.iter().find(|timeline| timeline.device == device) {
        Some(timeline) => timeline.exposed_copies(copies).length(),
        None => copies.length(),
    }
}

/// How long two kinds of work overlapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overlaps {
    pub comm_compute_ms: f64,
    pub copy_compute_ms: f64,
    pub copy_comm_ms: f64,
    pub host_copy_compute_ms: f64,
    pub host_copy_comm_ms: f64,
    pub memset_compute_ms: f64,
    pub memset_copy_ms: f64,
    pub memset_comm_ms: f64,
    /// Percentage of communication overlapped with compute; `null` without communication.
    pub comm_compute_pct_of_comm: Option<f64>,
}

impl DeviceTimeline {
    pub(crate) fn overlaps(&self) -> Overlaps {
        let shared = |a: &IntervalSet, b: &IntervalSet| a.intersection(b).length().as_millis();
        Overlaps {
            comm_compute_ms: shared(&self.communication, &self.compute),
            copy_compute_ms: shared(&self.copies, &self.compute),
            copy_comm_ms: shared(&self.copies, &self.communication),
            host_copy_compute_ms: shared(&self.bus_copies, &self.compute),
            host_copy_comm_ms: shared(&self.bus_copies, &self.communication),
            memset_compute_ms: shared(&self.memsets, &self.compute),
            memset_copy_ms: shared(&self.memsets, &self.copies),
            memset_comm_ms: shared(&self.memsets, &self.communication),
            comm_compute_pct_of_comm: None,
        }
        .with_share(self.communication.length().as_millis())
    }
}

impl Overlaps {
    fn with_share(mut self, comm_ms: f64) -> Self {
        self.comm_compute_pct_of_comm = (comm_ms > 0.0).then(|| 100.0 * self.comm_compute_ms / comm_ms);
        self
    }
}

/// Summed over devices; `comm_ms` is their communication.
pub(crate) fn total_overlaps(devices: &[Overlaps], comm_ms: f64) -> Overlaps {
    let sum = |of: fn(&Overlaps) -> f64| devices.iter().map(of).sum();
    Overlaps {
        comm_compute_ms: sum(|o| o.comm_compute_ms),
        copy_compute_ms: sum(|o| o.copy_compute_ms),
        copy_comm_ms: sum(|o| o.copy_comm_ms),
        host_copy_compute_ms: sum(|o| o.host_copy_compute_ms),
        host_copy_comm_ms: sum(|o| o.host_copy_comm_ms),
        memset_compute_ms: sum(|o| o.memset_compute_ms),
        memset_copy_ms: sum(|o| o.memset_copy_ms),
        memset_comm_ms: sum(|o| o.memset_comm_ms),
        comm_compute_pct_of_comm: None,
    }
    .with_share(comm_ms)
}
