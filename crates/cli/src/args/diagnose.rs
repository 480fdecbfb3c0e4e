//! `busbound diagnose`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{AnalysisArgs, EmitArgs, JobsArgs, MachineArgs, OutputArgs, ReadingArgs, TopologyArgs};

pub(super) const EXAMPLES: &str = "\
Copies are judged against the GPU's link: what --machine says, else what its name says, else an
assumption; the answer says which.

Files that tell ranks of one run are laid side by side: who is out of line, and what differs there.
Others are judged each by itself.

Examples:
  busbound diagnose run.json.gz
  busbound diagnose run.nsys-rep                     of Nsight Systems; so is run.sqlite
  busbound diagnose traces/                          every rank, and how they differ
  busbound diagnose 'traces/rank*.json.gz' --each    and each rank's own diagnosis
  busbound diagnose traces/ --topology topo.json     and which ranks share a way to the host
  busbound diagnose run.json --machine pcie4x8       a slot narrower than the card
  busbound diagnose run.json --format markdown       for a ticket
  busbound diagnose run.json --format html -o run.html   to look at, offline, and to mail";

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
pub(crate) struct DiagnoseArgs {
    /// Trace files, directories of rank files, patterns ('rank*.json'), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Edges of the bandwidth histogram in GB/s
    #[arg(long, value_name = "GB/s,…", value_delimiter = ',', default_values_t = [5.0, 20.0, 50.0, 80.0])]
    pub(crate) edges: Vec<f64>,
    /// Without GPU events: above this rate a copy stayed within the GPU, in GB/s
    #[arg(long, value_name = "GB/s", default_value_t = 200.0)]
    pub(crate) internal_above: f64,
    /// Without GPU events: below this multiple of the link's peak a copy can have crossed the bus
    #[arg(long, value_name = "TIMES", default_value_t = 1.2)]
    pub(crate) bus_below: f64,
    /// Without GPU events: shorter copy operators are not judged, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.5)]
    pub(crate) shortest: f64,
    /// What Nsight Compute measured of the kernels: ncu --csv --page raw --set roofline PROGRAM
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) ncu: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
