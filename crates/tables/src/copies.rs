//! Table `copies`: what each copy moved, how fast, and who waited for it.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use busbound_diagnosis::{CopyItem, Items};
use busbound_trace::{Direction, MemoryKind, MigrationCause, Trace};

use crate::column::Column;
use crate::column::ColumnType::{Bytes, Flag, GigabytesPerSecond, Index, Nanoseconds, Number, Word};
use crate::columns::{durations, flags, indices, numbers, rates, sizes, steps, times};
use crate::words::Words;

pub(crate) const COLUMNS: &[Column] = &[
    Column::always("event", Number, "Row in `events`."),
    Column::always("start_ns", Nanoseconds, "On the profiler's own clock."),
    Column::always("duration_ns", Nanoseconds, "Time on the device."),
    Column::always("device", Index, "The device of its stream."),
    Column::always("stream", Number, "The stream."),
    Column::always("direction", Word, "h2d, d2h, d2d (within a device), p2p (between two), h2h or unknown."),
    Column::always("src", Word, "Memory it came from: pageable, pinned, device, managed or unknown."),
    Column::always("dst", Word, "Memory it went to, with the same values."),
    Column::maybe("bytes", Bytes, "Null if not recorded."),
    Column::maybe("gbps", GigabytesPerSecond, "Bytes divided by duration; null if either is missing."),
    Column::always(
        "exposed_ns",
        Nanoseconds,
        "The part of its duration not overlapped with any kernel on the device.",
    ),
    Column::always(
        "blocking_ns",
        Nanoseconds,
        "Host time inside the call, if the call waited for the copy; else 0.",
    ),
    Column::always(
        "waited_after_ns",
        Nanoseconds,
        "Host time in a synchronization right after the call; else 0.",
    ),
    Column::maybe("step", Index, "The step that launched it."),
    Column::always(
        "analyzed",
        Flag,
        "Whether the diagnosis includes it; false during the warm-up, for example.",
    ),
    Column::maybe("operator", Word, "The innermost operator around the call, e.g. aten::copy_."),
    Column::maybe("migration", Word, "Why the driver moved pages of managed memory; null for other copies."),
];

// In the order of their enum values, which a test checks.
const DIRECTIONS: [Direction; 6] = [
    Direction::HostToDevice,
    Direction::DeviceToHost,
    Direction::DeviceToDevice,
    Direction::PeerToPeer,
    Direction::HostToHost,
    Direction::Unknown,
];
const MEMORIES: [MemoryKind; 5] =
    [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::Device, MemoryKind::Managed, MemoryKind::Unknown];
const MIGRATIONS: [MigrationCause; 6] = [
    MigrationCause::Prefetch,
    MigrationCause::Fault,
    MigrationCause::Speculation,
    MigrationCause::Eviction,
    MigrationCause::AccessCounters,
    MigrationCause::Unknown,
];

/// The string columns of the table.
#[derive(Debug)]
pub(crate) struct CopyWords {
    directions: Words,
    memories: Words,
    operators: Words,
    migrations: Words,
}

impl CopyWords {
    pub(crate) fn of(trace: &Trace, items: &Items) -> Self {
        let operators = items.copies.iter().filter_map(|copy| Some(copy.operator?.index()));
        Self {
            directions: Words::of_values(&DIRECTIONS),
            memories: Words::of_values(&MEMORIES),
            operators: Words::of_names(trace, operators),
            migrations: Words::of_values(&MIGRATIONS),
        }
    }
}

pub(crate) fn columns(
    trace: &Trace,
    copies: &[CopyItem],
    words: &CopyWords,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let each = || copies.iter();
    let event = |copy: &CopyItem| trace.event(copy.event);
    Ok(vec![
        numbers(each().map(|copy| copy.event.index() as i64)),
        times(each().map(|copy| event(copy).start())),
        durations(each().map(|copy| event(copy).duration())),
        indices(each().map(|copy| Some(copy.device))),
        numbers(each().map(|copy| copy.stream)),
        words.directions.column(each().map(|copy| Some(copy.direction as usize)))?,
        words.memories.column(each().map(|copy| Some(copy.src as usize)))?,
        words.memories.column(each().map(|copy| Some(copy.dst as usize)))?,
        sizes(each().map(|copy| copy.bytes)),
        rates(each().map(|copy| copy.gbps)),
        durations(each().map(|copy| copy.exposed)),
        durations(each().map(|copy| copy.blocking)),
        durations(each().map(|copy| copy.waited_after)),
        steps(each().map(|copy| copy.step)),
        flags(each().map(|copy| copy.analyzed)),
        words.operators.column(each().map(|copy| Some(copy.operator?.index())))?,
        words.migrations.column(each().map(|copy| Some(copy.migration? as usize)))?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_enum_order() {
        assert!(DIRECTIONS.iter().enumerate().all(|(i, &direction)| direction as usize == i));
        assert!(MEMORIES.iter().enumerate().all(|(i, &memory)| memory as usize == i));
        assert!(MIGRATIONS.iter().enumerate().all(|(i, &cause)| cause as usize == i));
    }
}
