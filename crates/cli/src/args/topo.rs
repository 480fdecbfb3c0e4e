//! `busbound topo`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{EmitArgs, OutputArgs};

pub(super) const EXAMPLES: &str = "\
Reads the PCI tree of this machine, and NVLinks and peer access where an NVIDIA driver is loaded.
Nothing is changed.

Examples:
  busbound topo
  busbound topo --format json -o machine-topology.json
  busbound topo --from-nccl topo.xml        what NCCL_TOPO_DUMP_FILE wrote
  busbound topo --from-smi topo.txt         a saved nvidia-smi topo -m";

#[derive(Debug, Args)]
pub(crate) struct TopoArgs {
    /// NCCL's topology file, as NCCL_TOPO_DUMP_FILE writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_smi", "root"])]
    pub(crate) from_nccl: Option<PathBuf>,
    /// A saved `nvidia-smi topo -m`
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub(crate) from_smi: Option<PathBuf>,
    /// Where sys/ and proc/ of another machine lie
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
