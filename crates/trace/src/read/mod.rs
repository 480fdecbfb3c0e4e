//! From a path or stream to a [`Trace`]. The only part of this crate that opens files, except for databases.

mod discover;
mod gzip;
mod memory_bound;
mod size;
mod sniff;

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use discover::{by_rank, discover, rank_in_name};
pub use size::unpacked_size;

use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::stats::LossKind;
use crate::model::trace::Trace;
use crate::nsight::report;
use crate::read::gzip::Gzip;
use crate::read::sniff::{Content, sniff, surest};
use crate::reader::{Progress, ReadOptions, Reader, SNIFFED, Source, SourceKind, Watch, read_some};

impl Default for ReadOptions {
    fn default() -> Self {
        // Inflating uses one thread; a few scanning threads keep up with it.
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        Self::new(threads, memory_bound::default_memory_bound())
    }
}

/// Reads one trace file. Partial data is not an error: see [`Trace::stats`].
///
/// # Errors
/// If the file cannot be opened, or nothing in it can be read as a trace.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Trace, OpenError> {
    open_with_progress(path, options, &mut |_| ControlFlow::Continue(()))
}

/// Like [`open`], but reports progress; the callback can stop it.
///
/// # Errors
/// Like [`open`], and [`OpenError::Interrupted`] if it was stopped.
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
    read_stream(&file, path, total, options, progress)
}

/// Reads a trace from a stream, e.g. standard input. `label` names it in errors.
///
/// # Errors
/// If nothing in it can be read as a trace.
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

/// Like [`read`], but reports progress; the callback can stop it.
///
/// # Errors
/// Like [`read`], and [`OpenError::Interrupted`] if it was stopped.
pub fn read_with_progress(
    source: impl Read + Send,
    label: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trace, OpenError> {
    read_stream(source, label, None, options, progress)
}

/// Whether the file is an Nsight Systems report, which must be exported before it can be read.
pub fn is_nsight_report(path: &Path) -> bool {
    // Files with other names are not opened: peeking at a pipe would consume its bytes.
    report::is_named_like_report(path)
        && File::open(path).is_ok_and(|file| {
            Peekable::new(file).peek().is_ok_and(|head| {
                let surest = surest(head, path).map(|(_, reader)| reader.format());
                !head.is_empty() && surest == Some(&report::FORMAT)
            })
        })
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
    let mut watch = Watch::new(Arc::clone(&counted), total, progress);
    let mut trace = match sniff(head, path) {
        Content::Unsupported { what, hint } => {
            return Err(OpenError::Unsupported { path: path.to_owned(), what, hint });
        }
        Content::Read(reader) => {
            let kind = total.map_or(SourceKind::Stream, |bytes| SourceKind::File { bytes });
            read_with(reader, Source { path, kind, stream: &mut source }, options, &mut watch)?
        }
        Content::Gzip => read_gzip(source, path, options, &mut watch)?,
    };
    trace.stats_mut().file_bytes = total.unwrap_or_else(|| counted.load(Ordering::Relaxed));
    Ok(trace.finish_file())
}

fn read_with(
    reader: &dyn Reader,
    source: Source<'_>,
    options: &ReadOptions,
    watch: &mut Watch<'_>,
) -> Result<TraceBuilder, OpenError> {
    let path = source.path;
    let mut trace = TraceBuilder::new(reader.format());
    let done = reader.read(source, &mut trace, options, watch);
    if watch.is_interrupted() {
        return Err(OpenError::Interrupted { path: path.to_owned() });
    }
    done.map(|()| trace)
}

/// Reads the contents of a gzip stream, and counts what the stream itself lost.
fn read_gzip(
    source: impl Read + Send,
    path: &Path,
    options: &ReadOptions,
    watch: &mut Watch<'_>,
) -> Result<TraceBuilder, OpenError> {
    let mut inflated = Peekable::new(Gzip::new(source));
    let head = inflated.peek().map_err(|error| OpenError::Io { path: path.to_owned(), source: error })?;
    let reader = match sniff(head, path) {
        Content::Read(reader) => reader,
        Content::Unsupported { what, hint } => {
            return Err(OpenError::Unsupported { path: path.to_owned(), what, hint });
        }
        Content::Gzip => {
            let (what, hint) = ("compressed twice", "decompress it first: gunzip FILE");
            return Err(OpenError::Unsupported { path: path.to_owned(), what, hint });
        }
    };
    let kind = SourceKind::Compressed;
    let read = read_with(reader, Source { path, kind, stream: &mut inflated }, options, watch);
    let stats = inflated.source.stats;
    let broken =
        stats.losses.iter().find(|loss| matches!(loss.what, LossKind::GzipTruncated | LossKind::GzipDamaged));
    if let (true, Some(loss), false) = (inflated.head.is_empty(), broken, watch.is_interrupted()) {
        return Err(OpenError::NothingInflated { path: path.to_owned(), offset: loss.first_offset });
    }
    let mut trace = read?;
    // Damage after the point at which reading stopped does not matter.
    if !trace.stats().reached_memory_bound() {
        trace.stats_mut().absorb(stats);
    }
    trace.stats_mut().compressed = true;
    Ok(trace)
}

/// Counts bytes, so that another thread can see the progress.
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

/// A stream that lets readers look at its first bytes before reading.
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
