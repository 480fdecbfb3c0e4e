//! What did the devices run? Kernels, graphs, copies and memsets.

use super::Reading;
use super::rows::Row;
use crate::interval::Interval;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::managed::Migration;
use crate::model::names::NameId;
use crate::model::size::Bytes;
use crate::model::stats::Repair;
use crate::model::track::TrackId;
use crate::model::transfer::{Direction, MemoryKind, Transfer};

/// The columns that every table of device work has, before its own columns.
const COMMON: [&str; 7] = ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"];

/// The kind of device work in a table.
pub(super) fn kind_in(table: &str) -> Option<EventKind> {
    let table = table.to_ascii_uppercase();
    match table.strip_prefix("CUPTI_ACTIVITY_KIND_")? {
        name if name.starts_with("MEMCPY") => Some(EventKind::Copy),
        name if name.starts_with("MEMSET") => Some(EventKind::Memset),
        name if ["KERNEL", "CONCURRENT_KERNEL", "GRAPH_TRACE"]
            .iter()
            .any(|known| name.starts_with(known)) =>
        {
            Some(EventKind::Kernel)
        }
        _ => None,
    }
}

fn columns(own: &[&'static str]) -> Vec<&'static str> {
    [&COMMON, own].concat()
}

/// No copy moves more than this, a pebibyte: then the size counts as not recorded.
const MAX_BYTES: u64 = 1 << 50;

/// Where and when an item of device work ran.
struct Run {
    time: Interval,
    track: TrackId,
    correlation: Option<u64>,
}

impl Reading<'_, '_> {
    fn run(&mut self, table: &str, row: &Row<'_>) -> Option<Run> {
        self.trace.stats_mut().objects += 1;
        let time = self.time(table, row.integer(0), row.integer(1))?;
        let id = row.integer(5);
        let process = self.process_of(row.integer(6), id);
        let track = self.stream_track((process, row.integer(2), row.integer(3), row.integer(4)));
        let correlation = process.and_then(|process| self.processes.correlation(process, id));
        Some(Run { time, track, correlation })
    }

    /// How many bytes were copied or set, from the first of the table's own columns.
    fn bytes(&mut self, row: &Row<'_>) -> Option<Bytes> {
        let bytes = row.unsigned(7).filter(|bytes| *bytes <= MAX_BYTES).map(Bytes::new);
        if bytes.is_none() && !row.is_empty(7) {
            self.trace.stats_mut().repair(Repair::UnusableSize);
        }
        bytes
    }

    fn named(&mut self, id: Option<i64>) -> Option<NameId> {
        self.strings.name(id?, self.trace.names())
    }

    pub(super) fn read_kernels(&mut self) {
        let columns = columns(&[
            "demangledName",
            "shortName",
            "mangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ]);
        for table in ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"] {
            self.each(table, &columns, &mut |reading, row| {
                let Some(run) = reading.run(table, row) else { return };
                let name = (7..10).find_map(|column| reading.named(row.integer(column)));
                let name = name.unwrap_or(NameId::EMPTY);
                let kernel = reading.trace.kernel(run.track, name, run.time).correlation(run.correlation);
                let number = |column| u32::try_from(row.integer(column).unwrap_or(0)).unwrap_or(0);
                let launch = Launch {
                    grid: [10, 11, 12].map(number),
                    block: [13, 14, 15].map(number),
                    registers_per_thread: number(16),
                    shared_memory: number(17).saturating_add(number(18)),
                };
                if launch != Launch::default() {
                    kernel.launch(launch);
                }
            });
        }
    }

    /// Graphs traced as a whole: one event each, whatever runs inside.
    pub(super) fn read_graphs(&mut self) {
        const TABLE: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
        let before = self.trace.len();
        self.each(TABLE, &columns(&["graphId"]), &mut |reading, row| {
            let Some(run) = reading.run(TABLE, row) else { return };
            let name = match row.integer(7) {
                Some(id) => format!("CUDA graph {id}"),
                None => "CUDA graph".to_owned(),
            };
            reading.trace.kernel(run.track, &name, run.time).correlation(run.correlation);
        });
        if self.trace.len() > before {
            self.trace.origin().settings.insert("cuda_graph_nodes".to_owned(), false);
        }
    }

    pub(super) fn read_copies(&mut self) {
        let columns = columns(&[
            "bytes",
            "copyKind",
            "srcKind",
            "dstKind",
            "migrationCause",
            "virtualAddress",
            "srcDeviceId",
            "dstDeviceId",
        ]);
        for table in ["CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2"] {
            self.each(table, &columns, &mut |reading, row| reading.add_copy(table, row));
        }
    }

    fn add_copy(&mut self, table: &'static str, row: &Row<'_>) {
        let kind = self.enumerations.copy(row.integer(8).unwrap_or(0));
        if kind.is_migration {
            return self.add_migration(table, row);
        }
        let Some(run) = self.run(table, row) else { return };
        let is_between = matches!((row.integer(13), row.integer(14)), (Some(src), Some(dst)) if src != dst);
        let direction = match kind.direction {
            Direction::DeviceToDevice if is_between => Direction::PeerToPeer,
            direction => direction,
        };
        let [src, dst] = self.enumerations.ends(direction, row.integer(9), row.integer(10));
        let transfer = Transfer { bytes: self.bytes(row), direction, src, dst };
        self.trace.copy(run.track, transfer, run.time).correlation(run.correlation);
    }

    /// Pages that the driver moved. They have no call and no stream.
    fn add_migration(&mut self, table: &'static str, row: &Row<'_>) {
        self.trace.stats_mut().objects += 1;
        let Some(time) = self.time(table, row.integer(0), row.integer(1)) else { return };
        let kind = self.enumerations.copy(row.integer(8).unwrap_or(0));
        let process = self.process_of(row.integer(6), None);
        let place = self.devices.whole(process, row.integer(2));
        let managed = MemoryKind::Managed;
        let transfer =
            Transfer { bytes: self.bytes(row), direction: kind.direction, src: managed, dst: managed };
        let cause = self.enumerations.migration(row.integer(11).unwrap_or(0));
        // Addresses are unsigned 64-bit values in a signed column.
        let address = row.integer(12).filter(|address| *address != 0).map(i64::cast_unsigned);
        let track = self.trace.track(place);
        self.trace.copy(track, transfer, time).migration(Migration { address, cause });
    }

    pub(super) fn read_memsets(&mut self) {
        const TABLE: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
        self.each(TABLE, &columns(&["bytes", "memKind"]), &mut |reading, row| {
            let Some(run) = reading.run(TABLE, row) else { return };
            // The device sets only device memory, unless the file says otherwise.
            let kind =
                row.integer(8).map(|kind| reading.enumerations.memory_kind(kind, i64::from(kind == 2)));
            let bytes = reading.bytes(row);
            let kind = kind.unwrap_or(MemoryKind::Device);
            reading.trace.memset(run.track, kind, bytes, run.time).correlation(run.correlation);
        });
    }
}
