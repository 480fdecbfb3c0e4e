//! Why could nothing be read? One sentence each, with what to do.

use std::io;
use std::path::PathBuf;

/// Nothing at all could be read. Anything less than that is not an error but
/// [`ImportStats`](crate::ImportStats).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is a directory; name the files in it", path.display())]
    IsDirectory { path: PathBuf },
    #[error("{} is empty: the profiler was stopped before it wrote anything, or the copy failed", path.display())]
    Empty { path: PathBuf },
    #[error("{} is {what}: {hint}", path.display())]
    Unsupported { path: PathBuf, what: &'static str, hint: &'static str },
    #[error(
        "{} is JSON but not a profiler trace: it has no traceEvents (its members are {keys}); \
         give the file that torch.profiler's export_chrome_trace wrote",
        path.display()
    )]
    OtherJson { path: PathBuf, keys: String },
    #[error(
        "{} holds no profiler event; give the file that torch.profiler's export_chrome_trace wrote",
        path.display()
    )]
    NoEvents { path: PathBuf },
    #[error("{} ends at byte {offset}, before any event: the profiler was stopped while writing, or the copy failed", path.display())]
    CutBeforeEvents { path: PathBuf, offset: u64 },
    #[error("{} is no profiler trace: its traceEvents is not a list of events", path.display())]
    EventsAreNoList { path: PathBuf },
    #[error("{} is a recording without any event: the process used no CUDA while it was recorded", path.display())]
    EmptyRecording { path: PathBuf },
    #[error("{} is a gzip file that breaks off at byte {offset}, before any of it can be read", path.display())]
    NothingInflated { path: PathBuf, offset: u64 },
}
