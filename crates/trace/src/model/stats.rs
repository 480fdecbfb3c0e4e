//! What was lost or skipped while reading? Counted, with positions, and shown in every output.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::kind::EventKind;

/// What is wrong with a part of the input. Every readable event around it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LossKind {
    /// The file ends inside an event: that event is lost.
    EndsInsideEvent,
    /// The file ends between events, without its closing bracket.
    EndsBetweenEvents,
    /// The file ends before its list of events began.
    EndsBeforeEvents,
    /// The file ends in what follows the list of events.
    EndsAfterEvents,
    /// An event that is not JSON: skipped up to the next event.
    DamagedEvent,
    /// Bytes between events that are not part of any event.
    StrayBytes,
    /// Something outside the list of events is not JSON.
    DamagedMetadata,
    /// A value of more than 16 MiB: skipped, because no profiler writes one.
    TooLong,
    /// An object without `ph` or a complete event without a usable timestamp.
    NotAnEvent,
    /// The compressed stream ends early.
    GzipTruncated,
    /// The compressed stream is damaged; reading continues at the next gzip member, if any.
    GzipDamaged,
    /// Checksum or length at the end of a gzip member does not match; its bytes are used.
    GzipChecksum,
    /// Bytes after the gzip stream that are not gzip.
    GzipTrailingBytes,
    /// Reading stopped at the memory limit.
    MemoryBound,
    /// A part of a recording that is not a chunk, or whose checksum does not match.
    DamagedChunk,
    /// A recording that ends inside a chunk.
    EndsInsideChunk,
    /// A recording without its end: the process was killed, or is still running.
    EndsWithoutMark,
    /// What CUPTI dropped because its buffers were full.
    DroppedRecord,
    /// The operating system failed to read the rest of the file.
    ReadError,
    /// A database that is shorter than its header says.
    DatabaseCut,
    /// Rows that are still in the write-ahead log next to a database.
    RowsInJournal,
    /// Rows of a table that can no longer be read.
    DamagedTable,
    /// A row without a usable time.
    UnusableRow,
    /// An event at an impossible time: far from all others.
    StrayTime,
    /// The profiler itself reports that it did not collect everything.
    NotCollected,
}

impl LossKind {
    /// A sentence for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Self::EndsInsideEvent => "the file ends inside an event",
            Self::EndsBetweenEvents => "the file ends between events, without its closing bracket",
            Self::EndsBeforeEvents => "the file ends before its list of events",
            Self::EndsAfterEvents => "the file ends inside what follows its list of events",
            Self::DamagedEvent => "an event is not valid JSON",
            Self::StrayBytes => "bytes between events that are not part of any event",
            Self::DamagedMetadata => "metadata is not valid JSON",
            Self::TooLong => "a value of more than 16 MiB was skipped",
            Self::NotAnEvent => "an object without phase or timestamp",
            Self::GzipTruncated => "the gzip stream is cut off",
            Self::GzipDamaged => "the gzip stream is damaged",
            Self::GzipChecksum => "the gzip checksum does not match",
            Self::GzipTrailingBytes => "bytes after the gzip stream",
            Self::MemoryBound => "reading stopped at the memory limit",
            Self::DamagedChunk => "a chunk of the recording is damaged",
            Self::EndsInsideChunk => "the recording ends inside a chunk",
            Self::EndsWithoutMark => "the recording has no end: its process was killed or is still running",
            Self::DroppedRecord => "CUPTI dropped records because its buffers were full",
            Self::ReadError => "the rest of the file could not be read",
            Self::DatabaseCut => "the file ends before the database does",
            Self::RowsInJournal => {
                "the newest rows may be missing: they are still in the write-ahead log next to it, FILE-wal, which is not read \
                 (sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)' merges them, or export again)"
            }
            Self::DamagedTable => "rows cannot be read",
            Self::UnusableRow => "a row without a usable time",
            Self::StrayTime => "an event whose time is far from all others was left out",
            Self::NotCollected => "the profiler did not collect everything",
        }
    }

    /// Whether the input ended before it was complete.
    pub fn is_cut(self) -> bool {
        matches!(
            self,
            Self::EndsInsideEvent
                | Self::EndsBetweenEvents
                | Self::EndsBeforeEvents
                | Self::EndsAfterEvents
                | Self::GzipTruncated
                | Self::EndsInsideChunk
                | Self::EndsWithoutMark
                | Self::ReadError
                | Self::DatabaseCut
                | Self::RowsInJournal
                | Self::MemoryBound
        )
    }

    /// Whether it has a byte offset.
    pub fn has_offset(self) -> bool {
        !matches!(
            self,
            Self::DroppedRecord
                | Self::RowsInJournal
                | Self::DamagedTable
                | Self::UnusableRow
                | Self::StrayTime
                | Self::NotCollected
        )
    }

    /// Whether `offset` counts compressed bytes (as in the file) or JSON bytes.
    pub fn is_in_compressed_bytes(self) -> bool {
        matches!(self, Self::GzipTruncated | Self::GzipDamaged | Self::GzipChecksum | Self::GzipTrailingBytes)
    }
}

