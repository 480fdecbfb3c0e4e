//! Flags that several commands have.

use std::path::PathBuf;

use busbound::Format;
use busbound::diagnosis::StageChoice;
use clap::Args;
use regex_lite::Regex;

use super::values::{general_format, parse_size, settings_format};

/// What copies are judged against.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// The GPU's link or the GPU (pcie4x16, h100-pcie, …), a rate in GB/s, or a measured profile.json
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
}

/// What counts as a step, a block or a stage.
#[derive(Debug, Args)]
pub(crate) struct AnalysisArgs {
    /// Annotations that mark steps [default: ProfilerStep#N, step, iteration …; else what repeats]
    #[arg(long, value_name = "REGEX")]
    pub(crate) steps: Option<Regex>,
    /// Leave out the first N steps [default: those at the beginning that are clearly longer]
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<usize>,
    /// Lay time to the annotations that match, e.g. 'layer\d+' [default: the two outermost levels]
    #[arg(long, value_name = "REGEX", conflicts_with = "depth")]
    pub(crate) by: Option<Regex>,
    /// Lay time to annotations down to this many levels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=20))]
    pub(crate) depth: Option<u8>,
    /// A stage of a pipeline and its annotations, twice or more, e.g. 'load=^load$' [default: stage0,
    /// stage1 …]
    #[arg(long = "stage", value_name = "NAME=REGEX", value_parser = parse_stage)]
    pub(crate) stages: Vec<StageChoice>,
}

#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// Threads that scan, over all traces read at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Stop reading when a trace takes this much memory, e.g. 500MB or 8GB; traces read at once share
    /// it [default: half of what the machine has free]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How to show the answer; html is one page that opens from disk, offline, and can be mailed
    #[arg(long, value_parser = general_format(), default_value_t = Format::Terminal)]
    pub(crate) format: Format,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Write the answer to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// No progress on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// Write the launch settings that the answer argues for, each with its reason, in place of the answer
    #[arg(long, value_parser = settings_format())]
    pub(crate) emit: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// Traces read at once, as far as --memory allows [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    /// How the machine is wired: what `busbound topo --format json` or NCCL_TOPO_DUMP_FILE wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
}

/// `load=^load$`.
fn parse_stage(text: &str) -> Result<StageChoice, String> {
    let (name, expression) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("give a name and an expression, e.g. load=^load$")?;
    let matching = Regex::new(expression).map_err(|error| error.to_string())?;
    Ok(StageChoice { name: name.to_owned(), matching })
}
