//! `busbound summarize`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{AnalysisArgs, JobsArgs, MachineArgs, ReadingArgs};

pub(super) const EXAMPLES: &str = "\
A summary has a few kilobytes: verdict, steps, where the time goes, copies, findings. Each rank can
make its own where its trace lies; only the summaries travel.

Examples:
  busbound summarize traces/ -o summaries/
  busbound summarize rank-$SLURM_PROCID.json.gz -o summaries/ --host $SLURMD_NODENAME
  busbound merge summaries/";

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
