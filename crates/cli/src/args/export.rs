//! `busbound export`.

use std::path::PathBuf;

use busbound::whatif::replay::Change;
use clap::{Args, ValueEnum};

use super::names::any_change;
use super::shared::RunArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound export run.json.gz --to perfetto        then open ui.perfetto.dev
  busbound export run.json.gz --to perfetto --apply pin,prefetch=1
  busbound export run.bbt --to chrome -o run.json.gz
  busbound export run.json.gz --to parquet -o run/    run/copies.parquet, …
  busbound export run.json.gz --to tensorboard -o logs/ --at 1000";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A trace file, or - for standard input
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Choose the tool to export for
    #[arg(long, value_enum)]
    pub(crate) to: ExportTo,
    /// Add the timeline predicted for these changes [default: the most promising ones]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = any_change(), hide_possible_values = true)]
    #[arg(help_heading = "Analysis")]
    pub(crate) apply: Vec<Change>,
    /// For tensorboard: the training step on the horizontal axis [default: the largest N of ProfilerStep#N in
    /// the trace, else 0]
    #[arg(long, value_name = "STEP")]
    pub(crate) at: Option<u64>,
    /// Write to this file, compressed if it ends in .gz; for parquet and tensorboard, to this directory [default: PATH's name with
    /// .perfetto.json.gz, .chrome.json.gz, .tables or .tensorboard, in the working directory]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print no progress and no warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTo {
    /// For ui.perfetto.dev: the trace plus bandwidth, idle causes, findings and the predicted timeline
    Perfetto,
    /// The trace alone, in torch.profiler's format
    Chrome,
    /// Tables for DuckDB, Polars, pandas or Spark: events, copies, gaps, steps
    Parquet,
    /// Figures of the diagnosis as curves: one point per trace, in milliseconds per step
    Tensorboard,
}
