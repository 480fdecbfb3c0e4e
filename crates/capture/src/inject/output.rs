//! Where do chunks go: to a file, to the ring, or, while a dump is written, to both?

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::definitions::Definitions;
use super::ring::Ring;
use crate::format::{ChunkWriter, MAGIC};

/// Names that are tried before a directory counts as full of old recordings.
const MOST_FILES: u32 = 100_000;

/// The name of a file that is not complete yet ends like this.
pub const UNFINISHED: &str = "part";

/// A recording that is being written.
pub(super) struct RecordingFile {
    file: File,
    written: u64,
    path: PathBuf,
    /// What it is called once it is complete.
    finished: Option<PathBuf>,
}

impl RecordingFile {
    fn begin(path: PathBuf, finished: Option<PathBuf>) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let mut begun = Self { file, written: 0, path, finished };
        begun.write(MAGIC).inspect_err(|_| begun.remove())?;
        Ok(begun)
    }

    /// The requested file, or one next to it if another process of the run uses that one.
    ///
    /// # Errors
    /// If neither can be written.
    pub(super) fn for_process(to: &Path) -> Result<Self, String> {
        let own = to.with_extension(format!("{}.bbt", std::process::id()));
        [to, own.as_path()]
            .into_iter()
            .find_map(|path| Self::begin(path.to_owned(), None).ok())
            .ok_or_else(|| format!("cannot write {} or {}; nothing is recorded", to.display(), own.display()))
    }

    /// One of several files of this process: `run.1234.dump-1.bbt`. It has its name once it is complete.
    ///
    /// # Errors
    /// If none can be written.
    pub(super) fn numbered(to: &Path, what: &str, number: &mut u32) -> Result<Self, String> {
        loop {
            *number += 1;
            let finished = to.with_extension(format!("{}.{what}-{number}.bbt", std::process::id()));
            let path = finished.with_extension(format!("bbt.{UNFINISHED}"));
            let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
            let begun = match finished.exists() {
                true => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
                false => Self::begin(path.clone(), Some(finished)),
            };
            match begun {
                Err(error) if is_taken(&error) && *number < MOST_FILES => {}
                other => return other.map_err(|error| format!("cannot write {}: {error}", path.display())),
            }
        }
    }

    /// Writes a chunk completely, or not at all.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.written += bytes.len() as u64,
            // A partial chunk is useless.
            Err(_) => _ = self.file.set_len(self.written),
        }
        written
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Gives the file its name.
    fn settle(&mut self) {
        if let Some(finished) = self.finished.take()
            && std::fs::rename(&self.path, &finished).is_ok()
        {
            self.path = finished;
        }
    }
}

pub(super) struct Output {
    /// `None` before it begins and after a write error.
    file: Option<RecordingFile>,
    pub(super) ring: Option<Ring>,
    /// Why the file could not be written on.
    failed: Option<String>,
}

impl Output {
    pub(super) fn new(ring: Option<Ring>) -> Self {
        Self { file: None, ring, failed: None }
    }

    /// Begins a file: definitions, and what the ring holds.
    ///
    /// # Errors
    /// If it cannot be written; the partial file is removed.
    pub(super) fn begin(
        &mut self,
        mut file: RecordingFile,
        definitions: &mut Definitions,
    ) -> Result<(), String> {
        definitions.fresh();
        let held = self.ring.iter().flat_map(Ring::chunks);
        for chunk in definitions.all().chain(held) {
            if let Err(error) = file.write(chunk) {
                file.remove();
                return Err(format!("cannot write {}: {error}", file.path.display()));
            }
        }
        self.file = Some(file);
        self.failed = None;
        Ok(())
    }

    /// Takes the chunk: all events until now are written, in the order in which they arrived.
    pub(super) fn cut(&mut self, chunk: &mut ChunkWriter, definitions: &mut Definitions) {
        let fresh = definitions.fresh();
        let chunk = chunk.take();
        for bytes in fresh.iter().chain(&chunk) {
            self.append(bytes);
        }
        let now = Instant::now();
        let mut oldest_in_use = None;
        if let Some(ring) = &mut self.ring {
            if let Some(chunk) = chunk {
                ring.push(now, definitions.generation(), chunk);
            }
            ring.trim(now, definitions.bytes());
            oldest_in_use = ring.oldest_generation();
        }
        definitions.renew(oldest_in_use);
    }

    /// Adds a chunk to the file only.
    pub(super) fn add(&mut self, chunk: &mut ChunkWriter) {
        if let Some(bytes) = chunk.take() {
            self.append(&bytes);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write(bytes) {
            // A full disk ends the recording but not the program.
            self.failed = Some(format!("cannot write {}: {error}", file.path.display()));
            self.file = None;
        }
    }

    /// Gives the file its name, although something may follow.
    pub(super) fn settle(&mut self) {
        if let Some(file) = &mut self.file {
            file.settle();
        }
    }

    pub(super) fn is_writing(&self) -> bool {
        self.file.is_some()
    }

    /// Completes the file; its path.
    ///
    /// # Errors
    /// If it could not be written to its end.
    pub(super) fn end(&mut self) -> Result<PathBuf, String> {
        match self.file.take() {
            Some(mut file) => {
                file.settle();
                Ok(file.path)
            }
            None => Err(self.failed.take().unwrap_or_else(|| "nothing was being recorded".to_owned())),
        }
    }
}
