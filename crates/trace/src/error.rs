//! Why could nothing be read? One sentence each, with the next step.

use std::io;
use std::path::{Path, PathBuf};

/// Nothing could be read. Partial data is not an error: see [`ImportStats`](crate::ImportStats).
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
        "{} is JSON but not a profiler trace: it has no traceEvents (its keys are {keys}); \
         pass the file that torch.profiler's export_chrome_trace wrote",
        path.display()
    )]
    OtherJson { path: PathBuf, keys: String },
    #[error(
        "{} has no profiler events; pass the file that torch.profiler's export_chrome_trace wrote",
        path.display()
    )]
    NoEvents { path: PathBuf },
    #[error("{} ends at byte {offset}, before any event: the profiler was stopped while writing, or the copy failed", path.display())]
    CutBeforeEvents { path: PathBuf, offset: u64 },
    #[error("{} is not a profiler trace: its traceEvents is not a list of events", path.display())]
    EventsAreNoList { path: PathBuf },
    #[error("{} is an Nsight Systems report, which only nsys can read; export it: {}", path.display(), export_command(path))]
    NsightReport { path: PathBuf },
    #[error("{} is an SQLite database that {how}, but databases can only be read from a plain file: {hint}", path.display())]
    DatabaseNeedsFile { path: PathBuf, how: &'static str, hint: &'static str },
    #[error(
        "{} is an SQLite database but not an Nsight Systems export (its tables are {tables}); \
         pass the file that nsys export --type sqlite wrote",
        path.display()
    )]
    OtherDatabase { path: PathBuf, tables: String },
    #[error("{} is an SQLite database that cannot be read: {reason}; export the report again", path.display())]
    DatabaseUnreadable { path: PathBuf, reason: String },
    #[error(
        "{} has no events: its rows are still in the write-ahead log next to it (-wal), which is not read; merge them with \
         sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)', or export the report again",
        path.display(),
        quoted(path)
    )]
    RowsInJournal { path: PathBuf },
    #[error(
        "{} is an Nsight Systems export without any CUDA or NVTX events; \
         record with nsys profile --trace=cuda,nvtx",
        path.display()
    )]
    EmptyExport { path: PathBuf },
    #[error("{} is a recording without any events: the process did not use CUDA while it was recorded", path.display())]
    EmptyRecording { path: PathBuf },
    #[error("{} is a recording of which no event can be read: {what}, at byte {offset}; copy it again, or record again", path.display())]
    DamagedRecording { path: PathBuf, what: &'static str, offset: u64 },
    #[error("{} is {what} without any events: {hint}", path.display())]
    NoEventsIn {
        path: PathBuf,
        /// What the file is.
        what: &'static str,
        /// How to get events into it.
        hint: &'static str,
    },
    #[error("{} is a gzip file that is damaged or cut at byte {offset}, before anything can be read", path.display())]
    NothingInflated { path: PathBuf, offset: u64 },
    #[error(
        "{} does not fit into --memory: reading stops before its first event; raise --memory{}",
        path.display(),
        takes.map(|bytes| format!(" (the whole file needs about {} MB)", bytes.div_ceil(1_000_000))).unwrap_or_default()
    )]
    MemoryTooSmall {
        path: PathBuf,
        /// Approximate memory for all of its events; `None` if that is known only after reading them.
        takes: Option<u64>,
    },
    #[error("{}: reading was interrupted", path.display())]
    Interrupted { path: PathBuf },
}

/// The command that turns a report into a database that can be read.
fn export_command(report: &Path) -> String {
    format!("nsys export --type sqlite -o {} {}", quoted(&report.with_extension("sqlite")), quoted(report))
}

/// Quoted so that a shell takes it as one word.
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
