//! Wall time and peak memory of a program over several runs.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    pub(crate) seconds: Vec<f64>,
    /// CPU time of all threads: other processes on the machine affect it less.
    pub(crate) processor: Vec<f64>,
    pub(crate) peak_mb: f64,
}

/// Ticks per second of the kernel's CPU time.
pub(super) const TICKS_PER_SECOND: f64 = 100.0;

impl Runs {
    pub(crate) fn median(&self) -> f64 {
        median(&self.seconds)
    }

    /// The mean, because the kernel counts in hundredths of a second.
    pub(crate) fn processor_mean(&self) -> f64 {
        self.processor.iter().sum::<f64>() / self.processor.len() as f64
    }

    pub(crate) fn shown(&self) -> String {
        let (low, high) = extremes(&self.seconds);
        format!("{:.3} s ({low:.3}–{high:.3})", self.median())
    }

    pub(crate) fn once(&mut self, command: &mut Command) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let ended = AtomicBool::new(false);
        let id = child.id();
        let before = ticks_of_children();
        let (status, peak) = thread::scope(|scope| {
            let watcher = scope.spawn(|| peak_of(id, &ended));
            let status = child.wait();
            self.seconds.push(began.elapsed().as_secs_f64());
            ended.store(true, Ordering::Relaxed);
            (status, watcher.join().unwrap_or(0.0))
        });
        self.processor.push((ticks_of_children() - before) / TICKS_PER_SECOND);
        ensure!(status?.success(), "{command:?} failed");
        self.peak_mb = self.peak_mb.max(peak);
        Ok(())
    }

    /// Ratio to `other`, run by run: both ran at about the same time.
    pub(crate) fn over(&self, other: &Self) -> f64 {
        median(&self.ratios(other))
    }

    pub(crate) fn ratios(&self, other: &Self) -> Vec<f64> {
        self.seconds.iter().zip(&other.seconds).map(|(a, b)| a / b).collect()
    }
}

/// Min and max of the positive values.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), &value| (low.min(value), high.max(value)))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// CPU time of the child processes that have ended.
pub(super) fn ticks_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may contain spaces; the children's times are the 14th and 15th fields after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.iter().skip(13).take(2).filter_map(|text| text.parse::<f64>().ok()).sum()
}

/// Peak memory of a process, in MB. It is polled during the run, because the kernel's count at the end would include
/// the memory of this program when it started the process.
fn peak_of(process: u32, ended: &AtomicBool) -> f64 {
    let mut peak = 0.0;
    while !ended.load(Ordering::Relaxed) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kib) = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()) {
            peak = kib * 1024.0 / 1e6;
        }
        thread::sleep(Duration::from_millis(5));
    }
    peak
}

/// Interleaves the commands, `repetitions` times each, so that a slow phase of the machine affects all of them.
pub(crate) fn interleaved(commands: &mut [Command], repetitions: usize) -> anyhow::Result<Vec<Runs>> {
    let mut all = vec![Runs::default(); commands.len()];
    for _ in 0..repetitions {
        for (runs, command) in all.iter_mut().zip(commands.iter_mut()) {
            runs.once(command)?;
        }
    }
    Ok(all)
}
