//! `busbound gate`.

use std::path::PathBuf;

use busbound::diagnosis::{FigureId, PerStep, Unit};
use clap::Args;

use super::names::any_requirement;
use super::shared::{CompileLogArgs, NcclLogArgs, OutputArgs, RunArgs};
use super::two_columns::two_columns;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound gate run.json.gz --require 'exposed_copy_ms < 5'
  busbound gate run.json --require 'findings == 0' -o base.json
  busbound gate new.json --baseline base.json \\
      --require 'step_p50 <= 1.05 * baseline' --github
  busbound gate run.json --stage load=^load$ --stage compute=^compute$ \\
      --require 'overlap_score >= 30%'
  busbound gate run.json           requirements from [gate] in busbound.toml";

/// The examples, and every figure with its unit.
pub(super) fn long_help() -> String {
    let rows = FigureId::ALL.iter().map(|figure| {
        let unit = figure.unit().phrase(Unit::Step);
        let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
        (figure.name(), format!("{}{unit}", figure.summary()))
    });
    format!("{EXAMPLES}\n\nFigures:\n{}", two_columns(rows))
}

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Trace files or directories of rank files; each one must meet each requirement
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What one step processes, e.g. tokens=16384 for the figure tokens_per_s; repeatable
    #[arg(long, value_name = "NAME=COUNT", help_heading = "Analysis")]
    pub(crate) per_step: Vec<PerStep>,
    #[command(flatten)]
    pub(crate) bar: BarArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) compile: CompileLogArgs,
    #[command(flatten)]
    pub(crate) nccl: NcclLogArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) reports: CiArgs,
}

/// What a run has to meet.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Requirements")]
pub(crate) struct BarArgs {
    /// Require this of each run, e.g. 'exposed_copy_ms < 5'; repeatable [default: [gate] in busbound.toml]
    #[arg(long, value_name = "EXPR", value_parser = any_requirement(), hide_possible_values = true)]
    pub(crate) require: Vec<String>,
    /// Compare with this run: a trace, or what an earlier gate wrote with -o base.json
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Accept files that could only be read in part
    #[arg(long, hide_short_help = true)]
    pub(crate) partial: bool,
    /// The busbound.toml that the requirements come from, if no flag gave any.
    #[arg(skip)]
    pub(crate) file: Option<PathBuf>,
}

/// What CI servers read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct CiArgs {
    /// Also write JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also print GitHub annotations for failed requirements to standard error
    #[arg(long)]
    pub(crate) github: bool,
}
