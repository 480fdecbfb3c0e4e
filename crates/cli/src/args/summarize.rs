//! `busbound summarize`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{JobsArgs, RunArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound summarize traces/ -o summaries/
  busbound summarize rank-$SLURM_PROCID.json.gz -o summaries/ \\
      --host $SLURMD_NODENAME
  busbound merge summaries/";

#[derive(Debug, Args)]
pub(crate) struct SummarizeArgs {
    /// Trace files, directories of rank files, or patterns ('rank*.json')
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write the summaries to this directory; it is created if necessary
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
    /// Name the machine that these ranks ran on [default: taken from the file name, if it is there]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Print no progress and no warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}
