//! What was each device doing, and what at the same time?

use std::collections::BTreeMap;

use busbound_trace::{Direction, EventKind, Interval, IntervalSet, Nanos, Place, Trace};
use serde::Serialize;

use busbound_cause::CollectiveNames;

/// When one device did what. Copies are on the bus, within the device, or neither is known of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceTimeline {
    pub(crate) device: i32,
    pub(crate) compute: IntervalSet,
    pub(crate) communication: IntervalSet,
    /// Compute and communication.
    pub(crate) kernels: IntervalSet,
    pub(crate) copies: IntervalSet,
    /// Copies that cross the GPU's link: from and to the host, and to other GPUs.
    pub(crate) bus_copies: IntervalSet,
    pub(crate) host_copies: IntervalSet,
    pub(crate) internal_copies: IntervalSet,
    pub(crate) memsets: IntervalSet,
    pub(crate) busy: IntervalSet,
}

impl DeviceTimeline {
    pub(crate) fn hull(&self) -> Option<Interval> {
        self.busy.hull()
    }

    /// Times of no work between the first and the last.
    pub(crate) fn gaps(&self) -> IntervalSet {
        match self.hull() {
            Some(hull) => IntervalSet::from_unsorted([hull]).difference(&self.busy),
            None => IntervalSet::default(),
        }
    }
}

pub(crate) fn timelines(trace: &Trace, communication: &CollectiveNames) -> Vec<DeviceTimeline> {
    #[derive(Default)]
    struct Sets {
        compute: IntervalSet,
        communication: IntervalSet,
        bus: IntervalSet,
        host: IntervalSet,
        internal: IntervalSet,
        unplaced: IntervalSet,
        memsets: IntervalSet,
    }
    let mut devices: BTreeMap<i32, Sets> = BTreeMap::new();
    for stream in trace.streams() {
        let Place::Stream { device, .. } = stream.place() else { continue };
        let mut sets = Sets::default();
        let mut any_work = false;
        for event in stream.events().filter(|event| event.kind().is_gpu_work()) {
            any_work = true;
            let interval = event.interval();
            match event.kind() {
                EventKind::Kernel if communication.contains(event.name_id()) => {
                    sets.communication.push(interval)
                }
                EventKind::Kernel => sets.compute.push(interval),
                EventKind::Memset => sets.memsets.push(interval),
                _ => match event.transfer().map(|transfer| transfer.direction) {
                    Some(Direction::HostToDevice | Direction::DeviceToHost) => {
                        sets.host.push(interval);
                        sets.bus.push(interval);
                    }
                    Some(Direction::PeerToPeer) => sets.bus.push(interval),
                    Some(Direction::DeviceToDevice) => sets.internal.push(interval),
                    // Pinned memory is copied to pinned memory by the device, other memory by the host.
                    Some(Direction::HostToHost | Direction::Unknown) | None => sets.unplaced.push(interval),
                },
            }
        }
        if !any_work {
            continue;
        }
        let known = devices.entry(device).or_default();
        *known = Sets {
            compute: known.compute.union(&sets.compute),
            communication: known.communication.union(&sets.communication),
            bus: known.bus.union(&sets.bus),
            host: known.host.union(&sets.host),
            internal: known.internal.union(&sets.internal),
            unplaced: known.unplaced.union(&sets.unplaced),
            memsets: known.memsets.union(&sets.memsets),
        };
    }
    devices
        .into_iter()
        .map(|(device, sets)| {
            let Sets { compute, communication, bus: bus_copies, host: host_copies, memsets, .. } = sets;
            let internal_copies = sets.internal;
            let copies = bus_copies.union(&internal_copies).union(&sets.unplaced);
            let kernels = compute.union(&communication);
            let busy = kernels.union(&copies).union(&memsets);
            DeviceTimeline {
                device,
                compute,
                communication,
                kernels,
                copies,
                bus_copies,
                host_copies,
                internal_copies,
                memsets,
                busy,
            }
        })
        .collect()
}

/// From the first work of any device to the last.
pub(crate) fn whole(timelines: &[DeviceTimeline]) -> Option<Interval> {
    timelines.iter().filter_map(DeviceTimeline::hull).reduce(Interval::hull)
}

