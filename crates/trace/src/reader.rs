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
/// A new format takes three steps: a file that implements this trait and declares its [`Format`], its module in `lib.rs`,
/// and its line in `registry.rs`. Sniffing, discovery, help texts and Python follow from the list.
pub trait Reader: Sync {
    /// What the format is called, and the names of its files.
    fn format(&self) -> &'static Format;

    /// How likely a file is of this format, by its first bytes ([`SNIFFED`], fewer of a shorter file) and its name.
    fn sniff(&self, head: &[u8], path: &Path) -> Confidence;

    /// Reads a file to its end or to the memory bound of `options`. Partial data is no error: it goes into the trace, and
    /// what was lost into its [`ImportStats`](crate::ImportStats).
    ///
    /// # Errors
    /// If nothing at all in it can be read.
    fn read(
        &self,
        source: Source<'_>,
        trace: &mut TraceBuilder,
        options: &ReadOptions,
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError>;
}

/// What a reader without a better reason answers where it read no event: the memory bound, else `empty`.
pub(crate) fn require_events(trace: &TraceBuilder, path: &Path, empty: OpenError) -> Result<(), OpenError> {
    match () {
        () if !trace.is_empty() => Ok(()),
        () if trace.stats().reached_memory_bound() => {
            Err(OpenError::MemoryTooSmall { path: path.to_owned(), takes: None })
        }
        () => Err(empty),
    }
}

/// Bytes that [`Reader::sniff`] is given, where the file has as many.
pub const SNIFFED: usize = 64;

/// How sure a reader is that a file is its own. Of two that are equally sure the later one in the registry reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    No,
    /// Nothing speaks against it; for one reader, which is tried where no other knows the file.
    Fallback,
    /// Its name says so, and its first bytes do not contradict.
    ByName,
    /// Its first bytes say so.
    ByContent,
}

/// Where the bytes of a file come from.
pub struct Source<'a> {
    /// The file's name, or what stands for it in messages.
    pub path: &'a Path,
    pub kind: SourceKind,
    /// Its bytes from the first one on, inflated where they were compressed.
    pub stream: &'a mut (dyn Read + Send),
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What else a source can do than give its bytes in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A plain file of so many bytes, which can be opened again by its path.
    File {
        bytes: u64,
    },
    /// A file or stream that was inflated.
    Compressed,
    Stream,
}

/// How to read. The default suits an interactive machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Threads that scan; reading and inflating has one more.
    pub threads: usize,
    /// Reading stops when the trace holds this many bytes.
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

/// How far reading has come, in bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub read: u64,
    /// `None` for streams.
    pub total: Option<u64>,
}

/// Whoever watches the reading, and may end it.
pub struct Watch<'a> {
    read: Arc<AtomicU64>,
    total: Option<u64>,
    tell: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
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
        tell: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Self {
        Self { read, total, tell, interrupted: false }
    }

    /// Tells how far the source has been read. Readers call it now and then, and return when it breaks.
    pub fn tick(&mut self) -> ControlFlow<()> {
        let read = self.read.load(Ordering::Relaxed);
        self.tell(read)
    }

    /// As [`tick`](Self::tick), for readers that do not read the source from its beginning to its end: `share` of it is done.
    pub fn tick_at(&mut self, share: f64) -> ControlFlow<()> {
        let total = self.total.unwrap_or(0);
        self.tell((share.clamp(0.0, 1.0) * total as f64) as u64)
    }

    fn tell(&mut self, read: u64) -> ControlFlow<()> {
        let next = (self.tell)(Progress { read, total: self.total });
        self.interrupted |= next.is_break();
        next
    }

    /// Whether reading was ended from outside.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

/// Reads once, again where a signal came in between.
pub(crate) fn read_some(source: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
