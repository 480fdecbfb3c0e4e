//! Which rank summaries have appeared since the directory was last listed? Each file is read once, however many there are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use busbound::fleet::{Fleet, LIVE_MS, LiveRanks};
use busbound::machine::live::RankWindow;
use busbound::summaries_below;

use crate::io::arrivals::Mark;

/// How often the directory is listed at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Listing takes at most one part in this many of the time.
const COST: u32 = 20;
/// A summary is written soon after its window.
const WRITTEN_WITHIN: Duration = Duration::from_secs(3600);

/// The summaries below a directory.
pub(super) struct Summaries {
    directory: PathBuf,
    ranks: LiveRanks,
    files: BTreeMap<PathBuf, File>,
    look_at: Instant,
    /// Sentences that were not shown yet.
    skipped: Vec<String>,
    count_skipped: usize,
    is_listable: bool,
}

/// What became of a file.
enum File {
    /// Read, or too old to matter.
    Done,
    /// Could not be read; it may still be written.
    Torn(Mark, String),
    /// Was the same the next time.
    Skipped(Mark),
}

impl Summaries {
    pub(super) fn below(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            ranks: LiveRanks::default(),
            files: BTreeMap::new(),
            look_at: Instant::now(),
            skipped: Vec::new(),
            count_skipped: 0,
            is_listable: true,
        }
    }

    /// The last window of each rank, and what is new of it.
    pub(super) fn read(&mut self) -> Vec<RankWindow> {
        if Instant::now() >= self.look_at {
            self.look();
        }
        self.ranks.windows(unix_ms(SystemTime::now()))
    }

    /// Lists the directory now, and reads what is new. Returns how many files it read.
    pub(super) fn look(&mut self) -> usize {
        let began = Instant::now();
        let read = match summaries_below(&self.directory) {
            Ok(listed) => {
                self.is_listable = true;
                self.take(listed)
            }
            Err(error) => {
                // Once, until it can be listed again: it may be created later, or its file system may come back.
                if std::mem::replace(&mut self.is_listable, false) {
                    self.skipped.push(busbound::io_in_words(&self.directory, &error));
                }
                0
            }
        };
        self.look_at = Instant::now() + LOOK_EVERY.max(began.elapsed() * COST);
        read
    }

    /// Why the directory cannot be listed.
    pub(super) fn unlistable(&self) -> Option<&str> {
        self.skipped.last().map(String::as_str).filter(|_| !self.is_listable)
    }

    /// Sentences about what could not be read, each once.
    pub(super) fn take_skipped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.skipped)
    }

    /// `summaries/`, and what was left out.
    pub(super) fn describe(&self) -> String {
        let directory = self.directory.display();
        match (self.count_skipped, self.is_listable) {
            (_, false) => format!("{directory} cannot be read"),
            (0, true) if self.ranks.is_empty() => format!("no summaries in {directory} yet"),
            (0, true) => format!("summaries from {directory}"),
            (skipped, true) => format!("summaries from {directory}, {skipped} unreadable"),
        }
    }

    fn take(&mut self, listed: Vec<PathBuf>) -> usize {
        let mut known = std::mem::take(&mut self.files);
        let mut read = 0;
        for path in listed {
            if let Some(state) = self.follow(&path, known.remove(&path), &mut read) {
                self.files.insert(path, state);
            }
        }
        let is_skipped = |file: &&File| matches!(file, File::Skipped(_));
        self.count_skipped = self.files.values().filter(is_skipped).count();
        read
    }

    /// `None` for a file that is gone.
    fn follow(&mut self, path: &Path, before: Option<File>, read: &mut usize) -> Option<File> {
        if matches!(before, Some(File::Done)) {
            return before;
        }
        let mark = mark(path)?;
        match before {
            Some(File::Skipped(then)) if mark == then => return before,
            Some(File::Torn(then, why)) if mark == then => {
                self.skipped.push(format!("skipped: {why}"));
                return Some(File::Skipped(then));
            }
            _ if is_old(mark) => return Some(File::Done),
            _ => {}
        }
        *read += 1;
        Some(self.see(path).map_or_else(|why| File::Torn(mark, why), |()| File::Done))
    }

    fn see(&mut self, path: &Path) -> Result<(), String> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| busbound::io_in_words(path, &error))?;
        let saved = Fleet::parse(&text).map_err(|error| format!("{name} {error}"))?;
        let folder = path.parent().and_then(|folder| folder.strip_prefix(&self.directory).ok());
        let run = folder.map(|folder| folder.display().to_string()).unwrap_or_default();
        for summary in saved.ranks() {
            self.ranks.see(&run, summary).map_err(|error| format!("{name} {error}"))?;
        }
        Ok(())
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let about = path.metadata().ok()?;
    Some(Mark { size: about.len(), modified: about.modified().ok()? })
}

