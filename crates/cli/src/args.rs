//! What did the user type? Parsed flags, nothing resolved yet.

use std::path::PathBuf;

use busbound_diagnosis::{FigureId, StageChoice};
use busbound_machine::bench::Suite;
use busbound_whatif::replay::Change;
use clap::{Args, Parser, Subcommand, ValueEnum};
use regex::Regex;

use crate::args_fleet::{FleetArgs, MERGE_EXAMPLES, MergeArgs, SUMMARIZE_EXAMPLES, SummarizeArgs};
use crate::args_plan::PlanCommand;
use crate::args_top::{TOP_EXAMPLES, TopArgs};
use crate::completions::{COMPLETIONS_EXAMPLES, CompletionsArgs};
use crate::man::{MAN_EXAMPLES, ManArgs};

/// Is your GPU waiting for the bus, where, and what do you gain by which change?
#[derive(Debug, Parser)]
#[command(name = "busbound", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 fine (also where only some of several inputs could be read), 1 a gate's requirement does
not hold, 2 wrong usage, 3 nothing in the input could be read, 4 no GPU to measure.";

const GATE_EXAMPLES: &str = "\
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
fn gate_help() -> String {
    let mut text = GATE_EXAMPLES.to_owned();
    let widest = FigureId::ALL.iter().map(|figure| figure.name().len()).max().unwrap_or(0);
    for figure in FigureId::ALL {
        let unit = figure.unit().phrase("step");
        let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
        text.push_str(&format!("\n  {:<widest$}  {}{unit}", figure.name(), figure.summary()));
    }
    text
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What does this look like? Diagnoses a real trace that is built into the program and writes its page.
    Demo(DemoArgs),
    /// Is my GPU waiting for the bus, where, what do I change, what do I gain?
    #[command(after_help = DIAGNOSE_EXAMPLES)]
    Diagnose(DiagnoseArgs),
    /// What is worth keeping of each rank? Writes a small file for each, which merge takes.
    #[command(after_help = SUMMARIZE_EXAMPLES)]
    Summarize(SummarizeArgs),
    /// How do the ranks differ? Lays the summaries of ranks together.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// What changed between two runs, or along a sweep?
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Does this run still meet its bar? Exit code 1 if not; for CI.
    #[command(after_help = gate_help())]
    Gate(GateArgs),
    /// What would this run take if …?
    #[command(name = "whatif", after_help = WHATIF_EXAMPLES)]
    WhatIf(WhatIfArgs),
    /// What will a run take that I have not made, and which knobs suit it?
    #[command(subcommand)]
    Plan(PlanCommand),
    /// What is this machine: GPUs, switches, links, and what lies between them?
    #[command(after_help = TOPO_EXAMPLES)]
    Topo(TopoArgs),
    /// What does this machine really reach? Measures its GPU and writes the profile that --machine takes.
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Record a run without touching its code.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// What is the bus doing now?
    #[command(after_help = TOP_EXAMPLES)]
    Top(TopArgs),
    /// Hand it to the tools I already use.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// What is in this file, and what is missing from it?
    #[command(after_help = SURVEY_EXAMPLES)]
    Survey(SurveyArgs),
    /// Print what a shell needs to complete busbound's command line.
    #[command(hide = true, after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual, or write its pages.
    #[command(hide = true, after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

const DIAGNOSE_EXAMPLES: &str = "\
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

const COMPARE_EXAMPLES: &str = "\
Examples:
  busbound compare before.json.gz after.json.gz
  busbound compare before.json.gz after.json.gz --format html -o both.html    lanes on one scale
  busbound compare b2.json b4.json b8.json --label batch=2,4,8    throughput over the batch size,
                                                                  and what grew faster than it";

const SURVEY_EXAMPLES: &str = "\
Reads .json and .json.gz of torch.profiler, .sqlite of nsys export and .bbt of busbound record,
whole, cut off or damaged: every readable event counts, and what was lost is said with its place.
A .nsys-rep is exported first, where nsys is installed.

Examples:
  busbound survey run.json.gz
  busbound survey traces/                     every rank file in a directory
  busbound survey run.sqlite                  what nsys export --type sqlite wrote
  zcat huge.json.gz | busbound survey -       from standard input
  busbound survey run.json --format json      for programs";

const WHATIF_EXAMPLES: &str = "\
Runs the trace again with the change made: copies take what the machine's curve says of their size and
memory, hosts go on where they no longer wait, work waits for its data by events.

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

const TOPO_EXAMPLES: &str = "\
Reads the PCI tree of this machine, and NVLinks and peer access where an NVIDIA driver is loaded. Nothing
is changed.

Examples:
  busbound topo
  busbound topo --format json -o machine-topology.json
  busbound topo --from-nccl topo.xml        what NCCL_TOPO_DUMP_FILE wrote
  busbound topo --from-smi topo.txt         a saved nvidia-smi topo -m";

const BENCH_EXAMPLES: &str = "\
Takes an eighth of the free memory at most for a buffer (1 GiB; three at once), sets no clock and
no mode, and gives everything back on Ctrl-C, with what was measured by then.

Examples:
  busbound bench                                   the curves and the usual suspects, under 20 s
  busbound bench --full --save h100-node7.json     every size and memory kind, a few minutes
  busbound bench --suite copy,duplex --gpu 1
  busbound bench --raw samples.json                keep every repetition
  busbound bench --from samples.json               judge kept samples again, without a GPU
  busbound diagnose run.json --machine machine.json";

const RECORD_EXAMPLES: &str = "\
Starts CMD with a small library in it that records copies, kernels, calls, waits and NVTX ranges through the
process's own CUPTI. Its output, exit code and signals are its own. Each further process that uses CUDA writes
a file beside the first one: run.1234.bbt. A run that is killed loses the last second at most.

Examples:
  busbound record -- python train.py
  busbound record -o run.bbt --delay 60 --duration 10 -- torchrun --nproc-per-node 8 train.py
  busbound diagnose run.bbt";

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where the recording goes
    #[arg(short, long, value_name = "FILE.bbt", default_value = "run.bbt")]
    pub(crate) output: PathBuf,
    /// Seconds from the first use of CUDA until recording begins
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) delay: f64,
    /// Seconds that are recorded [default: all]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub(crate) duration: Option<f64>,
    /// Overwrite a recording that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Say nothing about the recording
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds, e.g. 10 or 0.5".to_owned()),
    }
}

