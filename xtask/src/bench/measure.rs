//! Wall time and peak memory of a program, taken over several runs.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    pub(crate) seconds: Vec<f64>,
    /// Processor time of all threads: what neighbors on the machine do not change much.
    pub(crate) processor: Vec<f64>,
    pub(crate) peak_mb: f64,
}

/// Ticks of the kernel's count of processor time.
pub(super) const TICKS_A_SECOND: f64 = 100.0;

impl Runs {
    pub(crate) fn median(&self) -> f64 {
        median(&self.seconds)
    }

    /// The mean: the kernel counts in hundredths of a second.
    pub(crate) fn processor_mean(&self) -> f64 {
        self.processor.iter().sum::<f64>() / self.processor.len() as f64
    }

    pub(crate) fn shown(&self) -> String {
        let (low, high) = extremes(&self.seconds);
        format!("{:.3} s ({low:.3} to {high:.3})", self.median())
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
        self.processor.push((ticks_of_children() - before) / TICKS_A_SECOND);
        ensure!(status?.success(), "{command:?} failed");
        self.peak_mb = self.peak_mb.max(peak);
        Ok(())
    }

    /// How many times as long as `other`, run by run: both were in the same moment of the machine.
    pub(crate) fn over(&self, other: &Self) -> f64 {
        median(&self.ratios(other))
    }

    pub(crate) fn ratios(&self, other: &Self) -> Vec<f64> {
        self.seconds.iter().zip(&other.seconds).map(|(a, b)| a / b).collect()
    }
}

/// The least and the most of what is above zero.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), &value| (low.min(value), high.max(value)))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Processor time of the programs that this one has started and that have ended.
pub(super) fn ticks_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in brackets, may hold spaces; the count of the children's time is the 14th and 15th after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.iter().skip(13).take(2).filter_map(|text| text.parse::<f64>().ok()).sum()
}

/// The most memory a process held, in MB. The kernel's count at its end would begin with what this
/// program holds while it starts the process, so it is looked at while it runs.
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

/// Runs the commands in turn, `rounds` times, so that a slow moment of the machine hits all alike.
pub(crate) fn in_turn(commands: &mut [Command], rounds: usize) -> anyhow::Result<Vec<Runs>> {
    let mut all = vec![Runs::default(); commands.len()];
    for _ in 0..rounds {
        for (runs, command) in all.iter_mut().zip(commands.iter_mut()) {
            runs.once(command)?;
        }
    }
    Ok(all)
}
