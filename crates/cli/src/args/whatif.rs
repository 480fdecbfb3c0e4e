//! `busbound whatif`.

use std::path::PathBuf;

use busbound::whatif::replay::{Change, all_changes};
use clap::Args;

use super::names::any_change;
use super::shared::{OutputArgs, RunArgs};
use super::two_columns::two_columns;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound whatif run.json.gz                    the most promising changes
  busbound whatif run.json.gz --apply pin --apply prefetch=2
  busbound whatif run.json.gz --apply link=pcie5x16 --open
  busbound whatif traces/ --apply pin --rank 4   the step of the whole job";

/// The examples, and a line for each change.
pub(super) fn long_help() -> String {
    let rows = all_changes().map(|about| (about.spelling, about.help.to_owned()));
    format!("{EXAMPLES}\n\nChanges:\n{}", two_columns(rows))
}

#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// Trace files, directories of rank files, patterns ('rank*.json'), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Predict this change: pin, stage, loader=pin, workers=N, prefetch=N, async, stream, copied, keep, resident=N%, coalesce, nosync, graph, optimizer=overlap|gpu, spread or link=NAME; several are applied in
    /// order [default: the changes that fit the trace]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = any_change(), hide_possible_values = true)]
    #[arg(help_heading = "Analysis")]
    pub(crate) apply: Vec<Change>,
    /// Make the changes only on this rank, and predict the step of the whole job: give the traces of all its ranks
    #[arg(long, value_name = "N", help_heading = "Analysis")]
    pub(crate) rank: Option<u32>,
    /// Also write both timelines, recorded and predicted: .json for ui.perfetto.dev, .html for a page. The same as
    /// -o FILE.html and `export --to perfetto --apply`.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) timeline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
