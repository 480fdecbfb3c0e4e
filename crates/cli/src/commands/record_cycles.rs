//! `busbound record --every`: the library writes one recording per window; this makes a summary of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use busbound::fleet::RankSummary;
use busbound::{Machine, Options, keep_summary};
use busbound_capture::inject::UNFINISHED;

use crate::args::record::RecordArgs;
use crate::failure::Failure;
use crate::io::output::warn;

/// How often the directory is looked at.
const LOOKED_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Cycles {
    summaries: PathBuf,
    /// What the recordings of this run are named after; other nodes may write to the same directory.
    pub(super) recordings: PathBuf,
    host: Option<String>,
    every: Option<Duration>,
    keep: bool,
    /// Recordings that have their summary, if they are kept.
    done: Mutex<BTreeSet<PathBuf>>,
    quiet: bool,
}

impl Cycles {
    pub(super) fn new(summaries: &Path, args: &RecordArgs) -> Result<Self, Failure> {
        fs::create_dir_all(summaries).map_err(Failure::unwritable_at(summaries))?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|text| text.trim().to_owned());
        let name = format!("{}-{}.bbt", host.as_deref().unwrap_or("run"), std::process::id());
        Ok(Self {
            summaries: summaries.to_owned(),
            recordings: summaries.join(name),
            host,
            every: args.every,
            keep: args.keep,
            done: Mutex::default(),
            quiet: args.quiet,
        })
    }

    /// Runs the program, and summarizes each window as it is complete.
    pub(super) fn follow<T: Send>(
        &self,
        run: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let is_over = AtomicBool::new(false);
        let (ended, summaries) = std::thread::scope(|scope| {
            let summarizing = scope.spawn(|| {
                let mut summaries = 0;
                while !is_over.load(Ordering::SeqCst) {
                    std::thread::sleep(LOOKED_EVERY);
                    summaries += self.summarize_windows(&["bbt"]);
                }
                // A process that was killed has not completed its last window.
                summaries + self.summarize_windows(&["bbt", UNFINISHED])
            });
            let ended = run();
            is_over.store(true, Ordering::SeqCst);
            (ended, summarizing.join().unwrap_or(0))
        });
        if !self.quiet {
            let directory = self.summaries.display();
            match summaries {
                0 => warn(
                    "no summary was written: no process used CUDA during a window, or an error is shown above",
                ),
                _ => warn(&format!(
                    "wrote {summaries} summaries to {directory}; next: busbound merge {directory}"
                )),
            }
        }
        ended
    }

    /// Returns how many summaries were written.
    fn summarize_windows(&self, extensions: &[&str]) -> usize {
        let stem = self.recordings.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let entries = fs::read_dir(&self.summaries).into_iter().flatten().flatten();
        let ours = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_window = name.strip_prefix(&stem).is_some_and(|rest| rest.contains(".window-"));
            is_window && extensions.iter().any(|extension| name.ends_with(&format!(".{extension}")))
        });
        let is_new = |path: &PathBuf| self.done.lock().is_ok_and(|done| !done.contains(path));
        let mut windows: Vec<PathBuf> = ours.filter(is_new).collect();
        windows.sort();
        windows.iter().filter(|path| self.summarize(path)).count()
    }

    /// Whether there is a summary now. The recording is gone then, unless it is to be kept.
    fn summarize(&self, path: &Path) -> bool {
        let summary = busbound::open(path).map_err(|error| error.to_string()).and_then(|run| {
            let diagnosis = run.diagnose(&Machine::default(), &Options::default());
            let mut summary = RankSummary::of(&diagnosis);
            summary.recorded_ms = run.recorded_ms();
            summary.every_ms = self.every.and_then(|every| i64::try_from(every.as_millis()).ok());
            summary.host = self.host.clone().or(summary.host);
            keep_summary(&summary, &self.summaries).map_err(|error| error.to_string())
        });
        if let Err(why) = &summary {
            warn(&format!("no summary: {why}"));
        }
        if let Ok(mut done) = self.done.lock() {
            done.insert(path.to_owned());
        }
        if !self.keep
            && let Err(error) = fs::remove_file(path)
        {
            warn(&busbound::io_in_words(path, &error));
        }
        summary.is_ok()
    }
}
