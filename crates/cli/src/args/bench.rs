//! `busbound bench`.

use std::path::PathBuf;

use busbound::machine::bench::Suite;
use clap::Args;

use super::shared::OutputArgs;

pub(super) const EXAMPLES: &str = "\
Takes an eighth of the free memory at most for a buffer (1 GiB; three at once), sets no clock and
no mode, and gives everything back on Ctrl-C, with what was measured by then.

Examples:
  busbound bench                                   the curves and the usual suspects, under 20 s
  busbound bench --full --save h100-node7.json     every size and memory kind, a few minutes
  busbound bench --suite copy,duplex --gpu 1
  busbound bench --raw samples.json                keep every repetition
  busbound bench --from samples.json               judge kept samples again, without a GPU
  busbound diagnose run.json --machine machine.json";

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Every size, memory kind and combination, with a progress bar [default: a quick round]
    #[arg(long)]
    pub(crate) full: bool,
    #[arg(long = "suite", value_name = "NAME,…", value_delimiter = ',', value_parser = parse_suite)]
    #[arg(help = format!("Only these: {}", suite_names()))]
    pub(crate) suites: Vec<Suite>,
    /// Which GPU, as CUDA counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) gpu: u32,
    /// Where the profile goes [default: machine.json here; where that is taken machine-2.json, …]
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Write no profile
    #[arg(long, conflicts_with = "save")]
    pub(crate) no_save: bool,
    /// Keep the raw times of every repetition here
    #[arg(long, value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
    /// Judge samples that --raw kept, in place of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "suites", "gpu", "raw"])]
    pub(crate) from: Option<PathBuf>,
    /// Write a page with the curves drawn here as well
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
    /// Write the figures as nvbandwidth's JSON in place of the answer
    #[arg(long)]
    pub(crate) nvbandwidth: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn parse_suite(text: &str) -> Result<Suite, String> {
    let found = Suite::ALL.iter().copied().find(|suite| suite.name() == text);
    found.ok_or_else(|| format!("there is no such suite; there are {}", suite_names()))
}

fn suite_names() -> String {
    Suite::ALL.iter().map(|suite| suite.name()).collect::<Vec<_>>().join(", ")
}
