//! What was each device doing, and what at the same time?

use std::collections::BTreeMap;

use busbound_trace::{Direction, EventKind, Interval, IntervalSet, Nanos, Place, Trace};
use serde::Serialize;

use crate::communication::CommunicationNames;

/// When one device did what. Copies within the device are copies, but not on the bus.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceTimeline {
    pub(crate) device: i32,
    pub(crate) compute: IntervalSet,
    pub(crate) communication: IntervalSet,
    pub(crate) copies: IntervalSet,
    /// Copies that cross the GPU's link: from and to the host, and to other GPUs.
    pub(crate) bus_copies: IntervalSet,
    pub(crate) host_copies: IntervalSet,
    pub(crate) memsets: IntervalSet,
    pub(crate) busy: IntervalSet,
}

impl DeviceTimeline {
    pub(crate) fn hull(&self) -> Option<Interval> {
        self.busy.hull()
    }

    pub(crate) fn kernels(&self) -> IntervalSet {
        self.compute.union(&self.communication)
    }

    /// Times of no work between the first and the last.
    pub(crate) fn gaps(&self) -> IntervalSet {
        match self.hull() {
            Some(hull) => IntervalSet::from_unsorted([hull]).difference(&self.busy),
            None => IntervalSet::default(),
        }
    }
}

pub(crate) fn timelines(trace: &Trace, communication: &CommunicationNames) -> Vec<DeviceTimeline> {
    #[derive(Default)]
    struct Raw {
        compute: Vec<Interval>,
        communication: Vec<Interval>,
        bus: Vec<Interval>,
        host: Vec<Interval>,
        internal: Vec<Interval>,
        memsets: Vec<Interval>,
    }
    let mut devices: BTreeMap<i32, Raw> = BTreeMap::new();
    for stream in trace.streams() {
        let Place::Stream { device, .. } = stream.place() else { continue };
        for event in stream.events().filter(|event| event.kind().is_gpu_work()) {
            let raw = devices.entry(device).or_default();
            let interval = Interval::new(event.start(), event.end());
            match event.kind() {
                EventKind::Kernel if communication.contains(event.name_id()) => {
                    raw.communication.push(interval)
                }
                EventKind::Kernel => raw.compute.push(interval),
                EventKind::Memset => raw.memsets.push(interval),
                _ => match event.transfer().map(|transfer| transfer.direction) {
                    Some(Direction::HostToDevice | Direction::DeviceToHost) => {
                        raw.host.push(interval);
                        raw.bus.push(interval);
                    }
                    Some(Direction::PeerToPeer) => raw.bus.push(interval),
                    _ => raw.internal.push(interval),
                },
            }
        }
    }
    devices
        .into_iter()
        .map(|(device, raw)| {
            let compute = IntervalSet::from_unsorted(raw.compute);
            let communication = IntervalSet::from_unsorted(raw.communication);
            let bus_copies = IntervalSet::from_unsorted(raw.bus);
            let copies = bus_copies.union(&IntervalSet::from_unsorted(raw.internal));
            let memsets = IntervalSet::from_unsorted(raw.memsets);
            let busy = compute.union(&communication).union(&copies).union(&memsets);
            let host_copies = IntervalSet::from_unsorted(raw.host);
            DeviceTimeline { device, compute, communication, copies, bus_copies, host_copies, memsets, busy }
        })
        .collect()
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
    /// Share of communication that compute ran beside; `null` without communication.
    pub comm_compute_pct_of_comm: Option<f64>,
}

pub(crate) fn times(timelines: &[DeviceTimeline]) -> Times {
    let sum = |of: &dyn Fn(&DeviceTimeline) -> Nanos| timelines.iter().map(of).sum::<Nanos>().as_millis();
    Times {
        span_ms: sum(&|t| t.hull().map_or(Nanos::ZERO, Interval::length)),
        busy_ms: sum(&|t| t.busy.length()),
        compute_ms: sum(&|t| t.compute.length()),
        copy_ms: sum(&|t| t.copies.length()),
        comm_ms: sum(&|t| t.communication.length()),
        memset_ms: sum(&|t| t.memsets.length()),
        idle_ms: sum(&|t| t.gaps().length()),
        exposed_copy_ms: sum(&|t| t.copies.difference(&t.kernels()).length()),
        exposed_bus_copy_ms: sum(&|t| t.bus_copies.difference(&t.kernels()).length()),
        exposed_comm_ms: sum(&|t| t.communication.difference(&t.compute).length()),
    }
}

pub(crate) fn overlaps(timelines: &[DeviceTimeline]) -> Overlaps {
    let sum = |of: &dyn Fn(&DeviceTimeline) -> IntervalSet| {
        timelines.iter().map(|t| of(t).length()).sum::<Nanos>().as_millis()
    };
    let comm: f64 = sum(&|t| t.communication.clone());
    let comm_compute_ms = sum(&|t| t.communication.intersection(&t.compute));
    Overlaps {
        comm_compute_ms,
        copy_compute_ms: sum(&|t| t.copies.intersection(&t.compute)),
        copy_comm_ms: sum(&|t| t.copies.intersection(&t.communication)),
        host_copy_compute_ms: sum(&|t| t.host_copies.intersection(&t.compute)),
        host_copy_comm_ms: sum(&|t| t.host_copies.intersection(&t.communication)),
        comm_compute_pct_of_comm: (comm > 0.0).then(|| 100.0 * comm_compute_ms / comm),
    }
}
