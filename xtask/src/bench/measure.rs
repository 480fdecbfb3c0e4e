//! Wall time and peak memory of a program, taken over several runs.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;
use wait4::Wait4;

#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    pub(crate) seconds: Vec<f64>,
    pub(crate) peak_mb: f64,
}

impl Runs {
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn shown(&self) -> String {
        let low = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.seconds.iter().copied().fold(0.0, f64::max);
        format!("{:.3} s ({low:.3} to {high:.3})", self.median())
    }

    pub(crate) fn once(&mut self, command: &mut Command) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let used = child.wait4()?;
        self.seconds.push(began.elapsed().as_secs_f64());
        ensure!(used.status.success(), "{command:?} failed");
        self.peak_mb = self.peak_mb.max(used.rusage.maxrss as f64 / 1e6);
        Ok(())
    }
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
