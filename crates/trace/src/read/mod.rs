//! From a path or stream to a [`Trace`]. The only part of this crate that does IO.

mod discover;
mod gzip;
mod memory_bound;
mod pipeline;
mod report;
mod size;
mod sniff;
mod stretch;

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use discover::{by_rank, discover, rank_in_name};
pub use report::is_nsight_report;
pub use size::unpacked_size;

use crate::capture;
use crate::error::OpenError;
use crate::model::stats::{ImportStats, LossKind};
use crate::model::trace::Trace;
use crate::nsight;
use crate::read::gzip::{Gzip, read_some};
use crate::read::pipeline::read_all;
use crate::read::report::is_report;
use crate::read::sniff::{Content, SNIFFED, sniff};

/// How to read. The default suits an interactive machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Threads that scan; reading and inflating has one more.
    pub threads: usize,
    /// Reading stops when the trace holds this many bytes.
    pub memory_bound: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            // Inflating is one thread's work, which few scanning threads keep up with.
            threads: std::thread::available_parallelism().map_or(1, usize::from).min(16),
            memory_bound: memory_bound::default_memory_bound(),
        }
    }
}

impl ReadOptions {
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    pub fn memory_bound(mut self, bytes: u64) -> Self {
        self.memory_bound = bytes;
        self
    }
}

/// How far reading has come, in bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub read: u64,
    /// `None` for streams.
    pub total: Option<u64>,
}

/// Reads one trace file. Partial data is no error: see [`Trace::stats`].
///
/// # Errors
/// If the file cannot be opened, or nothing at all in it can be read as a trace.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Trace, OpenError> {
    open_with_progress(path, options, &mut |_| ControlFlow::Continue(()))
}

/// As [`open`], telling how far it has come; who is told may end it.
///
/// # Errors
/// As [`open`], and [`OpenError::Interrupted`] if it was ended.
pub fn open_with_progress(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trace, OpenError> {
    let at = || path.to_owned();
    let file = File::open(path).map_err(|source| OpenError::Io { path: at(), source })?;
    let about = file.metadata().map_err(|source| OpenError::Io { path: at(), source })?;
    if about.is_dir() {
        return Err(OpenError::IsDirectory { path: at() });
    }
    let total = about.is_file().then_some(about.len());
    let mut source = Peekable::new(&file);
    let head = source.peek().map_err(|source| OpenError::Io { path: at(), source })?;
    if let (Content::Sqlite, Some(file_bytes)) = (sniff(head), total) {
        return nsight::read(path, file_bytes, options.memory_bound, progress);
    }
    if is_report(path, head) {
        return Err(OpenError::NsightReport { path: at() });
    }
    read_stream(source, path, total, options, progress)
}

/// Reads a trace from a stream, e.g. standard input. `label` names it in errors.
///
/// # Errors
/// If nothing at all in it can be read as a trace.
///
/// ```
/// # use std::path::Path;
/// use busbound_trace::{EventKind, ReadOptions, read};
/// let json = br#"[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":2.5}, {"ph""#;
/// let trace = read(&json[..], Path::new("cut.json"), &ReadOptions::default())?;
/// let kernel = trace.events().next().ok_or("no event")?;
/// assert_eq!(kernel.kind(), EventKind::Kernel);
/// assert_eq!(kernel.duration().get(), 2_500);
/// assert!(!trace.stats().is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(source: impl Read + Send, label: &Path, options: &ReadOptions) -> Result<Trace, OpenError> {
    read_stream(source, label, None, options, &mut |_| ControlFlow::Continue(()))
}

