//! What did the user type about many ranks?

use std::path::PathBuf;

use clap::Args;

use crate::args::{AnalysisArgs, MachineArgs, OutputArgs, ReadingArgs};

pub(crate) const SUMMARIZE_EXAMPLES: &str = "\
A summary has a few kilobytes: verdict, steps, where the time goes, copies, findings. Each rank can make
its own where its trace lies; only the summaries travel.

Examples:
  busbound summarize traces/ -o summaries/
  busbound summarize rank-$SLURM_PROCID.json.gz -o summaries/ --host $SLURMD_NODENAME
  busbound merge summaries/";

pub(crate) const MERGE_EXAMPLES: &str = "\
The order does not matter, and what merge wrote as JSON can be merged again.

Examples:
  busbound merge summaries/
  busbound merge summaries/ --topology topo.json     which ranks share a way to the host
  busbound merge node*.fleet.json --format html -o fleet.html";

/// What is asked of several traces at once.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    /// Show every rank's own diagnosis under what they come to [default: of up to 4 ranks]
    #[arg(long)]
    pub(crate) each: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// Traces read at once, as far as --memory allows [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    /// How the machine is wired: what `busbound topo --format json` or NCCL_TOPO_DUMP_FILE wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SummarizeArgs {
    /// Trace files, directories of rank files, or patterns ('rank*.json')
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The folder for the summaries; made where it is not there
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
    /// The machine that these ranks ran on [default: what the file's name tells]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// No progress and no remarks on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Summaries, directories of them, or patterns ('node1/*.rank.json')
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
