//! What can go wrong between a path and an answer? Each error is a complete sentence, so none has a source.

use std::io;
use std::path::{Path, PathBuf};

use busbound_machine::UnknownMachine;
use busbound_trace::OpenError;

/// Why something could not be read, found or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing in the file could be read as a trace.
    #[error("{0}")]
    Trace(OpenError),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The file was read, but its content is invalid.
    #[error("{} {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error(
        "{} contains no traces: no file name ends in {}",
        path.display(),
        suffixes_in_words()
    )]
    NoTraces { path: PathBuf },
    #[error(
        "{} contains no summaries: no file name ends in .rank.json or .fleet.json; `busbound summarize` creates them from traces",
        path.display()
    )]
    NoSummaries { path: PathBuf },
    #[error("no files match {pattern}")]
    NoMatch { pattern: String },
    #[error("{pattern} is not a valid pattern: {why}")]
    Pattern { pattern: String, why: String },
    #[error("{0}")]
    Machine(UnknownMachine),
    /// nsys is installed, but could not export a report.
    #[error("{}: nsys export failed: {why}", report.display())]
    Export { report: PathBuf, why: String },
    #[error("{}: reading was interrupted", path.display())]
    Interrupted { path: PathBuf },
    #[error("{}: {error}", path.display())]
    Render { path: PathBuf, error: busbound_report::RenderError },
}

impl Error {
    /// Whether the request itself is invalid, regardless of the files.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Machine(_))
    }

    /// Whether reading failed because of the storage, so that a retry may succeed.
    pub fn is_storage(&self) -> bool {
        let error = match self {
            Self::Trace(OpenError::Io { source, .. }) => source,
            Self::Io { error, .. } => error,
            _ => return false,
        };
        error.kind() != io::ErrorKind::NotFound
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io { path: path.to_owned(), error }
    }

    pub(crate) fn content(path: &Path, why: impl ToString) -> Self {
        Self::Content { path: path.to_owned(), why: why.to_string() }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Interrupted { path } => Self::Interrupted { path },
            other => Self::Trace(other),
        }
    }
}

impl From<UnknownMachine> for Error {
    fn from(error: UnknownMachine) -> Self {
        Self::Machine(error)
    }
}

/// `.json, .json.gz or .bbt`, for all supported formats.
fn suffixes_in_words() -> String {
    let mut all: Vec<&str> = busbound_trace::suffixes().collect();
    let last = all.pop().unwrap_or_default();
    format!("{} or {last}", all.join(", "))
}
