//! `busbound export`.

use std::path::PathBuf;

use busbound::whatif::replay::Change;
use clap::{Args, ValueEnum};

use super::shared::{AnalysisArgs, MachineArgs, ReadingArgs};

pub(super) const EXAMPLES: &str = "\
For perfetto: every event that could be read on its own track, also of a file that is cut off;
beside them the bus in GB/s each way, why each device was idle, where each finding lies, and the
timeline predicted.
For parquet: a folder with events, copies, gaps and steps as tables, for DuckDB, Polars, pandas or
Spark; docs/tables.md has their columns.

Examples:
  busbound export run.json.gz --to perfetto -o run.perfetto.json.gz    open it in ui.perfetto.dev
  busbound export run.json.gz --to perfetto --apply pin,prefetch=1     with this prediction
  busbound export run.bbt --to chrome -o run.json.gz                   for what reads torch.profiler's files
  busbound export run.json.gz --to parquet -o run/                     run/copies.parquet and three more";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A trace file, or - for standard input
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// For which tool: perfetto is ui.perfetto.dev or chrome://tracing, chrome the trace alone, shaped like torch.profiler's,
    /// parquet tables for data frames and SQL
    #[arg(long, value_enum)]
    pub(crate) to: ExportTo,
    /// Changes whose timeline is predicted [default: the best of those worth trying]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',')]
    pub(crate) apply: Vec<Change>,
    /// Where it goes; packed where it ends in .gz, for parquet a folder [default: PATH's name with .perfetto.json.gz,
    /// .chrome.json.gz or .tables, here]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// No progress on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTo {
    Perfetto,
    Chrome,
    Parquet,
}
