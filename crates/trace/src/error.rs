//! Why could nothing be read? One sentence each, with what to do.

use std::io;
use std::path::{Path, PathBuf};

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
    #[error("{} is an Nsight Systems report, which only nsys can read; export it: {}", path.display(), export_command(path))]
    NsightReport { path: PathBuf },
    #[error("{} is an SQLite database that {how}, and those are read from files alone: {hint}", path.display())]
    DatabaseNeedsFile { path: PathBuf, how: &'static str, hint: &'static str },
    #[error(
        "{} is an SQLite database but not an export of Nsight Systems (its tables are {tables}); \
         give what nsys export --type sqlite wrote",
        path.display()
    )]
    OtherDatabase { path: PathBuf, tables: String },
    #[error("{} is an SQLite database that cannot be read: {reason}; export the report again", path.display())]
    DatabaseUnreadable { path: PathBuf, reason: String },
    #[error(
        "{} holds no events: its rows lie in the journal beside it, which is not read; bring them in with \
         sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)', or export the report again",
        path.display(),
        quoted(path)
    )]
    RowsInJournal { path: PathBuf },
    #[error(
        "{} is an export of Nsight Systems without any event of CUDA or NVTX; \
         record with nsys profile --trace=cuda,nvtx",
        path.display()
    )]
    EmptyExport { path: PathBuf },
    #[error("{} is a recording without any event: the process used no CUDA while it was recorded", path.display())]
    EmptyRecording { path: PathBuf },
    #[error("{} is {what} without any event: {hint}", path.display())]
    NoEventsIn {
        path: PathBuf,
        /// What the file is.
        what: &'static str,
        /// How to have events in it.
        hint: &'static str,
    },
    #[error("{} is a gzip file that breaks off at byte {offset}, before any of it can be read", path.display())]
    NothingInflated { path: PathBuf, offset: u64 },
    #[error(
        "{} is larger than --memory allows: reading ends before its first event; raise --memory{}",
        path.display(),
        takes.map(|bytes| format!(", the whole of it takes about {} MB", bytes.div_ceil(1_000_000))).unwrap_or_default()
    )]
    MemoryTooSmall {
        path: PathBuf,
        /// What all of its events take, about; `None` where only reading them would tell.
        takes: Option<u64>,
    },
    #[error("{}: reading was interrupted", path.display())]
    Interrupted { path: PathBuf },
}

/// What turns a report into a database that can be read.
fn export_command(report: &Path) -> String {
    format!("nsys export --type sqlite -o {} {}", quoted(&report.with_extension("sqlite")), quoted(report))
}

/// As a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+=:@,".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        assert_eq!(
            export_command(Path::new("runs/x.nsys-rep")),
            "nsys export --type sqlite -o runs/x.sqlite runs/x.nsys-rep"
        );
        assert_eq!(
            export_command(Path::new("my run's.nsys-rep")),
            r"nsys export --type sqlite -o 'my run'\''s.sqlite' 'my run'\''s.nsys-rep'"
        );
    }
}