/// Damage of one kind: where it first occurred and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub what: LossKind,
    /// The table it happened in, for files that have tables.
    pub table: Option<String>,
    /// Byte offset of the first occurrence: into the JSON text, or into the file for gzip damage. If the file ended
    /// early, this is its end; what was cut began `bytes` before it.
    pub first_offset: u64,
    pub count: u64,
    /// Total bytes skipped because of it.
    pub bytes: u64,
}

/// Oddities that were repaired: the event is kept and the repair is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Repair {
    /// Negative duration: set to zero.
    NegativeDuration,
    /// Complete event without a duration: set to zero.
    MissingDuration,
    /// Duration that is not a number or beyond 292 years: set to zero.
    UnusableDuration,
    /// Impossible size of a copy (negative, beyond 2^50 bytes or not a number): treated as not recorded.
    UnusableSize,
    /// A backslash that is not a JSON escape: kept as a character.
    StrayBackslash,
    /// Bytes that are not UTF-8: shown as U+FFFD.
    InvalidUtf8,
    /// The correlation was missing on a GPU event and was found through a flow arrow.
    CorrelationFromFlow,
    /// An event that is in the file twice: counted once.
    DuplicateEvent,
}

impl Repair {
    pub fn describe(self) -> &'static str {
        match self {
            Self::NegativeDuration => "negative duration set to zero",
            Self::MissingDuration => "missing duration set to zero",
            Self::UnusableDuration => "unusable duration set to zero",
            Self::UnusableSize => "unusable size treated as not recorded",
            Self::StrayBackslash => "stray backslash kept as a character",
            Self::InvalidUtf8 => "invalid UTF-8 replaced",
            Self::CorrelationFromFlow => "correlation found through a flow arrow",
            Self::DuplicateEvent => "duplicate left out",
        }
    }
}

/// GPU work that is in the file but missing from the trace: whole kinds of work, or their times. It is not missing
/// from one time range but throughout, so shares computed from the rest are misleading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostWork {
    /// Kinds of work with rows that could not be read.
    pub damaged: BTreeMap<EventKind, LostRows>,
    /// Kinds of work with rows that were not read because of the memory limit.
    pub beyond_memory: BTreeSet<EventKind>,
    /// Events kept without a duration, because the file has no usable end time for them.
    pub without_end: BTreeMap<EventKind, u64>,
    /// Events left out, because their time is far from all others.
    #[serde(default)]
    pub stray: BTreeMap<EventKind, u64>,
    /// Nanoseconds in which no kernels were recorded, of those that the file covers: the recorder samples them.
    #[serde(default)]
    pub kernels_off: LostRows,
}

impl LostWork {
    fn absorb(&mut self, other: Self) {
        for (kind, rows) in other.damaged {
            self.damaged.entry(kind).or_default().add(rows.at_most, rows.of);
        }
        self.beyond_memory.extend(other.beyond_memory);
        for (kind, count) in other.without_end {
            *self.without_end.entry(kind).or_default() += count;
        }
        for (kind, count) in other.stray {
            *self.stray.entry(kind).or_default() += count;
        }
        self.kernels_off.add(other.kernels_off.at_most, other.kernels_off.of);
    }
}

/// Rows of damaged tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRows {
    /// Upper bound of the rows lost; all rows if it is unknown.
    pub at_most: u64,
    /// Rows of these tables, including the lost ones.
    pub of: u64,
}

impl LostRows {
    pub(crate) fn add(&mut self, at_most: u64, of: u64) {
        self.at_most = self.at_most.saturating_add(at_most);
        self.of = self.of.saturating_add(of);
    }
}

