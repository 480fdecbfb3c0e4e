//! What do the numbers mean? The file's own enum tables come first; they have changed between versions.

use super::database::{Database, End};
use super::rows::Next;
use crate::hash::HashMap;
use crate::model::managed::MigrationCause;
use crate::model::stats::{ImportStats, LossKind};
use crate::model::sync::SyncKind;
use crate::model::transfer::{Direction, MemoryKind};

/// One `ENUM_…` table: numbers and their uppercase names. Empty if the file has none.
#[derive(Debug, Default)]
pub(super) struct Enumeration {
    names: HashMap<i64, String>,
}

impl Enumeration {
    pub(super) fn of(database: &Database, table: &str, stats: &mut ImportStats) -> Self {
        let mut names = HashMap::default();
        if let Some(table) = database.table(table) {
            let end = database.each_row(table, &["id", "name", "label"], &mut |row| {
                if let (Some(id), Some(name)) = (row.integer(0), row.text(1).or_else(|| row.text(2))) {
                    names.insert(id, name.to_ascii_uppercase());
                }
                Next::Row
            });
            if matches!(end, End::Damaged { .. }) {
                stats.lose_in(&table.name, LossKind::DamagedTable);
            }
        }
        Self { names }
    }

    fn name(&self, number: i64) -> Option<&str> {
        self.names.get(&number).map(String::as_str)
    }

