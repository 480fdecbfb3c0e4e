//! `busbound gate`.

use std::path::PathBuf;

use busbound::diagnosis::{FigureId, PerStep, Unit};
use clap::Args;

use super::shared::{AnalysisArgs, MachineArgs, OutputArgs, ReadingArgs};

const EXAMPLES: &str = "\
A requirement compares figures with numbers (5, 0.3, 30%) or with those of the baseline, using
+ - * / ( ) and < <= > >= == !=. `baseline` is the baseline's value of the first figure named,
`baseline.FIGURE` that of another. What a run does not tell does not pass.

Examples:
  busbound gate run.json.gz --require 'exposed_copy_ms < 5' --require 'idle_share < 10%'
  busbound gate new.json --baseline old.json --require 'step_p50 <= 1.05 * baseline'
  busbound gate good.json --require 'findings == 0' --format json -o bar.json    saves a baseline
  busbound gate new.json --baseline bar.json --require 'step_p50 <= 1.05 * baseline' --github
  busbound gate run.json --stage load=^load$ --stage compute=^compute$ --require 'overlap_score >= 0.3'

Figures:";

/// The examples, and every figure with its unit.
pub(super) fn help() -> String {
    let mut text = EXAMPLES.to_owned();
    let widest = FigureId::ALL.iter().map(|figure| figure.name().len()).max().unwrap_or(0);
    for figure in FigureId::ALL {
        let unit = figure.unit().phrase(Unit::Step);
        let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
        text.push_str(&format!("\n  {:<widest$}  {}{unit}", figure.name(), figure.summary()));
    }
    text
}

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Trace files or directories of rank files; every one has to meet every requirement
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What has to hold, e.g. 'exposed_copy_ms < 5'; may be given several times
    #[arg(long, required = true, value_name = "EXPR")]
    pub(crate) require: Vec<String>,
    /// What one step processes, e.g. tokens=16384 for the figure tokens_per_s; repeatable
    #[arg(long, value_name = "NAME=COUNT")]
    pub(crate) per_step: Vec<PerStep>,
    /// A run to compare with: a trace, or what an earlier gate wrote with --format json
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Let a file pass that could be read in part only
    #[arg(long)]
    pub(crate) partial: bool,
    /// Write JUnit XML here as well
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Print GitHub annotations of what failed to standard error
    #[arg(long)]
    pub(crate) github: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
