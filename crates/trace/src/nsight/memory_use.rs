//! How full was the memory? Allocations, recorded with `--cuda-memory-usage=true`.

use super::Reading;
use super::enumeration::Enumeration;
use crate::hash::HashMap;
use crate::interval::Interval;
use crate::model::memory::{MemoryOwner, MemorySample};
use crate::model::time::Timestamp;
use crate::model::transfer::MemoryKind;

impl Reading<'_, '_> {
    pub(super) fn read_memory_use(&mut self) {
        const TABLE: &str = "CUDA_GPU_MEMORY_USAGE_EVENTS";
        const COLUMNS: [&str; 6] =
            ["start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType"];
        let operations =
            Enumeration::of(self.database, "ENUM_CUDA_DEV_MEM_EVENT_OPER", self.trace.stats_mut());
        let mut changes: Vec<(Timestamp, MemoryOwner, i64)> = Vec::new();
        self.each(TABLE, &COLUMNS, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            let Some(Interval { start: at, .. }) = reading.time(TABLE, row.integer(0), row.integer(0)) else {
                return;
            };
            let Some(bytes) = row.integer(3).filter(|bytes| *bytes >= 0) else { return };
            let kind = row.integer(4).unwrap_or(2);
            let kind = reading.enumerations.memory_kind(kind, 1);
            let owner = match kind {
                MemoryKind::Pageable | MemoryKind::Pinned => MemoryOwner::Host,
                MemoryKind::Device | MemoryKind::Managed | MemoryKind::Unknown => {
                    let process = reading.process_of(row.integer(1), None);
                    MemoryOwner::Device(reading.devices.gpu(process, row.integer(2)))
                }
            };
            let operation = row.integer(5).unwrap_or(0);
            let is_release = operations.is(operation, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", 1);
            changes.push((at, owner, if is_release { -bytes } else { bytes }));
        });
        changes.sort_by_key(|(at, ..)| *at);
        let mut held: HashMap<MemoryOwner, u64> = HashMap::default();
        for (at, owner, change) in changes {
            // Memory allocated before the recording began may be released during it.
            let held = held.entry(owner).or_default();
            *held = held.saturating_add_signed(change);
            // Nsight sees what was allocated from the driver, but not how an allocator uses it.
            self.trace.memory_sample(MemorySample { at, owner, change, allocated: *held, reserved: *held });
        }
    }
}
