//! `busbound whatif`.

use std::path::PathBuf;

use busbound::whatif::replay::Change;
use clap::Args;

use super::shared::{AnalysisArgs, MachineArgs, OutputArgs, ReadingArgs};

pub(super) const EXAMPLES: &str = "\
Runs the trace again with the change made: copies take what the machine's curve says of their size
and memory, hosts go on where they no longer wait, work waits for its data by events.

Changes, made in the order given:
  pin           host memory page-locked
  prefetch=N    copies to the device on a stream of their own, N groups ahead
  async         copies that block made asynchronous, each direction on its own stream
  coalesce      small copies in a row merged into one
  nosync        synchronisation within a step removed
  link=NAME     another link (pcie4x16, h100-pcie, a rate in GB/s)
  resident=N%   this share of the weights that come in each step kept on the device

Examples:
  busbound whatif run.json.gz                               what is worth trying, the best first
  busbound whatif run.json.gz --apply pin --apply prefetch=2
  busbound whatif run.json.gz --apply link=pcie4x16 --machine machine.json";

#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// Trace files or directories of rank files
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// A change; several are made one after another [default: what the trace gives reason to try]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',')]
    pub(crate) apply: Vec<Change>,
    /// Write both timelines here, as it was and as predicted: .json for ui.perfetto.dev, .html for a page
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
