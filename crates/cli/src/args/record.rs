//! `busbound record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound record -- python train.py
  busbound record -o run.bbt --delay 60 --duration 10 -- torchrun train.py
  busbound run.bbt                      diagnose what was recorded

Keep the last minute in memory; write it when asked, or when something happens:
  busbound record --ring 60s -- python serve.py
  busbound record --pid 4711 --dump

Record a part of a run that has been going for days:
  busbound record --standby -- python train.py
  busbound record --pid 4711 --start --duration 10s

One summary per rank every 10 minutes, for busbound merge and history:
  busbound record --every 10m --for 5s -o summaries/ -- torchrun train.py";

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Write the recording to this file; with --every, summaries to this directory [default: run.bbt, summaries]
    #[arg(short, long, value_name = "FILE.bbt")]
    pub(crate) output: Option<PathBuf>,
    /// Start recording this long after the first CUDA call, in seconds or as 2m
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_time, conflicts_with_all = ["ring", "standby", "every", "pid"])]
    pub(crate) delay: Duration,
    /// Stop recording after this time [default: at the end of the run]
    #[arg(long, visible_alias = "for", value_name = "TIME", value_parser = parse_length, conflicts_with_all = ["ring", "standby", "dump", "stop"])]
    pub(crate) duration: Option<Duration>,
    /// Keep the last part of the run in memory (at most 64 MB), and write it when asked or when something happens
    ///
    /// A dump is written by --pid PID --dump, when the program crashes, gets SIGTERM or exits, when the time of its steps (NVTX ranges)
    /// changes, and when no GPU work completes for the time of --watchdog. Above 4000 kernels per second, kernels are sampled.
    #[arg(long, value_name = "TIME", value_parser = parse_length, conflicts_with_all = ["standby", "every", "pid"])]
    pub(crate) ring: Option<Duration>,
    /// Record nothing until --pid PID --start
    #[arg(long, conflicts_with_all = ["every", "pid"])]
    pub(crate) standby: bool,
    /// Record for the time of --for, again and again with this period, and write one small summary per process each time
    #[arg(long, value_name = "TIME", value_parser = parse_length, requires = "duration", conflicts_with = "pid")]
    pub(crate) every: Option<Duration>,
    /// With --every: keep the recordings beside their summaries
    #[arg(long, requires = "every", hide_short_help = true)]
    pub(crate) keep: bool,
    /// Talk to a process that runs under --ring or --standby, or to its children
    #[arg(long, value_name = "PID", requires = "asked", conflicts_with_all = ["command", "output", "force"])]
    pub(crate) pid: Option<u32>,
    /// With --pid: write what the ring holds
    #[arg(long, group = "asked", requires = "pid")]
    pub(crate) dump: bool,
    /// With --pid: start recording, to a file beside the one that the process was started with
    #[arg(long, group = "asked", requires = "pid")]
    pub(crate) start: bool,
    /// With --pid: stop recording, and complete the file
    #[arg(long, group = "asked", requires = "pid")]
    pub(crate) stop: bool,
    /// With --ring: this signal asks for a dump, too; not if the program handles it itself
    #[arg(long, value_name = "USR1|USR2", requires = "ring", value_parser = parse_signal, hide_short_help = true)]
    pub(crate) signal: Option<i32>,
    /// With --ring: dump if no GPU work completes for this long after there was some; 0 for never
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = parse_time, hide_short_help = true)]
    pub(crate) watchdog: Duration,
    /// Do not read the byte counters of the GPU's link and the kernel's counts of the process
    #[arg(long, hide_short_help = true)]
    pub(crate) no_counters: bool,
    /// Overwrite an existing recording
    #[arg(long)]
    pub(crate) force: bool,
    /// Print nothing about the recording
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program to run, and its arguments
    #[arg(last = true, required_unless_present = "pid", value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// `10`, `0.5`, `500ms`, `60s`, `10m`, `1h`.
fn parse_time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("m", 60.0), ("h", 3600.0)];
    let found = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    match number.parse::<f64>() {
        Ok(value) if (0.0..1e9).contains(&(value * factor)) => Ok(Duration::from_secs_f64(value * factor)),
        _ => Err("give a time, e.g. 10 or 0.5 (seconds), 60s, 10m".to_owned()),
    }
}

fn parse_length(text: &str) -> Result<Duration, String> {
    match parse_time(text) {
        Ok(time) if time.is_zero() => Err("give a time above zero".to_owned()),
        other => other,
    }
}

/// Others have a meaning of their own.
fn parse_signal(text: &str) -> Result<i32, String> {
    match text.strip_prefix("SIG").unwrap_or(text) {
        "USR1" => Ok(10),
        "USR2" => Ok(12),
        _ => Err("give USR1 or USR2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |text: &str| parse_time(text).map(|time| time.as_secs_f64()).ok();
        for (text, wanted) in [
            ("10", 10.0),
            ("0.5", 0.5),
            ("250ms", 0.25),
            ("60s", 60.0),
            ("10m", 600.0),
            ("2min", 120.0),
            ("1h", 3600.0),
            ("0", 0.0),
        ] {
            assert_eq!(seconds(text), Some(wanted), "{text}");
        }
        for text in ["", "s", "-1", "1e99", "ten", "NaN"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert!(parse_length("0").is_err());
    }
}
