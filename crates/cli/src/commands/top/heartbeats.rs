//! What has the training appended to its files since they were last read?

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use busbound::machine::live::{BeatKeys, LineReader, Training};

use crate::io::output::warn;

/// How much is read of a file that exists already: its newest lines.
const NEWEST: u64 = 64 << 10;
/// How much is read of a file per interval at most; the rest comes in the next one.
const MOST: u64 = 4 << 20;

/// The files that match the patterns, each with how far it has been read.
pub(super) struct Heartbeats {
    patterns: Vec<String>,
    keys: BeatKeys,
    files: BTreeMap<PathBuf, Tailed>,
    is_first: bool,
}

struct Tailed {
    offset: u64,
    lines: LineReader,
}

/// The files that match now; a pattern that is none matches nothing.
pub(in crate::commands) fn matching(patterns: &[String]) -> Vec<PathBuf> {
    patterns.iter().filter_map(|pattern| glob::glob(pattern).ok()).flatten().flatten().collect()
}

impl Heartbeats {
    pub(super) fn matching(patterns: &[String], keys: BeatKeys) -> Result<Self, String> {
        for pattern in patterns {
            let mut files = glob::glob(pattern).map_err(|error| format!("--heartbeat {pattern}: {error}"))?;
            if files.next().is_none() {
                warn(&format!("no files match {pattern} yet"));
            }
        }
        Ok(Self { patterns: patterns.to_vec(), keys, files: BTreeMap::new(), is_first: true })
    }

    /// Reads what is new. A file that cannot be read now may be readable later.
    pub(super) fn read(&mut self) -> Vec<Training> {
        let mut all = Vec::new();
        for path in matching(&self.patterns) {
            let is_first = self.is_first;
            let tailed = self.files.entry(path.clone()).or_insert_with(|| Tailed::begin(&path, is_first));
            let mut training = Training { file: path.display().to_string(), ..Training::default() };
            if tailed.read(&path, &self.keys, &mut training).is_ok()
                && (!training.beats.is_empty() || !training.alarms.is_empty())
            {
                all.push(training);
            }
        }
        self.is_first = false;
        all
    }
}

impl Tailed {
    /// A file that exists at the start is read from near its end, a later one from its beginning.
    fn begin(path: &Path, was_there: bool) -> Self {
        let length = path.metadata().map_or(0, |file| file.len());
        let offset = if was_there { length.saturating_sub(NEWEST) } else { 0 };
        let lines = if offset > 0 { LineReader::within_a_line() } else { LineReader::default() };
        Self { offset, lines }
    }

    fn read(&mut self, path: &Path, keys: &BeatKeys, training: &mut Training) -> std::io::Result<()> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() < self.offset {
            // The file was truncated or replaced.
            *self = Self { offset: 0, lines: LineReader::default() };
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        self.lines.feed(&bytes, keys, training);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn steps(all: &[Training]) -> Vec<f64> {
        all.iter().flat_map(|one| &one.beats).filter_map(|beat| beat.dt_step_s).collect()
    }

    #[test]
    fn files_are_followed_through_appends_truncation_and_late_creation() {
        let directory = tempfile::tempdir().unwrap();
        let pattern = directory.path().join("*.jsonl").display().to_string();
        let path = directory.path().join("rank0.jsonl");
        fs::write(&path, "{\"dt_step_s\": 1}\n{\"dt_ste").unwrap();
        let mut heartbeats = Heartbeats::matching(&[pattern], BeatKeys::default()).unwrap();
        assert_eq!(steps(&heartbeats.read()), [1.0]);
        assert!(heartbeats.read().is_empty());
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"p_s\": 2}\n").unwrap();
        fs::write(directory.path().join("rank1.jsonl"), "{\"dt_step_s\": 3}\n").unwrap();
        assert_eq!(steps(&heartbeats.read()), [2.0, 3.0]);
        fs::write(&path, "{\"dt_step_s\": 4}\n").unwrap();
        assert_eq!(steps(&heartbeats.read()), [4.0]);
        assert!(Heartbeats::matching(&["a***".to_owned()], BeatKeys::default()).is_err());
    }

    #[test]
    fn only_the_newest_lines_of_a_long_file_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.jsonl");
        fs::write(&path, "{\"dt_step_s\": 1}\n".repeat(100_000) + "{\"dt_step_s\": 2}\n").unwrap();
        let mut heartbeats =
            Heartbeats::matching(&[path.display().to_string()], BeatKeys::default()).unwrap();
        let steps = steps(&heartbeats.read());
        assert!(steps.len() <= 100 && steps.last() == Some(&2.0), "{}", steps.len());
    }
}