/// As [`read`], telling how far it has come; who is told may end it.
///
/// # Errors
/// As [`read`], and [`OpenError::Interrupted`] if it was ended.
pub fn read_with_progress(
    source: impl Read + Send,
    label: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trace, OpenError> {
    read_stream(source, label, None, options, progress)
}

fn read_stream(
    source: impl Read + Send,
    path: &Path,
    total: Option<u64>,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trace, OpenError> {
    let counted = Arc::new(AtomicU64::new(0));
    let mut source = Peekable::new(Counted { source, count: Arc::clone(&counted) });
    let head = source.peek().map_err(|error| OpenError::Io { path: path.to_owned(), source: error })?;
    if head.is_empty() {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    let interrupted = Cell::new(false);
    let mut tick = || {
        let next = progress(Progress { read: counted.load(Ordering::Relaxed), total });
        interrupted.set(next.is_break());
        next
    };
    let ended = || match interrupted.get() {
        true => Err(OpenError::Interrupted { path: path.to_owned() }),
        false => Ok(()),
    };
    let mut assembler = match sniff(head) {
        Content::Unsupported { what, hint } => {
            return Err(OpenError::Unsupported { path: path.to_owned(), what, hint });
        }
        Content::Sqlite => return Err(only_as_file(path, "comes as a stream", "save it, and name the file")),
        Content::Capture => {
            let mut trace = capture::read(source, options.memory_bound, &mut tick);
            ended()?;
            trace.stats.file_bytes = total.unwrap_or_else(|| counted.load(Ordering::Relaxed));
            if trace.is_empty() && trace.stats.reached_memory_bound() {
                return Err(OpenError::MemoryTooSmall { path: path.to_owned(), takes: None });
            }
            if trace.is_empty() {
                return Err(OpenError::EmptyRecording { path: path.to_owned() });
            }
            return Ok(trace);
        }
        Content::Text => read_all(source, options.threads, options.memory_bound, &mut tick).assembler,
        Content::Gzip => {
            let mut inflated = Peekable::new(Gzip::new(source));
            let head =
                inflated.peek().map_err(|error| OpenError::Io { path: path.to_owned(), source: error })?;
            if sniff(head) == Content::Sqlite {
                return Err(only_as_file(path, "is compressed", "gunzip it first"));
            }
            let reading = read_all(inflated, options.threads, options.memory_bound, &mut tick);
            let mut assembler = reading.assembler;
            // Damage behind the place where reading stopped concerns nobody.
            if !reading.stopped_early {
                assembler.stats_mut().absorb(reading.source.source.stats);
            }
            assembler.stats_mut().compressed = true;
            assembler
        }
    };
    ended()?;
    assembler.stats_mut().file_bytes = total.unwrap_or_else(|| counted.load(Ordering::Relaxed));
    if assembler.event_count() == 0 && assembler.stats().reached_memory_bound() {
        return Err(OpenError::MemoryTooSmall { path: path.to_owned(), takes: None });
    }
    if assembler.is_empty() && !assembler.envelope().is_trace {
        return Err(not_a_trace(path, assembler.stats(), &assembler.envelope().keys));
    }
    Ok(assembler.finish())
}

/// A database is read here and there, not from its beginning to its end.
fn only_as_file(path: &Path, how: &'static str, hint: &'static str) -> OpenError {
    OpenError::DatabaseNeedsFile { path: path.to_owned(), how, hint }
}

fn not_a_trace(path: &Path, stats: &ImportStats, keys: &[String]) -> OpenError {
    let path = path.to_owned();
    let gzip =
        stats.losses.iter().find(|loss| matches!(loss.what, LossKind::GzipTruncated | LossKind::GzipDamaged));
    if let Some(loss) = gzip.filter(|_| stats.json_bytes == 0) {
        return OpenError::NothingInflated { path, offset: loss.first_offset };
    }
    if let Some(cut) = stats.losses.iter().find(|loss| loss.what == LossKind::EndsBeforeEvents) {
        return OpenError::CutBeforeEvents { path, offset: cut.first_offset };
    }
    if keys.iter().any(|key| key == "traceEvents") {
        return OpenError::EventsAreNoList { path };
    }
    if keys.is_empty() {
        OpenError::NoEvents { path }
    } else {
        OpenError::OtherJson { path, keys: keys.join(", ") }
    }
}

/// Counts what passes, so that another thread can tell how far reading has come.
struct Counted<R> {
    source: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A stream whose first bytes can be looked at before it is read.
struct Peekable<R> {
    source: R,
    head: Vec<u8>,
    given: usize,
}

impl<R: Read> Peekable<R> {
    fn new(source: R) -> Self {
        Self { source, head: Vec::new(), given: 0 }
    }

    fn peek(&mut self) -> io::Result<&[u8]> {
        let mut head = vec![0; SNIFFED];
        let mut len = 0;
        while len < head.len() {
            match read_some(&mut self.source, &mut head[len..])? {
                0 => break,
                read => len += read,
            }
        }
        head.truncate(len);
        self.head = head;
        Ok(&self.head)
    }
}

impl<R: Read> Read for Peekable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.head[self.given..];
        if rest.is_empty() {
            return self.source.read(buffer);
        }
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.given += len;
        Ok(len)
    }
}
