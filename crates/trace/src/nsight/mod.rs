//! The reader of Nsight Systems' SQLite exports (`nsys export --type sqlite`).
//!
//! An export is a set of tables, one per kind of event, that refer to each other by id. The tables and columns depend
//! on the version and on what was recorded: all are looked up, and missing ones are skipped.

mod about;
mod ahead;
mod calls;
mod connection;
mod database;
mod devices;
mod enumeration;
mod faults;
mod format;
mod identity;
mod memory_use;
mod nccl;
mod os_runtime;
mod pages;
mod payload;
mod ranges;
pub(crate) mod report;
mod rows;
mod strings;
mod waits;
mod work;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use self::database::{Database, End, Table};
use self::devices::Devices;
use self::enumeration::Enumerations;
pub(crate) use self::format::FORMAT;
use self::identity::{Callers, GlobalId, Process, Processes};
use self::rows::{Next, Row};
use self::strings::Strings;
use self::waits::EventRecords;
use crate::error::OpenError;
use crate::interval::Interval;
use crate::model::builder::TraceBuilder;
use crate::model::format::Format;
use crate::model::stats::{LossKind, Repair};
use crate::model::time::Timestamp;
use crate::model::track::TrackId;
use crate::reader::{Confidence, ReadOptions, Reader, Source, SourceKind, Watch};

/// Rows between two checks of memory use and of cancellation.
const ROWS_BETWEEN_CHECKS: u64 = 4096;

/// Memory of one row that is kept, an event or a string, including the spare capacity of growing columns.
const BYTES_PER_ROW: u64 = 100;

/// Tables of events that are read, other than those of device work.
const OTHERS_READ: [&str; 10] = [
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_DRIVER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "PROFILER_OVERHEAD",
    "NVTX_EVENTS",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "DIAGNOSTIC_EVENT",
];

fn tables_read() -> impl Iterator<Item = &'static &'static str> {
    calls::WORK.iter().chain(&OTHERS_READ)
}

/// What `nsys export --type sqlite` writes.
pub(crate) struct Nsight;

impl Reader for Nsight {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn sniff(&self, head: &[u8], _: &Path) -> Confidence {
        if head.starts_with(b"SQLite format 3\0") { Confidence::ByContent } else { Confidence::No }
    }

