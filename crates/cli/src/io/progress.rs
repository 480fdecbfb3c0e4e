//! Is it still working? A progress bar on standard error, after half a second.

use std::path::Path;
use std::time::{Duration, Instant};

use busbound::trace::Progress;
use busbound_gpu::bench;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) struct ReadingBar {
    bar: ProgressBar,
    began: Instant,
    shown: bool,
    enabled: bool,
}

impl ReadingBar {
    pub(crate) fn new(what: &Path, enabled: bool) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_message(what.display().to_string());
        Self { bar, began: Instant::now(), shown: false, enabled }
    }

    pub(crate) fn update(&mut self, progress: Progress) {
        if !self.enabled || self.began.elapsed() < PATIENCE {
            return;
        }
        if !self.shown {
            self.shown = true;
            let template = match progress.total {
                Some(_) => "{msg}  {bar:30} {bytes} of {total_bytes}, {eta} left",
                None => "{msg}  {bytes} read",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            self.bar.set_length(progress.total.unwrap_or(0));
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.set_position(progress.read);
    }
}

impl Drop for ReadingBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Counts the traces that are done.
pub(crate) struct RanksBar {
    bar: ProgressBar,
    began: Instant,
    enabled: bool,
}

impl RanksBar {
    pub(crate) fn new(traces: usize, enabled: bool) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_length(traces as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} traces, {eta} left") {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), enabled }
    }

    pub(crate) fn one_done(&self) {
        if self.enabled && self.began.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.inc(1);
    }
}

impl Drop for RanksBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Says that a directory is watched, and counts its traces.
pub(crate) struct WatchBar {
    bar: ProgressBar,
}

impl WatchBar {
    pub(crate) fn new(directory: &Path, enabled: bool) -> Self {
        let bar = if enabled { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let template = "{spinner} watching {msg}: {pos} traces, Ctrl-C ends";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(directory.display().to_string());
        if enabled {
            bar.enable_steady_tick(PATIENCE);
        }
        Self { bar }
    }

    /// Prints above the bar.
    pub(crate) fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(crate) fn one_done(&self) {
        self.bar.inc(1);
    }
}

impl Drop for WatchBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Counts the tasks of a benchmark.
pub(crate) struct TaskBar {
    bar: ProgressBar,
}

impl TaskBar {
    pub(crate) fn new(enabled: bool) -> Self {
        let bar = if enabled { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    pub(crate) fn update(&self, progress: &bench::Progress) {
        self.bar.set_length(progress.of as u64);
        self.bar.set_position(progress.done as u64);
        self.bar.set_message(progress.what.clone());
    }
}

impl Drop for TaskBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
