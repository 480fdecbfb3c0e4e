//! Which link does a copy cross? Each device has its own: GPUs of one machine may sit in different slots.

use std::collections::BTreeMap;

use busbound_machine::LinkFacts;

/// The link of every device that worked.
#[derive(Debug)]
pub(crate) struct Links {
    by_device: BTreeMap<i32, LinkFacts>,
    /// Where no device worked.
    usual: LinkFacts,
}

impl Links {
    pub(crate) fn new(by_device: BTreeMap<i32, LinkFacts>, usual: LinkFacts) -> Self {
        Self { by_device, usual }
    }

    pub(crate) fn of(&self, device: i32) -> &LinkFacts {
        self.by_device.get(&device).unwrap_or(&self.usual)
    }

    /// The peak that bytes of several devices share: what each crosses takes its time, and the sum of the bytes over the sum of
    /// these times is the peak of all together.
    pub(crate) fn peak_gbps(&self, bytes: impl Iterator<Item = (i32, u64)> + Clone) -> f64 {
        let mut peaks = bytes.clone().map(|(device, _)| self.of(device).peak_gbps);
        let first = peaks.next().unwrap_or(self.usual.peak_gbps);
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