    /// A database is read with random access, not from beginning to end.
    fn read(
        &self,
        source: Source<'_>,
        trace: &mut TraceBuilder,
        options: &ReadOptions,
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError> {
        let needs_file = |how, hint| OpenError::DatabaseNeedsFile { path: source.path.to_owned(), how, hint };
        match source.kind {
            SourceKind::File { bytes } => read(source.path, bytes, trace, options, watch),
            SourceKind::Compressed => Err(needs_file("is compressed", "gunzip it first")),
            SourceKind::Stream => Err(needs_file("comes from a stream", "save it to a file and pass that")),
        }
    }
}

/// Reads an export to its end or to the memory limit.
fn read(
    path: &Path,
    file_bytes: u64,
    trace: &mut TraceBuilder,
    options: &ReadOptions,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    let at = || path.to_owned();
    let database = Database::open(path, options.threads)
        .map_err(|error| OpenError::DatabaseUnreadable { path: at(), reason: error.to_string() })?;
    let has_journal = has_journal(path);
    if let Some(error) = not_an_export(path, &database, has_journal) {
        return Err(error);
    }
    let mut reading = Reading::of(&database, file_bytes, trace, options.memory_bound, watch);
    if let Some(cut) = missing_bytes(path, file_bytes) {
        reading.trace.lose(LossKind::DatabaseCut, file_bytes, cut);
    }
    if has_journal {
        reading.trace.stats_mut().lose_several(LossKind::RowsInJournal, 1);
    }
    reading.read_all();
    let takes = reading.takes();
    reading.finish();
    if !trace.is_empty() {
        return Ok(());
    }
    Err(match () {
        () if trace.stats().reached_memory_bound() => {
            OpenError::MemoryTooSmall { path: at(), takes: Some(takes) }
        }
        () if has_journal => OpenError::RowsInJournal { path: at() },
        () if trace.stats().is_complete() => OpenError::EmptyExport { path: at() },
        () => {
            let reason = "none of its events can be read".to_owned();
            OpenError::DatabaseUnreadable { path: at(), reason }
        }
    })
}

/// Why a database without any Nsight tables is not read.
fn not_an_export(path: &Path, database: &Database, has_journal: bool) -> Option<OpenError> {
    let path = path.to_owned();
    let tables = database.tables();
    if tables.iter().any(|table| is_nsights(&table.name)) {
        return None;
    }
    if has_journal {
        return Some(OpenError::RowsInJournal { path });
    }
    if tables.is_empty() {
        let reason = "it has no table that can be read".to_owned();
        return Some(OpenError::DatabaseUnreadable { path, reason });
    }
    if tables.iter().any(|table| table.name.starts_with("rocpd_")) {
        let (what, hint) =
            ("a rocprofv3 database", "record with torch.profiler, which has ROCm's copies and kernels too");
        return Some(OpenError::Unsupported { path, what, hint });
    }
    let mut names: Vec<_> = tables.iter().take(6).map(|table| table.name.as_str()).collect();
    names.extend((tables.len() > 6).then_some("…"));
    Some(OpenError::OtherDatabase { path, tables: names.join(", ") })
}

/// Bytes that the header counts but the file lacks.
fn missing_bytes(path: &Path, file_bytes: u64) -> Option<u64> {
    let mut header = [0; 100];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    (u64::from(pages) * page).checked_sub(file_bytes).filter(|missing| *missing > 0)
}

/// Whether rows may be in a write-ahead log next to the database. The database is opened as immutable so that SQLite
/// writes no files next to it; SQLite then ignores the log.
fn has_journal(path: &Path) -> bool {
    // The size of the log's header, before its first page.
    const HEADER: u64 = 32;
    // It is next to the file itself, not next to a link to it.
    let mut journal = path.canonicalize().unwrap_or_else(|_| path.to_owned()).into_os_string();
    journal.push("-wal");
    fs::metadata(journal).is_ok_and(|about| about.is_file() && about.len() > HEADER)
}

fn is_nsights(table: &str) -> bool {
    let table = table.to_ascii_uppercase();
    table.starts_with("CUPTI_ACTIVITY_KIND_")
        // What old versions write of a program that does not use CUDA.
        || table.starts_with("TARGET_INFO_")
        || ["META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS", "CUDA_UM_GPU_PAGE_FAULT_EVENTS"]
            .contains(&table.as_str())
}

/// Where device work ran, as a row says it.
type StreamKey = (Option<Process>, Option<i64>, Option<i64>, Option<i64>);

struct Reading<'a, 'w> {
    database: &'a Database,
    trace: &'a mut TraceBuilder,
    file_bytes: u64,
    strings: Strings,
    enumerations: Enumerations,
    processes: Processes,
    callers: Callers,
    devices: Devices,
    event_records: EventRecords,
    /// The thread and the stream of the last row: most rows are of the same one.
    last_thread: Option<(GlobalId, TrackId)>,
    last_stream: Option<(StreamKey, TrackId)>,
    memory_bound: u64,
    rows: u64,
    rows_in_all: u64,
    /// Stopped at the memory limit or by the caller.
    stopped: bool,
    watch: &'a mut Watch<'w>,
}

impl<'a, 'w> Reading<'a, 'w> {
    fn of(
        database: &'a Database,
        file_bytes: u64,
        trace: &'a mut TraceBuilder,
        memory_bound: u64,
        watch: &'a mut Watch<'w>,
    ) -> Self {
        let enumerations = Enumerations::of(database, trace.stats_mut());
        Self {
            database,
            trace,
            file_bytes,
            strings: Strings::default(),
            enumerations,
            processes: Processes::default(),
            callers: Callers::default(),
            devices: Devices::default(),
            event_records: EventRecords::default(),
            last_thread: None,
            last_stream: None,
            memory_bound,
            rows: 0,
            rows_in_all: database.tables().iter().map(|table| table.rows).fold(0, u64::saturating_add),
            stopped: false,
            watch,
        }
    }

