//! `busbound whatif`.

use std::path::PathBuf;

use busbound::whatif::replay::{Change, all_changes};
use clap::Args;

use super::shared::{AnalysisArgs, MachineArgs, OutputArgs, ReadingArgs};

const ABOUT: &str = "\
Runs the trace again with the change made: copies take what the machine's curve says of their size
and memory, hosts go on where they no longer wait, work waits for its data by events.

Changes, made in the order given:
";

const EXAMPLES: &str = "
Examples:
  busbound whatif run.json.gz                               what is worth trying, the best first
  busbound whatif run.json.gz --apply pin --apply prefetch=2
  busbound whatif run.json.gz --apply link=pcie4x16 --machine machine.json";

/// With a line for each change there is.
pub(super) fn help() -> String {
    let changes = || all_changes().map(|about| (about.spelling, about.help));
    let width = changes().map(|(spelling, _)| spelling.len()).max().unwrap_or(0) + 3;
    let lines: String = changes().map(|(spelling, help)| format!("  {spelling:<width$}{help}\n")).collect();
    format!("{ABOUT}{lines}{EXAMPLES}")
}

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
