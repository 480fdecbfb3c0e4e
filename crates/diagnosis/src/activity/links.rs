//! Which link does a copy cross? Each device has its own: GPUs of one machine may be in different slots.

use std::collections::BTreeMap;

use busbound_cause::is_rocm;
use busbound_machine::{LinkFacts, Machine, PcieLink, Seen};
use busbound_trace::{Gpu, Trace};

/// The link of every device that worked.
#[derive(Debug)]
pub(crate) struct Links {
    by_device: BTreeMap<i32, LinkFacts>,
    /// For devices without work.
    default: LinkFacts,
}

impl Links {
    pub(crate) fn new(by_device: BTreeMap<i32, LinkFacts>, default: LinkFacts) -> Self {
        Self { by_device, default }
    }

    pub(crate) fn of(&self, device: i32) -> &LinkFacts {
        self.by_device.get(&device).unwrap_or(&self.default)
    }

    /// The combined peak for bytes moved by several devices: all bytes over the sum of the times that each device needs
    /// at its own peak.
    pub(crate) fn peak_gbps(&self, bytes: impl Iterator<Item = (i32, u64)> + Clone) -> f64 {
        let mut peaks = bytes.clone().map(|(device, _)| self.of(device).peak_gbps);
        let first = peaks.next().unwrap_or(self.default.peak_gbps);
        if peaks.all(|peak| peak == first) {
            return first;
        }
        let (mut moved, mut least_ns) = (0.0, 0.0);
        for (device, bytes) in bytes {
            moved += bytes as f64;
            least_ns += bytes as f64 / self.of(device).peak_gbps;
        }
        moved / least_ns
    }
}

/// A device, if the trace lists it.
fn gpu(trace: &Trace, device: Option<i32>) -> Option<&Gpu> {
    let gpus = &trace.origin().gpus;
    let listed = device.and_then(|id| gpus.iter().find(|gpu| gpu.id == id));
    // Devices are renumbered when some are hidden from the process; machines rarely mix models.
    listed.or(gpus.first())
}

/// Its name.
pub(crate) fn gpu_name(trace: &Trace, device: Option<i32>) -> Option<&str> {
    // Virtual machines may report a blank name.
    gpu(trace, device).map(|gpu| gpu.name.as_str()).filter(|name| !name.trim().is_empty())
}

/// The recorded link: as used, and the best that the GPU and the slot support.
pub(crate) fn link_seen(trace: &Trace, device: Option<i32>) -> Option<(PcieLink, PcieLink)> {
    let seen = gpu(trace, device)?.link?;
    let link = |generation: u32, lanes: u32| {
        Some(PcieLink { generation: u8::try_from(generation).ok()?, lanes: u8::try_from(lanes).ok()? })
            .filter(|link| link.generation > 0 && link.lanes > 0)
    };
    Some((link(seen.generation, seen.lanes)?, link(seen.most_generation, seen.most_lanes)?))
}

pub(crate) fn link_of(machine: &Machine, trace: &Trace, device: Option<i32>) -> LinkFacts {
    let seen =
        Seen { link: link_seen(trace, device).map(|(now, _)| now), capability: capability(trace, device) };
    machine.link_seen(gpu_name(trace, device), seen)
}

/// The compute capability of an NVIDIA GPU. On AMD the numbers mean something else.
pub(crate) fn capability(trace: &Trace, device: Option<i32>) -> Option<(u32, u32)> {
    gpu(trace, device).filter(|_| !is_rocm(trace)).and_then(|gpu| gpu.compute_capability)
}