const EXPORT_EXAMPLES: &str = "\
For perfetto: every event that could be read on its own track, also of a file that is cut off; beside them
the bus in GB/s each way, why each device was idle, where each finding lies, and the timeline predicted.
For parquet: a folder with events, copies, gaps and steps as tables, for DuckDB, Polars, pandas or Spark;
docs/tables.md has their columns.

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

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Every size, memory kind and combination, with a progress bar [default: a quick round]
    #[arg(long)]
    pub(crate) full: bool,
    /// Only these: copy, duplex, p2p, latency, overlap, double-buffer, offload, allreduce, power, hbm
    #[arg(long = "suite", value_name = "NAME,…", value_delimiter = ',', value_parser = parse_suite)]
    pub(crate) suites: Vec<Suite>,
    /// Which GPU, as CUDA counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) gpu: u32,
    /// Where the profile goes [default: machine.json here; where that is taken machine-2.json, …]
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Write no profile
    #[arg(long, conflicts_with = "save")]
    pub(crate) no_save: bool,
    /// Keep the raw times of every repetition here
    #[arg(long, value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
    /// Judge samples that --raw kept, in place of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "suites", "gpu", "raw"])]
    pub(crate) from: Option<PathBuf>,
    /// Write a page with the curves drawn here as well
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
    /// Write the figures as nvbandwidth's JSON in place of the answer
    #[arg(long)]
    pub(crate) nvbandwidth: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn parse_suite(text: &str) -> Result<Suite, String> {
    let found = Suite::ALL.into_iter().find(|suite| suite.name() == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = Suite::ALL.iter().map(|suite| suite.name()).collect();
        format!("there is no such suite; there are {}", names.join(", "))
    })
}

#[derive(Debug, Args)]
pub(crate) struct TopoArgs {
    /// NCCL's topology file, as NCCL_TOPO_DUMP_FILE writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_smi", "root"])]
    pub(crate) from_nccl: Option<PathBuf>,
    /// A saved `nvidia-smi topo -m`
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub(crate) from_smi: Option<PathBuf>,
    /// Where sys/ and proc/ of another machine lie
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "busbound-demo.html")]
    pub(crate) page: PathBuf,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SurveyArgs {
    /// Trace files, directories of rank files, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
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

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Trace files or directories of rank files; every one has to meet every requirement
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What has to hold, e.g. 'exposed_copy_ms < 5'; may be given several times
    #[arg(long, required = true, value_name = "EXPR")]
    pub(crate) require: Vec<String>,
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

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Trace files, one a run, in order
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What the runs differ in, one number a run: batch=2,4,8
    #[arg(long, value_name = "KEY=N,N,…", value_parser = parse_labels)]
    pub(crate) label: Option<(String, Vec<f64>)>,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

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
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
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

/// What to write in place of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// KEY=VALUE lines
    Env,
    Yaml,
    /// Exports, to be sourced
    Sh,
}

#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// Write the launch settings that the answer argues for, each with its reason, in place of the answer
    #[arg(long, value_enum)]
    pub(crate) emit: Option<Emit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Terminal,
    Markdown,
    Json,
    Html,
}

/// `batch=2,4,8`.
fn parse_labels(text: &str) -> Result<(String, Vec<f64>), String> {
    let wrong = || "give a key and one number above zero for each run, e.g. batch=2,4,8".to_owned();
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Option<Vec<f64>> =
        values.split(',').map(|value| value.trim().parse().ok().filter(|value: &f64| *value > 0.0)).collect();
    Ok((key.to_owned(), values.ok_or_else(wrong)?))
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

/// `500MB`, `8GB`, `1.5GiB` or plain bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 13] = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("B", 1.0),
        ("K", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];
    let found = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value * factor < 1e18 => Ok((value * factor) as u64),
        _ => Err("give a size such as 500MB, 8GB or 2GiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("500MB"), Ok(500_000_000));
        assert_eq!(parse_size("8G"), Ok(8_000_000_000));
        assert_eq!(parse_size("1.5GiB"), Ok(1_610_612_736));
        assert_eq!(parse_size("4096"), Ok(4096));
        for wrong in ["", "GB", "-1GB", "ten", "NaN", "1e30GB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
