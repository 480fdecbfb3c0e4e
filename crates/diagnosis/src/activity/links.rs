//! Which link does a copy cross? Each device has its own: GPUs of one machine may be in different slots.

use std::collections::BTreeMap;

use busbound_machine::LinkFacts;

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
