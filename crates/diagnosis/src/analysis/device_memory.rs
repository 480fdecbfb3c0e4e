//! How much memory does a GPU have left, as far as the trace shows it?

use busbound_trace::MemoryOwner;

use crate::analysis::facts::Facts;

/// Share of the free memory that more data may take.
const USABLE: f64 = 0.9;

#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceMemory {
    pub(crate) total: u64,
    /// The most that the allocator reserved. Only its samples show how full the GPU is.
    pub(crate) reserved: Option<u64>,
}

impl DeviceMemory {
    /// `None` if the trace does not say how much the GPU has.
    pub(crate) fn of(facts: &Facts<'_>, device: i32) -> Option<Self> {
        let samples = facts.trace.memory().iter();
        let own = samples.filter(|sample| sample.owner == MemoryOwner::Device(device));
        let reserved = own.map(|sample| sample.reserved).max().filter(|&reserved| reserved > 0);
        let gpu = facts.trace.origin().gpus.iter().find(|gpu| gpu.id == device)?;
        Some(Self { total: gpu.memory?.get(), reserved })
    }

    /// Without samples, all of the memory may be free.
    pub(crate) fn has_room_for(self, bytes: u64) -> bool {
        let free = self.total.saturating_sub(self.reserved.unwrap_or(0));
        bytes as f64 <= USABLE * free as f64
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceMemory;

    #[test]
    fn more_data_needs_free_memory() {
        let full = DeviceMemory { total: 1000, reserved: Some(800) };
        assert!(full.has_room_for(180) && !full.has_room_for(181));
        let unknown = DeviceMemory { total: 1000, reserved: None };
        assert!(unknown.has_room_for(900) && !unknown.has_room_for(901));
    }
}
