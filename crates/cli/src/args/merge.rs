//! `busbound merge`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{OutputArgs, TopologyArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound merge summaries/
  busbound merge summaries/ --topology topo.json    which ranks share an uplink
  busbound merge node*.fleet.json --open";

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Rank summaries, directories of them, or patterns ('node1/*.rank.json')
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) topology: TopologyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
