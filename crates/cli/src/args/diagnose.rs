//! `busbound diagnose`.

use std::path::PathBuf;

use clap::Args;

use super::names::gpus;
use super::shared::{
    CompileLogArgs, EmitArgs, FlightRecorderArgs, JobsArgs, NcclLogArgs, OutputArgs, RunArgs, TopologyArgs,
};
use super::two_columns::wrapped;
use super::values::parse_size;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound run.json.gz                          diagnose is the default command
  busbound run.json.gz --open                   open the page in the browser
  busbound run.nsys-rep                         Nsight Systems; also run.sqlite
  busbound traces/                              all ranks, and how they differ
  busbound 'traces/rank*.json.gz' --each        also each rank on its own
  busbound run.json --machine pcie4x8           a slot narrower than the card
  busbound run.json -o run.md                   Markdown, for a ticket
  busbound --watch traces/                      each new trace, as it appears";

/// The examples, and the GPUs that --machine takes.
pub(super) fn long_help() -> String {
    format!("{EXAMPLES}\n\nGPUs:\n{}", wrapped(&gpus().join(", ")))
}

/// Options for several traces.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    /// Show each rank's own diagnosis below the comparison of ranks
    #[arg(long, help_heading = "Output")]
    pub(crate) each: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// Trace files, directories of rank files, patterns ('rank*.json'), or - for standard input
    #[arg(required_unless_present = "watch", conflicts_with = "watch", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) fine: FineArgs,
    #[command(flatten)]
    pub(crate) compile: CompileLogArgs,
    #[command(flatten)]
    pub(crate) nccl: NcclLogArgs,
    #[command(flatten)]
    pub(crate) flight: FlightRecorderArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
}

/// Traces that are still to come.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Diagnose each new trace in a directory, and what changed since the last one; Ctrl-C ends it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["each", "emit", "open"], help_heading = "Input")]
    pub(crate) watch: Option<PathBuf>,
    /// With --watch: a trace is complete if its file has not changed for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds, requires = "watch")]
    #[arg(hide_short_help = true, help_heading = "Input")]
    pub(crate) settle: f64,
}

/// A time that can be waited for.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "give seconds from 0.01 to 3600".to_owned())
}

/// What few people need.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct FineArgs {
    /// Read what Nsight Compute measured: ncu --csv --page raw --set roofline PROGRAM
    #[arg(long, value_name = "FILE.csv", hide_short_help = true)]
    pub(crate) ncu: Option<PathBuf>,
    /// Compare what fixes pin with this much host memory [default: what the trace or the machine's profile says]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) host_memory: Option<u64>,
    /// Set the bins of the bandwidth histogram, in GB/s
    #[arg(long, value_name = "GB/s,…", value_delimiter = ',', default_values_t = [5.0, 20.0, 50.0, 80.0])]
    #[arg(hide_short_help = true)]
    pub(crate) edges: Vec<f64>,
    /// Without GPU events: a copy above this rate in GB/s stayed within the GPU
    #[arg(long, value_name = "GB/s", default_value_t = 200.0, hide_short_help = true)]
    pub(crate) internal_above: f64,
    /// Without GPU events: a copy below this multiple of the link's peak may have crossed the bus
    #[arg(long, value_name = "TIMES", default_value_t = 1.2, hide_short_help = true)]
    pub(crate) bus_below: f64,
    /// Without GPU events: ignore copy operators shorter than this many ms
    #[arg(long, value_name = "MS", default_value_t = 0.5, hide_short_help = true)]
    pub(crate) shortest: f64,
}