/// What was read, what was skipped on purpose, what was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportStats {
    /// Bytes of the file on disk; for a stream, the bytes read.
    pub file_bytes: u64,
    /// Whether these bytes are compressed, so that `json_bytes` differs.
    pub compressed: bool,
    /// Bytes of JSON, after decompression.
    pub json_bytes: u64,
    /// All objects in the list of events, or rows of a table, kept or not.
    pub objects: u64,
    /// Events in the table.
    pub events: u64,
    /// Complete and readable, but not kept because no analysis needs them; by what they are.
    pub not_kept: BTreeMap<String, u64>,
    /// Categories without a kind of their own (kept as [`EventKind::Other`](crate::EventKind::Other)).
    pub unknown_categories: BTreeMap<String, u64>,
    pub repairs: BTreeMap<Repair, u64>,
    pub losses: Vec<Loss>,
    pub lost_work: LostWork,
    /// Whether some operator carries its input shapes, or its stack.
    pub shapes_seen: bool,
    pub stacks_seen: bool,
}

impl ImportStats {
    /// Whether the file is complete: nothing was lost, and its end was seen.
    pub fn is_complete(&self) -> bool {
        self.losses.is_empty()
    }

    pub(crate) fn reached_memory_bound(&self) -> bool {
        self.losses.iter().any(|loss| loss.what == LossKind::MemoryBound)
    }

    pub(crate) fn lose(&mut self, what: LossKind, offset: u64, bytes: u64) {
        self.add_loss(Loss { what, table: None, first_offset: offset, count: 1, bytes });
    }

    /// Several losses of one kind that have no position in the file.
    pub(crate) fn lose_several(&mut self, what: LossKind, count: u64) {
        self.add_loss(Loss { what, table: None, first_offset: 0, count, bytes: 0 });
    }

    /// Something in one table of a database.
    pub(crate) fn lose_in(&mut self, table: &str, what: LossKind) {
        self.add_loss(Loss { what, table: Some(table.to_owned()), first_offset: 0, count: 1, bytes: 0 });
    }

    pub(crate) fn repair(&mut self, what: Repair) {
        *self.repairs.entry(what).or_default() += 1;
    }

    fn add_loss(&mut self, loss: Loss) {
        match self.losses.iter_mut().find(|known| known.what == loss.what && known.table == loss.table) {
            Some(known) => {
                known.first_offset = known.first_offset.min(loss.first_offset);
                known.count += loss.count;
                known.bytes += loss.bytes;
            }
            None => self.losses.push(loss),
        }
    }

    /// Adds the result of another part of the same file.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.compressed |= other.compressed;
        self.file_bytes += other.file_bytes;
        self.json_bytes += other.json_bytes;
        self.objects += other.objects;
        self.events += other.events;
        for (what, count) in other.not_kept {
            add_named(&mut self.not_kept, what, count);
        }
        for (what, count) in other.unknown_categories {
            add_named(&mut self.unknown_categories, what, count);
        }
        for (what, count) in other.repairs {
            *self.repairs.entry(what).or_default() += count;
        }
        for loss in other.losses {
            self.add_loss(loss);
        }
        self.lost_work.absorb(other.lost_work);
        self.shapes_seen |= other.shapes_seen;
        self.stacks_seen |= other.stacks_seen;
    }
}

/// Names counted separately. A damaged or hostile file may have millions; the rest goes into one sum.
const NAMES_COUNTED: usize = 60;

fn add_named(counts: &mut BTreeMap<String, u64>, what: String, count: u64) {
    let what =
        if counts.len() < NAMES_COUNTED || counts.contains_key(&what) { what } else { "others".to_owned() };
    *counts.entry(what).or_default() += count;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absorbing_keeps_lost_work() {
        let mut part = ImportStats::default();
        part.lost_work.damaged.entry(EventKind::Copy).or_default().add(3, 10);
        part.lost_work.beyond_memory.insert(EventKind::Kernel);
        part.lost_work.without_end.insert(EventKind::Memset, 2);
        part.lost_work.stray.insert(EventKind::Memset, 1);
        let mut all = ImportStats::default();
        all.absorb(part.clone());
        assert_eq!(all.lost_work, part.lost_work);
        all.absorb(part);
        assert_eq!(all.lost_work.damaged[&EventKind::Copy], LostRows { at_most: 6, of: 20 });
        assert_eq!(all.lost_work.beyond_memory, BTreeSet::from([EventKind::Kernel]));
        assert_eq!(all.lost_work.without_end[&EventKind::Memset], 4);
        assert_eq!(all.lost_work.stray[&EventKind::Memset], 2);
    }
}
