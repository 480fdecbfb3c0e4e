//! Which files of a directory are new and complete? Those whose size and time of change stay the same for a while.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A file that cannot be read, or is cut off, may still be written: it is tried once more after this many times as long.
const PATIENCE: u32 = 10;

/// What changes when a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
}

/// The files of a directory at one time.
pub(crate) type Listing = BTreeMap<PathBuf, Mark>;

/// A file to read now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) path: PathBuf,
    /// Whether it has not changed for so long that nothing more will come.
    pub(crate) is_final: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// Read, and not complete.
    Held,
    Done,
}

#[derive(Debug)]
struct Seen {
    mark: Mark,
    since: Instant,
    state: State,
}

/// The files of a directory, and what has become of them.
#[derive(Debug)]
pub(crate) struct Arrivals {
    settle: Duration,
    seen: BTreeMap<PathBuf, Seen>,
}

impl Arrivals {
    /// Of the files that are already there, only the newest one counts as new: the next are compared with it.
    pub(crate) fn new(settle: Duration, there: &Listing, now: Instant) -> Self {
        let newest = there.iter().max_by_key(|(_, mark)| mark.modified).map(|(path, _)| path);
        let seen = |(path, mark): (&PathBuf, &Mark)| {
            let state = if Some(path) == newest { State::New } else { State::Done };
            (path.clone(), Seen { mark: *mark, since: now, state })
        };
        Self { settle, seen: there.iter().map(seen).collect() }
    }

    /// The files to read now, the oldest first.
    pub(crate) fn ready(&mut self, there: &Listing, now: Instant) -> Vec<Ready> {
        // A file that is removed and comes back is new.
        self.seen.retain(|path, _| there.contains_key(path));
        let mut ready = Vec::new();
        for (path, mark) in there {
            let seen =
                self.seen.entry(path.clone()).or_insert(Seen { mark: *mark, since: now, state: State::New });
            if seen.mark != *mark {
                *seen = Seen { mark: *mark, since: now, state: State::New };
            }
            let age = now.saturating_duration_since(seen.since);
            let is_final = age >= self.settle * PATIENCE;
            let is_due = match seen.state {
                State::New => age >= self.settle,
                State::Held => is_final,
                State::Done => false,
            };
            if is_due && mark.size > 0 && !is_being_packed(path, there) {
                ready.push((mark.modified, Ready { path: path.clone(), is_final }));
            }
        }
        ready.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
        ready.into_iter().map(|(_, ready)| ready).collect()
    }

    /// The file was shown, or never will be.
    pub(crate) fn done(&mut self, path: &Path) {
        self.set(path, State::Done);
    }

    /// The file is not complete yet.
    pub(crate) fn hold(&mut self, path: &Path) {
        self.set(path, State::Held);
    }

    fn set(&mut self, path: &Path, state: State) {
        if let Some(seen) = self.seen.get_mut(path) {
            seen.state = state;
        }
    }
}

/// torch.profiler and our handler write `x.json` first and then compress it to `x.json.gz`: that is the trace.
fn is_being_packed(path: &Path, there: &Listing) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    there.contains_key(&path.with_file_name(format!("{name}.gz")))
        || path.with_file_name(format!(".{name}.gz.tmp")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(1);

    fn listing(files: &[(&str, u64)]) -> Listing {
        let mark = |size| Mark { size, modified: SystemTime::UNIX_EPOCH + Duration::from_secs(size) };
        files.iter().map(|(name, size)| (PathBuf::from(name), mark(*size))).collect()
    }

    fn names(ready: &[Ready]) -> Vec<String> {
        ready
            .iter()
            .map(|one| format!("{}{}", one.path.display(), if one.is_final { "!" } else { "" }))
            .collect()
    }

    #[test]
    fn a_file_is_ready_once_it_has_stopped_growing() {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut arrivals = Arrivals::new(SETTLE, &Listing::new(), start);
        assert!(arrivals.ready(&listing(&[("a", 0)]), at(0.0)).is_empty());
        assert!(arrivals.ready(&listing(&[("a", 5)]), at(1.5)).is_empty(), "it grew");
        assert!(arrivals.ready(&listing(&[("a", 5)]), at(2.4)).is_empty());
        assert_eq!(names(&arrivals.ready(&listing(&[("a", 5)]), at(2.5))), ["a"]);
        arrivals.done(Path::new("a"));
        assert!(arrivals.ready(&listing(&[("a", 5)]), at(99.0)).is_empty());
        assert!(arrivals.ready(&listing(&[("a", 6)]), at(100.0)).is_empty(), "written again");
        assert_eq!(names(&arrivals.ready(&listing(&[("a", 6)]), at(101.0))), ["a"]);
    }

    #[test]
    fn a_cut_off_file_is_tried_again_when_it_grows_or_has_rested() {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut arrivals = Arrivals::new(SETTLE, &Listing::new(), start);
        let part = listing(&[("a", 5)]);
        arrivals.ready(&part, at(0.0));
        assert_eq!(names(&arrivals.ready(&part, at(1.0))), ["a"]);
        arrivals.hold(Path::new("a"));
        assert!(arrivals.ready(&part, at(9.9)).is_empty());
        assert_eq!(names(&arrivals.ready(&part, at(10.0))), ["a!"]);
        assert!(arrivals.ready(&listing(&[("a", 9)]), at(10.5)).is_empty());
        assert_eq!(names(&arrivals.ready(&listing(&[("a", 9)]), at(11.5))), ["a"]);
    }

    #[test]
    fn of_the_files_that_are_there_only_the_newest_counts() {
        let start = Instant::now();
        let there = listing(&[("old", 1), ("newest", 3), ("older", 2)]);
        let mut arrivals = Arrivals::new(SETTLE, &there, start);
        assert_eq!(names(&arrivals.ready(&there, start + SETTLE)), ["newest"]);
        // Removed and written again.
        arrivals.ready(&listing(&[("newest", 3)]), start + SETTLE);
        arrivals.done(Path::new("newest"));
        arrivals.ready(&there, start + SETTLE * 2);
        assert_eq!(names(&arrivals.ready(&there, start + SETTLE * 3)), ["old", "older"]);
    }

    #[test]
    fn a_file_next_to_its_compressed_copy_is_not_a_trace_of_its_own() {
        let start = Instant::now();
        let mut arrivals = Arrivals::new(SETTLE, &Listing::new(), start);
        let both = listing(&[("a.json", 4), ("a.json.gz", 2)]);
        arrivals.ready(&both, start);
        assert_eq!(names(&arrivals.ready(&both, start + SETTLE)), ["a.json.gz"]);
    }
}
