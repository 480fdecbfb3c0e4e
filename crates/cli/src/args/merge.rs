//! `busbound merge`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{OutputArgs, TopologyArgs};

pub(super) const EXAMPLES: &str = "\
The order does not matter, and what merge wrote as JSON can be merged again.

Examples:
  busbound merge summaries/
  busbound merge summaries/ --topology topo.json     which ranks share a way to the host
  busbound merge node*.fleet.json --format html -o fleet.html";

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
