//! Flags that several commands have. Each group has a heading in `--help`.

use std::path::PathBuf;

use busbound::Format;
use busbound::diagnosis::StageChoice;
use clap::Args;
use regex_lite::Regex;

use super::names::any_machine;
use super::values::{general_format, parse_milliseconds, parse_size, settings_format};

/// How every command that analyzes runs reads and analyzes them.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// The machine that copies are compared against.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct MachineArgs {
    /// Compare copies with this GPU, link, rate or profile: h100-pcie, pcie4x16, 63 (GB/s), machine.json
    ///
    /// Without it, the GPU named in the trace counts. `busbound bench` writes profiles; `busbound diagnose --help` lists the
    /// GPUs.
    #[arg(long, value_name = "NAME", value_parser = any_machine(), hide_possible_values = true)]
    pub(crate) machine: Option<String>,
    /// The busbound.toml that the name comes from, if no flag gave it.
    #[arg(skip)]
    pub(crate) file: Option<PathBuf>,
}

/// What counts as a step, a block or a stage.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct AnalysisArgs {
    /// Use annotations that match as steps [default: ProfilerStep#N, step and the like, else a detected iteration]
    #[arg(long, value_name = "REGEX")]
    pub(crate) steps: Option<Regex>,
    /// Leave out the first N steps [default: steps at the beginning that are clearly longer]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) warmup: Option<usize>,
    /// Start from this step time without the profiler, e.g. 31.8ms [default: measured or estimated]
    ///
    /// A profiler slows down the host. Time a few steps without it and give the mean; without a unit it is milliseconds.
    /// compare takes one time per run, separated by commas.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_milliseconds)]
    pub(crate) wall: Vec<f64>,
    /// Attribute time to annotations that match, e.g. 'layer\d+' [default: the two outermost levels]
    #[arg(long, value_name = "REGEX", conflicts_with = "depth", hide_short_help = true)]
    pub(crate) by: Option<Regex>,
    /// Attribute time to annotations down to this nesting level
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=20), hide_short_help = true)]
    pub(crate) depth: Option<u8>,
    /// Name a pipeline stage and its annotations, e.g. 'load=^load$'; give it twice or more [default: annotations named
    /// stage0, stage1 and so on]
    #[arg(long = "stage", value_name = "NAME=REGEX", value_parser = parse_stage, hide_short_help = true)]
    pub(crate) stages: Vec<StageChoice>,
    /// The busbound.toml that `steps` comes from, if no flag gave it.
    #[arg(skip)]
    pub(crate) steps_file: Option<PathBuf>,
    /// The same for `warmup`.
    #[arg(skip)]
    pub(crate) warmup_file: Option<PathBuf>,
    /// The same for `wall`.
    #[arg(skip)]
    pub(crate) wall_file: Option<PathBuf>,
}

/// What NCCL printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct NcclLogArgs {
    /// Read what NCCL printed with NCCL_DEBUG=INFO: how the ranks are connected
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) nccl_log: Vec<PathBuf>,
}

/// What PyTorch's flight recorder wrote.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct FlightRecorderArgs {
    /// Read the dumps of PyTorch's flight recorder, or a folder of them: collectives that never ended, and their sizes
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) flight_recorder: Vec<PathBuf>,
}

/// What torch.compile printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct CompileLogArgs {
    /// Read what the run printed with TORCH_LOGS=graph_breaks,recompiles: where graphs break, and why it recompiles
    ///
    /// Begin the log with a line that says so (echo TORCH_LOGS=$TORCH_LOGS): without it, a log that has no graph break does not
    /// show that there is none. compare takes one log per run.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) compile_log: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ReadingArgs {
    /// Scan with this many threads, shared by all traces [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), hide_short_help = true)]
    pub(crate) threads: Option<u16>,
    /// Stop reading at this much memory, e.g. 500MB or 8GB; traces read at the same time share it [default: half of
    /// the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write the answer to a file; .html, .md or .json chooses the format
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the answer as a page and open it in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Choose the format [default: by the ending of the -o file, else terminal]
    #[arg(long, value_parser = general_format())]
    pub(crate) format: Option<Format>,
    /// The older spelling of --format json.
    #[arg(long, conflicts_with = "format", hide = true)]
    pub(crate) json: bool,
    /// Show all tables and notes, and which busbound.toml was used
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print no progress and no warnings
    #[arg(short, long, hide_short_help = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EmitArgs {
    /// Print the launch settings that follow from the answer, each with its reason, instead of the answer
    #[arg(long, value_parser = settings_format(), conflicts_with_all = ["open", "format", "json"], hide_short_help = true)]
    pub(crate) emit: Option<Format>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct JobsArgs {
    /// Read this many traces at the same time, as far as --memory allows [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), hide_short_help = true)]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct TopologyArgs {
    /// Read which GPUs share a PCIe uplink from a file written by `busbound topo -o topo.json` or NCCL_TOPO_DUMP_FILE
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) topology: Option<PathBuf>,
}

/// `load=^load$`.
fn parse_stage(text: &str) -> Result<StageChoice, String> {
    let (name, expression) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("give a name and a regular expression, e.g. load=^load$")?;
    let matching = Regex::new(expression).map_err(|error| error.to_string())?;
    Ok(StageChoice { name: name.to_owned(), matching })
}
