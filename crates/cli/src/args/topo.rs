//! `busbound topo`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{EmitArgs, OutputArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound topo
  busbound topo -o topo.json                for --topology
  busbound topo --from-nccl topo.xml        written by NCCL_TOPO_DUMP_FILE
  busbound topo --from-smi topo.txt         a saved nvidia-smi topo -m
  busbound topo --traffic                   what copies and collectives share
  busbound topo --list-links                PCIe and NVLink by generation";

#[derive(Debug, Args)]
pub(crate) struct TopoArgs {
    #[command(flatten)]
    pub(crate) from: FromArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    /// Show what copies and collectives of the GPUs share, and what it costs when they meet; the same as `plan contention
    /// --topology`
    #[arg(long, conflicts_with = "emit")]
    pub(crate) traffic: bool,
    /// List PCIe and NVLink by generation, with their rates
    #[arg(long, conflicts_with_all = ["traffic", "list_gpus", "emit", "from", "from_nccl", "from_smi", "root"])]
    pub(crate) list_links: bool,
    /// List the GPUs that are known by name, with their links, memory and multiprocessors
    #[arg(long, conflicts_with_all = ["traffic", "emit", "from", "from_nccl", "from_smi", "root"])]
    pub(crate) list_gpus: bool,
}

/// Where the topology comes from, if not from this machine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct FromArgs {
    /// Read a topology that `busbound topo -o topo.json` wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_nccl", "from_smi", "root"])]
    pub(crate) from: Option<PathBuf>,
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
