//! `busbound top`.

use std::path::PathBuf;

use busbound::machine::live::BeatKeys;
use clap::Args;

use super::shared::{MachineArgs, OutputArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound top --machine machine.json
  busbound top --once                              one table, after one interval
  busbound top --format json --count 60 > minute.jsonl
  busbound top --log node7.jsonl                   keep every interval
  busbound top --replay node7.jsonl                play them back, without a GPU
  busbound top --prometheus 127.0.0.1:9401         serve GET /metrics
  busbound top --otlp http://127.0.0.1:4318        send to OpenTelemetry
  busbound top --summaries summaries/              verdicts of running jobs
  busbound top --heartbeat 'run1/heartbeat_rank*.jsonl' --watchdog 1800";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print one table after one interval, then exit; so do -o, --open and --format markdown or html
    #[arg(long, conflicts_with_all = ["count", "prometheus", "otlp"])]
    pub(crate) once: bool,
    /// Sample every S seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = parse_interval)]
    pub(crate) interval: f64,
    /// Exit after this many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Append every interval to this file, as JSON lines
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) log: Option<PathBuf>,
    /// Play back what --log or --format json wrote, instead of asking a GPU
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Serve Prometheus metrics at this address, e.g. 127.0.0.1:9401; port 0 picks a free port
    #[arg(long, value_name = "ADDR")]
    pub(crate) prometheus: Option<String>,
    /// Send metrics to an OpenTelemetry collector every interval, by OTLP over plain HTTP; without a URL, to
    /// $OTEL_EXPORTER_OTLP_ENDPOINT, or else http://127.0.0.1:4318
    #[arg(long, value_name = "URL", hide_short_help = true)]
    #[expect(clippy::option_option, reason = "clap's type for a flag with an optional value")]
    pub(crate) otlp: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    #[command(flatten)]
    pub(crate) warnings: WarningArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What the training itself writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Show the verdicts, steps and phases in the summaries that `record --every` writes to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) summaries: Option<PathBuf>,
    /// Follow files that the training appends JSON lines or log lines to; a pattern, repeatable. With --replay, their
    /// newest lines are shown at the end of the log
    #[arg(long, value_name = "GLOB")]
    pub(crate) heartbeat: Vec<String>,
    /// Rename keys of heartbeats, e.g. dt_step_s=perf.step_s,toks_per_s=tps
    #[arg(long, value_name = "KEY=NAME,…", default_value = "batch=batch", hide_default_value = true)]
    #[arg(hide_short_help = true)]
    pub(crate) keys: BeatKeys,
}

/// When to warn.
#[derive(Debug, Args)]
#[command(next_help_heading = "Warnings")]
pub(crate) struct WarningArgs {
    /// Warn when a step takes half of the training's watchdog timeout, in seconds
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = parse_seconds, hide_short_help = true)]
    pub(crate) watchdog: f64,
    /// Warn when traffic stays above this share of the bus's peak
    #[arg(long, value_name = "PERCENT", default_value = "70%", value_parser = parse_share, hide_short_help = true)]
    pub(crate) bus_share: f64,
    /// Warn only about what lasts this many seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = parse_seconds, hide_short_help = true)]
    pub(crate) patience: f64,
}

/// A tenth of a second to an hour: the driver updates its figures no faster.
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