    /// The track of a thread.
    fn thread_track(&mut self, thread: GlobalId) -> TrackId {
        if let Some((_, track)) = self.last_thread.filter(|(last, _)| *last == thread) {
            return track;
        }
        let track = self.trace.track(self.processes.thread(thread));
        self.last_thread = Some((thread, track));
        track
    }

    /// The track of device work: process, device, context, stream.
    fn stream_track(&mut self, key: StreamKey) -> TrackId {
        if let Some((_, track)) = self.last_stream.filter(|(last, _)| *last == key) {
            return track;
        }
        let (process, device, context, stream) = key;
        let track = self.trace.track(self.devices.stream(process, device, context, stream));
        self.last_stream = Some((key, track));
        track
    }

    /// Room for the events of all tables. A damaged file may have row numbers beyond all rows, but not more rows than bytes.
    fn reserve(&mut self) {
        const SMALLEST_EVENT: u64 = 24;
        let database = self.database;
        let rows = |names: &mut dyn Iterator<Item = &'static &'static str>| {
            let tables = names.flat_map(|name| database.versions_of(name));
            tables.map(|table| table.rows).fold(0, u64::saturating_add)
        };
        let most = (self.file_bytes / SMALLEST_EVENT).min(self.memory_bound / BYTES_PER_ROW);
        let count = |rows: u64| usize::try_from(rows.min(most)).unwrap_or(0);
        self.trace.reserve(count(rows(&mut tables_read())));
        // Ranges come last, and have no ids.
        self.trace.reserve_ids(count(rows(&mut tables_read().filter(|name| **name != ranges::TABLE))));
    }

    /// Device work comes first: most analyses need it if memory runs out.
    fn read_all(&mut self) {
        self.reserve();
        self.read_strings();
        self.read_about();
        self.read_callers();
        self.read_kernels();
        self.read_graphs();
        self.read_copies();
        self.read_memsets();
        self.read_faults();
        self.read_calls();
        self.read_waits();
        self.read_os_runtime();
        self.read_ranges();
        self.read_overhead();
        self.read_memory_use();
        self.count_tables_not_read();
    }

    fn finish(self) {
        self.trace.origin().ambiguous_devices = self.devices.ambiguous(self.callers.are_several());
    }

    fn read_strings(&mut self) {
        self.each("STRINGIDS", &["id", "value"], &mut |reading, row| {
            if let (Some(id), Some(text)) = (row.integer(0), row.text(1)) {
                reading.strings.add(id, text);
            }
        });
    }