/// Whether its windows are of a rank that has ended.
fn is_old(mark: Mark) -> bool {
    let live = Duration::from_millis(u64::try_from(LIVE_MS).unwrap_or_default());
    mark.modified.elapsed().is_ok_and(|age| age > live + WRITTEN_WITHIN)
}

fn unix_ms(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use busbound::fleet::RankSummary;
    use busbound::{Format, Machine, Options, Report, Style};

    use super::*;

    fn summary() -> String {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/compute_only_c4.json.gz");
        let run = busbound::open(Path::new(trace)).unwrap();
        let mut summary = RankSummary::of(&run.diagnose(&Machine::default(), &Options::default()));
        summary.recorded_ms = Some(unix_ms(SystemTime::now()));
        summary.render(Format::Json, &Style::default()).unwrap()
    }

    /// Reading all of them again in every interval would take longer than the interval.
    #[test]
    fn each_of_thousands_of_summaries_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let (text, place) = (summary(), |name: &str| folder.path().join(format!("{name}.rank.json")));
        (0..2000).for_each(|i| fs::write(place(&i.to_string()), &text).unwrap());
        let mut summaries = Summaries::below(folder.path());
        assert_eq!((summaries.look(), summaries.look()), (2000, 0));
        fs::write(place("new"), &text).unwrap();
        assert_eq!((summaries.look(), summaries.look()), (1, 0));
        // Written long before the last day, as its date says.
        fs::write(place("old"), &text).unwrap();
        let file = fs::OpenOptions::new().append(true).open(place("old")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3 * 86_400)).unwrap();
        assert_eq!(summaries.look(), 0);
        assert_eq!((summaries.read().len(), summaries.take_skipped().len()), (1, 0));
    }

    #[test]
    fn a_file_that_is_still_written_is_read_when_it_is_complete_and_reported_if_it_stays_torn() {
        let folder = tempfile::tempdir().unwrap();
        let (text, place) = (summary(), folder.path().join("a.rank.json"));
        let mut summaries = Summaries::below(folder.path());
        fs::write(&place, &text[..100]).unwrap();
        assert_eq!((summaries.look(), summaries.take_skipped().len()), (1, 0));
        fs::write(&place, &text[..200]).unwrap();
        assert_eq!((summaries.look(), summaries.take_skipped().len()), (1, 0));
        assert_eq!((summaries.look(), summaries.take_skipped().len()), (0, 1));
        assert!(summaries.describe().ends_with(", 1 unreadable"), "{}", summaries.describe());
        assert_eq!((summaries.look(), summaries.take_skipped().len()), (0, 0));
        fs::write(&place, &text).unwrap();
        assert_eq!((summaries.look(), summaries.read().len(), summaries.take_skipped().len()), (1, 1, 0));
        assert!(!summaries.describe().contains("unreadable"), "{}", summaries.describe());
        // The directory may vanish, and come back.
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!((summaries.look(), summaries.look(), summaries.take_skipped().len()), (0, 0, 1));
        assert_eq!(summaries.read().len(), 1);
    }
}
