//! `busbound topo`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{EmitArgs, OutputArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound topo
  busbound topo -o topo.json                for --topology
  busbound topo --from-nccl topo.xml        written by NCCL_TOPO_DUMP_FILE
  busbound topo --from-smi topo.txt         a saved nvidia-smi topo -m";

#[derive(Debug, Args)]
pub(crate) struct TopoArgs {
    #[command(flatten)]
    pub(crate) from: FromArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
}

/// Where the topology comes from, if not from this machine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct FromArgs {
    /// Read NCCL's topology file, as NCCL_TOPO_DUMP_FILE writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_smi", "root"])]
    pub(crate) from_nccl: Option<PathBuf>,
    /// Read a saved `nvidia-smi topo -m`
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub(crate) from_smi: Option<PathBuf>,
    /// Read another machine's sys/ and proc/ from this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}