    /// Rows of all versions of a table.
    fn each(&mut self, name: &str, columns: &[&str], add: &mut dyn FnMut(&mut Self, &Row<'_>)) {
        let database = self.database;
        for table in database.versions_of(name) {
            self.each_of(table, columns, add);
        }
    }

    fn each_of(&mut self, table: &Table, columns: &[&str], add: &mut dyn FnMut(&mut Self, &Row<'_>)) {
        if self.stopped {
            if let Some(work) = work::kind_in(&table.name).filter(|_| table.rows > 0) {
                self.trace.stats_mut().lost_work.beyond_memory.insert(work);
            }
            return;
        }
        let database = self.database;
        let end = database.each_row(table, columns, &mut |row| {
            add(self, row);
            self.rows += 1;
            if self.rows.is_multiple_of(ROWS_BETWEEN_CHECKS) { self.look() } else { Next::Row }
        });
        let work = work::kind_in(&table.name);
        match end {
            End::Whole => {}
            End::Damaged { at_most } => {
                let stats = self.trace.stats_mut();
                stats.lose_in(&table.name, LossKind::DamagedTable);
                if let Some(work) = work {
                    // If the loss cannot be counted, all rows may be lost.
                    let rows = table.rows.max(1);
                    stats.lost_work.damaged.entry(work).or_default().add(at_most.unwrap_or(rows), rows);
                }
            }
            End::Stopped => self.trace.stats_mut().lost_work.beyond_memory.extend(work),
        }
        // A small table may have exceeded the limit.
        self.look();
    }

    /// Reports progress, and stops reading at the memory limit.
    fn look(&mut self) -> Next {
        let share = self.rows.min(self.rows_in_all) as f64 / self.rows_in_all.max(1) as f64;
        self.stopped |= self.watch.tick_at(share).is_break();
        let left = self.memory_bound.saturating_sub(self.strings.heap_bytes() as u64);
        if self.trace.is_full(left) && !self.stopped {
            self.stopped = true;
            self.trace.lose(LossKind::MemoryBound, (share * self.file_bytes as f64) as u64, 0);
        }
        if self.stopped { Next::Stop } else { Next::Row }
    }

    /// Start and length of an event, or a loss if it has no start.
    fn time(&mut self, table: &str, start: Option<i64>, end: Option<i64>) -> Option<Interval> {
        // Beyond this, sums of times could overflow; it is 73 years.
        const FURTHEST: u64 = 1 << 61;
        let usable = |time: &i64| time.unsigned_abs() < FURTHEST;
        let Some(start) = start.filter(usable) else {
            self.trace.stats_mut().lose_in(table, LossKind::UnusableRow);
            return None;
        };
        let fault = match end {
            None => Some(Repair::MissingDuration),
            Some(end) if !usable(&end) => Some(Repair::UnusableDuration),
            Some(end) if end < start => Some(Repair::NegativeDuration),
            Some(_) => None,
        };
        if let Some(fault) = fault {
            self.trace.stats_mut().repair(fault);
            if let Some(work) = work::kind_in(table) {
                *self.trace.stats_mut().lost_work.without_end.entry(work).or_default() += 1;
            }
        }
        let end = end.filter(|_| fault.is_none()).unwrap_or(start);
        Some(Interval::new(Timestamp::from_nanos(start), Timestamp::from_nanos(end)))
    }

    /// The process that a row names; if it names none, the only process that can be the caller.
    fn process_of(&self, global_pid: Option<i64>, correlation: Option<i64>) -> Option<Process> {
        global_pid.map(|id| GlobalId::of(id).process()).or_else(|| self.callers.of(correlation))
    }

    /// Approximate memory for all events and strings of the file, in whole megabytes because small files need more
    /// per row.
    fn takes(&self) -> u64 {
        let of = |name: &&str| self.database.versions_of(name);
        let tables = tables_read().flat_map(of).chain(of(&"STRINGIDS"));
        let rows = tables.map(|table| table.rows).fold(0, u64::saturating_add);
        rows.saturating_mul(BYTES_PER_ROW).max(1).div_ceil(1_000_000).saturating_mul(1_000_000)
    }

    /// Events of kinds that no analysis needs: operating system calls, samples, other libraries.
    fn count_tables_not_read(&mut self) {
        let database = self.database;
        let mut not_read = database.tables();
        let read: Vec<_> = tables_read()
            .chain([&os_runtime::TABLE])
            .flat_map(|name| database.versions_of(name))
            .map(|table| &table.name)
            .collect();
        not_read.retain(|table| {
            table.rows > 0 && (table.has("start") || table.has("timestamp")) && !read.contains(&&table.name)
        });
        for table in not_read {
            self.trace.stats_mut().objects += table.rows;
            self.trace.stats_mut().not_kept.insert(format!("rows of {}", table.name), table.rows);
        }
    }
}
