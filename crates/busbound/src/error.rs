//! What can go wrong between a path and an answer? Each error is one whole sentence, so none has a source to print after it.

use std::io;
use std::path::{Path, PathBuf};

use busbound_machine::{UnknownMachine, spelling};
use busbound_trace::OpenError;

/// Why something that was asked for could not be read, found or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing at all in the file could be read as a trace.
    #[error("{0}")]
    Trace(OpenError),
    #[error("{}", io_in_words(path, error))]
    Io { path: PathBuf, error: io::Error },
    /// It was read, and is not what it should be.
    #[error("{} {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error(
        "{} holds no trace: nothing in it ends in {}",
        path.display(),
        suffixes_in_words()
    )]
    NoTraces { path: PathBuf },
    #[error(
        "{} holds no summary: nothing in it ends in .rank.json or .fleet.json; busbound summarize makes them of traces",
        path.display()
    )]
    NoSummaries { path: PathBuf },
    #[error("no files match {pattern}")]
    NoMatch { pattern: String },
    #[error("{pattern} is not a valid pattern: {why}")]
    Pattern { pattern: String, why: String },
    #[error("{0}")]
    Machine(UnknownMachine),
    /// nsys is installed, and did not export a report.
    #[error("{}: nsys could not export it: {why}", report.display())]
    Export { report: PathBuf, why: String },
    #[error("{}: reading was interrupted", path.display())]
    Interrupted { path: PathBuf },
    #[error("{}: {error}", path.display())]
    Render { path: PathBuf, error: busbound_report::RenderError },
}

impl Error {
    /// Whether the request itself makes no sense, whatever is in the files.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Machine(_))
    }

    /// Whether reading failed for a reason of the storage, which may go better another time.
    pub fn is_storage(&self) -> bool {
        let error = match self {
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
            OpenError::Io { path, source } => Self::Io { path, error: source },
            other => Self::Trace(other),
        }
    }
}

impl From<UnknownMachine> for Error {
    fn from(error: UnknownMachine) -> Self {
        Self::Machine(error)
    }
}

/// What went wrong with a file, in one sentence without the number of the error.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// let why = busbound::io_in_words("run.json".as_ref(), &Error::from(ErrorKind::NotFound));
/// assert_eq!(why, "run.json does not exist");
/// ```
pub fn io_in_words(path: &Path, error: &io::Error) -> String {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
    let (missing, path) = (path, path.display());
    match (error.kind(), parent) {
        (io::ErrorKind::NotFound, Some(parent)) => {
            format!("{path} does not exist: there is no directory {}", parent.display())
        }
        (io::ErrorKind::NotFound, None) => format!("{path} does not exist{}", similar(missing)),
        (io::ErrorKind::PermissionDenied, _) => format!("{path}: permission denied"),
        (io::ErrorKind::IsADirectory, _) => format!("{path} is a directory"),
        _ => {
            let text = error.to_string();
            format!("{path}: {}", text.split(" (os error").next().unwrap_or(&text))
        }
    }
}

/// Most files of a directory that are compared with a mistyped name.
const MOST_NAMES: usize = 10_000;

/// `; did you mean run.json.gz?`, if the directory has a file of a similar name.
fn similar(missing: &Path) -> String {
    let folder = missing.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().take(MOST_NAMES);
    let names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let given = missing.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Endings are alike everywhere; beginnings are mistyped least.
    let begins_alike = |name: &&str| given.chars().take(2).eq(name.chars().take(2));
    let meant = spelling::did_you_mean(given, names.iter().map(String::as_str).filter(begins_alike), 1);
    meant.map_or(String::new(), |meant| format!("; {meant}"))
}

/// `.json, .json.gz or .bbt`, of all formats that are read.
fn suffixes_in_words() -> String {
    let mut all: Vec<&str> = busbound_trace::suffixes().collect();
    let last = all.pop().unwrap_or_default();
    format!("{} or {last}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_file_finds_its_neighbor() {
        let missing = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.tmol");
        let why = io_in_words(&missing, &io::ErrorKind::NotFound.into());
        assert_eq!(why, format!("{} does not exist; did you mean Cargo.toml?", missing.display()));
    }
}
