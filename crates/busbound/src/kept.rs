//! Which recordings of a history are still there? Summaries outlive them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use busbound_fleet::{History, HistoryChange};

/// What the file names of dumps of a ring contain.
const DUMP: &str = ".dump-";

/// Adds to each change of a history which of its recordings are there now, and which rings were dumped meanwhile. Looks where the summaries
/// say that the recordings are, and next to the summaries.
pub fn find_recordings(history: &mut History) {
    for change in &mut history.changes {
        let there = |path: &String| there(Path::new(path), Path::new(&change.job));
        let both = there(&change.trace_before).zip(there(&change.trace_after));
        change.compare = both.map(|(before, after)| [before, after].map(|path| path.display().to_string()));
        change.dumps = dumps(change).iter().map(|path| path.display().to_string()).collect();
    }
}

/// The file of this name: where it was, or in the folder of the job.
fn there(path: &Path, job: &Path) -> Option<PathBuf> {
    let beside = path.file_name().map(|name| job.join(name));
    std::iter::once(path.to_owned()).chain(beside).find(|path| path.is_file())
}

/// The dumps from between both recordings, by name.
fn dumps(change: &HistoryChange) -> Vec<PathBuf> {
    let job = Path::new(&change.job);
    let recorded = Path::new(&change.trace_after).parent().filter(|folder| !folder.as_os_str().is_empty());
    let folders = [Some(job), recorded.filter(|folder| *folder != job)];
    let (Some(from), Some(to)) = (at(change.before_unix_ms), at(change.after_unix_ms)) else {
        return Vec::new();
    };
    let is_meanwhile = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let is_dump = name.to_str().is_some_and(|name| name.contains(DUMP) && name.ends_with(".bbt"));
        is_dump
            && entry.metadata().and_then(|about| about.modified()).is_ok_and(|at| (from..=to).contains(&at))
    };
    let entries =
        folders.into_iter().flatten().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut found: Vec<PathBuf> = entries.filter(is_meanwhile).map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn at(unix_ms: i64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(unix_ms).ok()?))
}