    /// Whether a number has this name. `otherwise` is its number if there is no table.
    pub(super) fn is(&self, number: i64, name: &str, otherwise: i64) -> bool {
        if self.names.is_empty() {
            return number == otherwise;
        }
        self.name(number).is_some_and(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The kind of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyKind {
    pub(super) direction: Direction,
    /// The driver moved managed memory.
    pub(super) is_migration: bool,
}

#[derive(Debug, Default)]
pub(super) struct Enumerations {
    copies: Enumeration,
    memory: Enumeration,
    syncs: Enumeration,
    migrations: Enumeration,
}

impl Enumerations {
    pub(super) fn of(database: &Database, stats: &mut ImportStats) -> Self {
        Self {
            copies: Enumeration::of(database, "ENUM_CUDA_MEMCPY_OPER", stats),
            memory: Enumeration::of(database, "ENUM_CUDA_MEM_KIND", stats),
            syncs: Enumeration::of(database, "ENUM_CUPTI_SYNC_TYPE", stats),
            migrations: Enumeration::of(database, "ENUM_CUDA_UNIF_MEM_MIGRATION", stats),
        }
    }

    pub(super) fn copy(&self, number: i64) -> CopyKind {
        /// CUPTI's order; Nsight adds the three for managed memory.
        const NUMBERED: [&str; 14] = [
            "UNKNOWN", "HTOD", "DTOH", "HTOA", "ATOH", "ATOA", "ATOD", "DTOA", "DTOD", "HTOH", "PTOP",
            "UVM_HTOD", "UVM_DTOH", "UVM_DTOD",
        ];
        let numbered = || NUMBERED.get(usize::try_from(number).ok()?).copied();
        let name = if self.copies.names.is_empty() { numbered() } else { self.copies.name(number) };
        let name = name.unwrap_or_default();
        let direction = match name.rsplit('_').next().unwrap_or_default() {
            "HTOD" | "HTOA" => Direction::HostToDevice,
            "DTOH" | "ATOH" => Direction::DeviceToHost,
            "ATOA" | "ATOD" | "DTOA" | "DTOD" => Direction::DeviceToDevice,
            "HTOH" => Direction::HostToHost,
            "PTOP" => Direction::PeerToPeer,
            _ => Direction::Unknown,
        };
        let is_migration = name.contains("UVM_");
        // Managed memory that moves from device to device moves between two devices.
        let direction = match direction {
            Direction::DeviceToDevice if is_migration => Direction::PeerToPeer,
            other => other,
        };
        CopyKind { direction, is_migration }
    }

    /// The two ends of a copy.
    pub(super) fn ends(&self, direction: Direction, src: Option<i64>, dst: Option<i64>) -> [MemoryKind; 2] {
        let device_end = match direction {
            Direction::HostToDevice => dst,
            Direction::DeviceToHost | Direction::DeviceToDevice | Direction::PeerToPeer => src,
            Direction::HostToHost | Direction::Unknown => None,
        };
        // Without a table, the end that must be the device shows whose numbering is used: device is 2 in Nsight's and
        // 3 in CUPTI's.
        let counts_from = i64::from(device_end == Some(2));
        let (from_host, to_host) =
            (direction == Direction::HostToDevice, direction == Direction::DeviceToHost);
        let end = |number: Option<i64>, is_host: bool| match number {
            Some(number) => self.memory_kind(number, counts_from),
            // The kind was not recorded, but the direction says which side is the host.
            None if is_host || matches!(direction, Direction::HostToHost | Direction::Unknown) => {
                MemoryKind::Unknown
            }
            None => MemoryKind::Device,
        };
        [end(src, from_host), end(dst, to_host)]
    }

    /// `offset` is the difference between CUPTI's and Nsight's numbers, if the file has no table.
    pub(super) fn memory_kind(&self, number: i64, offset: i64) -> MemoryKind {
        const NUMBERED: [&str; 8] = [
            "UNKNOWN",
            "PAGEABLE",
            "PINNED",
            "DEVICE",
            "ARRAY",
            "MANAGED",
            "DEVICE_STATIC",
            "MANAGED_STATIC",
        ];
        let numbered = || NUMBERED.get(usize::try_from(number.checked_add(offset)?).ok()?).copied();
        let name = if self.memory.names.is_empty() { numbered() } else { self.memory.name(number) };
        let name = name.unwrap_or_default();
        let name = name.rsplit_once("KIND_").map_or(name, |(_, name)| name);
        match name {
            "PAGEABLE" => MemoryKind::Pageable,
            "PINNED" => MemoryKind::Pinned,
            "DEVICE" | "ARRAY" | "DEVICE_STATIC" => MemoryKind::Device,
            "MANAGED" | "MANAGED_STATIC" => MemoryKind::Managed,
            _ => MemoryKind::Unknown,
        }
    }

    pub(super) fn sync(&self, number: i64) -> SyncKind {
        const NUMBERED: [&str; 5] = [
            "UNKNOWN",
            "EVENT_SYNCHRONIZE",
            "STREAM_WAIT_EVENT",
            "STREAM_SYNCHRONIZE",
            "CONTEXT_SYNCHRONIZE",
        ];
        let numbered = || NUMBERED.get(usize::try_from(number).ok()?).copied();
        let name = if self.syncs.names.is_empty() { numbered() } else { self.syncs.name(number) };
        let ends_with = |what: &str| name.is_some_and(|name| name.ends_with(what));
        match () {
            () if ends_with("STREAM_WAIT_EVENT") => SyncKind::StreamWaitEvent,
            () if ends_with("EVENT_SYNCHRONIZE") => SyncKind::EventSync,
            () if ends_with("STREAM_SYNCHRONIZE") => SyncKind::StreamSync,
            () if ends_with("CONTEXT_SYNCHRONIZE") => SyncKind::ContextSync,
            () => SyncKind::Unknown,
        }
    }

    pub(super) fn migration(&self, number: i64) -> MigrationCause {
        const NUMBERED: [&str; 6] = [
            "UNKNOWN",
            "CAUSE_USER",
            "CAUSE_COHERENCE",
            "CAUSE_PREFETCH",
            "CAUSE_EVICTION",
            "CAUSE_ACCESS_COUNTERS",
        ];
        let numbered = || NUMBERED.get(usize::try_from(number).ok()?).copied();
        let name = if self.migrations.names.is_empty() { numbered() } else { self.migrations.name(number) };
        match name.and_then(|name| name.rsplit_once("CAUSE_")).map(|(_, cause)| cause) {
            Some("USER") => MigrationCause::Prefetch,
            Some("COHERENCE") => MigrationCause::Fault,
            Some("PREFETCH") => MigrationCause::Speculation,
            Some("EVICTION") => MigrationCause::Eviction,
            Some("ACCESS_COUNTERS") => MigrationCause::AccessCounters,
            _ => MigrationCause::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_table_the_device_end_identifies_the_numbering() {
        let none = Enumerations::default();
        let kinds = |direction, src, dst| none.ends(direction, Some(src), Some(dst));
        use Direction::{DeviceToHost, HostToDevice};
        use MemoryKind::{Device, Pageable, Pinned};
        // Nsight's numbers, then CUPTI's.
        assert_eq!(kinds(HostToDevice, 0, 2), [Pageable, Device]);
        assert_eq!(kinds(HostToDevice, 1, 2), [Pinned, Device]);
        assert_eq!(kinds(HostToDevice, 1, 3), [Pageable, Device]);
        assert_eq!(kinds(DeviceToHost, 3, 2), [Device, Pinned]);
        assert_eq!(none.ends(HostToDevice, None, None), [MemoryKind::Unknown, Device]);
    }

    #[test]
    fn the_files_own_table_comes_first() {
        let names = HashMap::from_iter([(5, "CUDA_MEMOPR_MEMORY_KIND_PINNED".to_owned())]);
        let own = Enumerations { memory: Enumeration { names }, ..Default::default() };
        assert_eq!(own.memory_kind(5, 0), MemoryKind::Pinned);
        assert_eq!(own.memory_kind(1, 0), MemoryKind::Unknown);
    }
}