/// The part of `times` on one device with no kernel running beside it.
pub(crate) fn exposed(timelines: &[DeviceTimeline], device: i32, times: &IntervalSet) -> Nanos {
    match timelines.iter().find(|timeline| timeline.device == device) {
        Some(timeline) => times.difference(&timeline.kernels).length(),
        None => times.length(),
    }
}

/// Times in milliseconds: unions per device, summed over devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    pub span_ms: f64,
    pub busy_ms: f64,
    pub compute_ms: f64,
    pub copy_ms: f64,
    pub comm_ms: f64,
    pub memset_ms: f64,
    pub idle_ms: f64,
    /// Copies while no kernel runs.
    pub exposed_copy_ms: f64,
    /// Of these, copies that cross the GPU's link.
    pub exposed_bus_copy_ms: f64,
    /// Of these, copies of which the trace does not tell whether they cross it, with no other copy beside them.
    pub exposed_unplaced_copy_ms: f64,
    /// Communication while no compute kernel runs.
    pub exposed_comm_ms: f64,
}

/// Times at which two sorts of work ran at once.
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
    /// Share of communication that compute ran beside; `null` without communication.
    pub comm_compute_pct_of_comm: Option<f64>,
}

impl Times {
    /// Copies within the device while no kernel and no copy over its link runs.
    pub fn internal_copy_ms(&self) -> f64 {
        let others = self.exposed_bus_copy_ms + self.exposed_unplaced_copy_ms;
        // What is left of sums of milliseconds is no time.
        (self.exposed_copy_ms - others).max(0.0)
    }
}

impl DeviceTimeline {
    pub(crate) fn times(&self) -> Times {
        let exposed_copies = self.copies.difference(&self.kernels);
        let placed_copies = self.bus_copies.union(&self.internal_copies);
        let span = self.hull().map_or(Nanos::ZERO, Interval::length);
        Times {
            span_ms: span.as_millis(),
            busy_ms: self.busy.length().as_millis(),
            compute_ms: self.compute.length().as_millis(),
            copy_ms: self.copies.length().as_millis(),
            comm_ms: self.communication.length().as_millis(),
            memset_ms: self.memsets.length().as_millis(),
            idle_ms: (span - self.busy.length()).as_millis(),
            exposed_unplaced_copy_ms: exposed_copies.difference(&placed_copies).length().as_millis(),
            exposed_copy_ms: exposed_copies.length().as_millis(),
            exposed_bus_copy_ms: self.bus_copies.difference(&self.kernels).length().as_millis(),
            exposed_comm_ms: self.communication.difference(&self.compute).length().as_millis(),
        }
    }

    pub(crate) fn overlaps(&self) -> Overlaps {
        let shared = |a: &IntervalSet, b: &IntervalSet| a.intersection(b).length().as_millis();
        Overlaps {
            comm_compute_ms: shared(&self.communication, &self.compute),
            copy_compute_ms: shared(&self.copies, &self.compute),
            copy_comm_ms: shared(&self.copies, &self.communication),
            host_copy_compute_ms: shared(&self.host_copies, &self.compute),
            host_copy_comm_ms: shared(&self.host_copies, &self.communication),
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

/// Summed over devices.
pub(crate) fn total_times(devices: &[Times]) -> Times {
    let sum = |of: fn(&Times) -> f64| devices.iter().map(of).sum();
    Times {
        span_ms: sum(|t| t.span_ms),
        busy_ms: sum(|t| t.busy_ms),
        compute_ms: sum(|t| t.compute_ms),
        copy_ms: sum(|t| t.copy_ms),
        comm_ms: sum(|t| t.comm_ms),
        memset_ms: sum(|t| t.memset_ms),
        idle_ms: sum(|t| t.idle_ms),
        exposed_copy_ms: sum(|t| t.exposed_copy_ms),
        exposed_bus_copy_ms: sum(|t| t.exposed_bus_copy_ms),
        exposed_unplaced_copy_ms: sum(|t| t.exposed_unplaced_copy_ms),
        exposed_comm_ms: sum(|t| t.exposed_comm_ms),
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
