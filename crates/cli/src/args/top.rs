//! `busbound top`.

use std::path::PathBuf;

use busbound::machine::live::BeatKeys;
use clap::Args;

use super::shared::{MachineArgs, OutputArgs};

pub(super) const EXAMPLES: &str = "\
Directions are the GPU's: what it receives (RX) goes to the device, what it sends (TX) to the host.
Shares are of the peak that `busbound bench` measured where --machine names its profile, else of the
link's nominal peak; the answer says which, and who told the traffic. Nothing is changed, and no
root is needed.

At a terminal this is a screen (q, Esc or Ctrl-C leaves it). Elsewhere it is one line for each GPU
and interval; with --prometheus nothing but the metrics.

Examples:
  busbound top --machine machine.json
  busbound top --once                               a table after one interval
  busbound top --json --count 60 > minute.jsonl     one object a line
  busbound top --log node7.jsonl                    keeps every interval
  busbound top --replay node7.jsonl                 plays them back, also without a GPU
  busbound top --prometheus 127.0.0.1:9401          GET /metrics
  busbound top --heartbeat 'run1/heartbeat_rank*.jsonl' --heartbeat 'logs/*.log' --watchdog 1800";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print one table after one interval and end; --format markdown and html and -o do so too
    #[arg(long, conflicts_with_all = ["count", "prometheus"])]
    pub(crate) once: bool,
    /// Seconds of an interval
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = parse_interval)]
    pub(crate) interval: f64,
    /// End after this many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Append every interval to this file, as JSON lines
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) log: Option<PathBuf>,
    /// Play back what --log or --json wrote, in place of asking a GPU
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Serve the figures to Prometheus here, e.g. 127.0.0.1:9401; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) prometheus: Option<String>,
    /// Files to which a training appends JSON lines, or logs; a pattern, may be given several times
    #[arg(long, value_name = "GLOB", conflicts_with = "replay")]
    pub(crate) heartbeat: Vec<String>,
    /// Keys of heartbeats where they have other names, e.g. dt_step_s=perf.step_s,toks_per_s=tps
    #[arg(long, value_name = "KEY=NAME,…", default_value = "batch=batch", hide_default_value = true)]
    pub(crate) keys: BeatKeys,
    /// Seconds after which the training's watchdog ends it; a step of half of that is a warning
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = parse_seconds)]
    pub(crate) watchdog: f64,
    /// Share of the bus' peak from which on lasting traffic is a warning
    #[arg(long, value_name = "PERCENT", default_value = "70%", value_parser = parse_share)]
    pub(crate) bus_share: f64,
    /// Seconds for which something has to last to be a warning
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = parse_seconds)]
    pub(crate) patience: f64,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A tenth of a second to an hour: faster asks more of the driver than it tells.
fn parse_interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "give seconds from 0.1 to 3600".to_owned())
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| "give seconds above zero".to_owned())
}

/// `70%`, or `0.7`.
fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    };
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "give a share such as 70% or 0.7".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_have_bounds() {
        assert_eq!(parse_share("70%"), Ok(0.7));
        assert_eq!(parse_share("0.5"), Ok(0.5));
        for wrong in ["70", "0", "-1%", "x", "NaN"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
        assert!(parse_interval("0.01").is_err() && parse_interval("2").is_ok());
        assert!(parse_seconds("inf").is_err() && parse_seconds("0").is_err());
    }
}
