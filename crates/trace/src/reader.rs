//! What does a reader of a file format do? Every format is one [`Reader`] in [`readers`](crate::readers).

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::format::Format;

/// Reads files of one format.
///
/// To add a format: write a file that implements this trait and declares its [`Format`], add its module to `lib.rs`,
/// and add a line to `registry.rs`. Sniffing, discovery, help texts and Python use that list.
pub trait Reader: Sync {
    /// The name of the format and of its files.
    fn format(&self) -> &'static Format;

    /// How likely a file has this format, by its first bytes (up to [`SNIFFED`]) and its name.
    fn sniff(&self, head: &[u8], path: &Path) -> Confidence;

    /// Reads a file to its end or to the memory limit of `options`. Partial data is not an error: it goes into the
    /// trace, and losses go into its [`ImportStats`](crate::ImportStats).
    ///
    /// # Errors
    /// If nothing in it can be read.
    fn read(
        &self,
        source: Source<'_>,
        trace: &mut TraceBuilder,
        options: &ReadOptions,
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError>;
}

/// The error if no event was read and there is no better reason: the memory limit, else `empty`.
pub(crate) fn require_events(trace: &TraceBuilder, path: &Path, empty: OpenError) -> Result<(), OpenError> {
    match () {
        () if !trace.is_empty() => Ok(()),
        () if trace.stats().reached_memory_bound() => {
            Err(OpenError::MemoryTooSmall { path: path.to_owned(), takes: None })
        }
        () => Err(empty),
    }
}

/// Bytes passed to [`Reader::sniff`], if the file is that long.
pub const SNIFFED: usize = 64;

/// How sure a reader is about a file. If two are equally sure, the later one in the registry reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    No,
    /// Possible; for the one reader to try if no other recognizes the file.
    Fallback,
    /// The name matches, and the first bytes do not contradict it.
    ByName,
    /// The first bytes match.
    ByContent,
}

/// Where the bytes of a file come from.
pub struct Source<'a> {
    /// The name of the file, or its label in messages.
    pub path: &'a Path,
    pub kind: SourceKind,
    /// All of its bytes, inflated if they were compressed.
    pub stream: &'a mut (dyn Read + Send),
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What a source supports in addition to sequential reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A plain file with this many bytes, which can be opened again by its path.
    File {
        bytes: u64,
    },
    /// A file or stream that is inflated while it is read.
    Compressed,
    Stream,
}

/// How to read. The default suits an interactive machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Scanning threads; one more thread reads and inflates.
    pub threads: usize,
    /// Reading stops when the trace uses this many bytes of memory.
    pub memory_bound: u64,
}

impl ReadOptions {
    pub(crate) fn new(threads: usize, memory_bound: u64) -> Self {
        Self { threads, memory_bound }
    }

    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    pub fn memory_bound(mut self, bytes: u64) -> Self {
        self.memory_bound = bytes;
        self
    }
}

/// How much has been read, in bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub read: u64,
    /// `None` for streams.
    pub total: Option<u64>,
}

/// Reports progress, and lets the caller stop reading.
pub struct Watch<'a> {
    read: Arc<AtomicU64>,
    total: Option<u64>,
    report: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    interrupted: bool,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("read", &self.read).field("total", &self.total).finish_non_exhaustive()
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        read: Arc<AtomicU64>,
        total: Option<u64>,
        report: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Self {
        Self { read, total, report, interrupted: false }
    }

    /// Reports how much of the source has been read. Readers call it regularly, and return when it breaks.
    pub fn tick(&mut self) -> ControlFlow<()> {
        let read = self.read.load(Ordering::Relaxed);
        self.report(read)
    }

    /// Like [`tick`](Self::tick), for readers with random access: `share` of the source is done.
    pub fn tick_at(&mut self, share: f64) -> ControlFlow<()> {
        let total = self.total.unwrap_or(0);
        self.report((share.clamp(0.0, 1.0) * total as f64) as u64)
    }

    fn report(&mut self, read: u64) -> ControlFlow<()> {
        let next = (self.report)(Progress { read, total: self.total });
        self.interrupted |= next.is_break();
        next
    }

    /// Whether the caller stopped reading.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

/// Reads once; retries if a signal interrupts it.
pub(crate) fn read_some(source: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
