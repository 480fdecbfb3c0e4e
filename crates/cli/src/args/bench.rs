//! `busbound bench`.

use std::path::PathBuf;

use busbound::machine::bench::Suite;
use busbound_gpu::bench::CompanionTask;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::shared::OutputArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound bench                                   the common cases, under 20 s
  busbound bench --full --save h100-node7.json     everything, a few minutes
  busbound bench --suite copy,duplex --gpu 1
  busbound bench --suite contention                copies beside other work
  busbound bench --raw samples.json                keep every repetition
  busbound bench --from samples.json --open        evaluate them again, no GPU
  busbound run.json --machine machine.json         use the profile
  torchrun --no-python --nproc-per-node 8 busbound bench --suite allreduce \\
      --save machine.json                          one process per GPU (or
                                                   mpirun, srun: see docs)";

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) what: MeasureArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measurement")]
pub(crate) struct MeasureArgs {
    /// Measure every size, memory kind and combination [default: a quick selection]
    #[arg(long)]
    pub(crate) full: bool,
    /// Measure only these suites [default: all but contention and profiler]
    #[arg(long = "suite", value_name = "NAME,…", value_delimiter = ',', value_parser = any_suite())]
    pub(crate) suites: Vec<Suite>,
    /// Measure this GPU, by its CUDA number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) gpu: u32,
    /// Meet the other processes at this port of rank 0 [default: one above MASTER_PORT]
    ///
    /// For `--suite allreduce` started by torchrun, mpirun or srun. Without MASTER_PORT: 29501, or for srun one that the job's number chooses.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "from", hide_short_help = true)]
    pub(crate) port: Option<u16>,
    /// Wait this long for the other processes, and for each of their answers [default: 120]
    ///
    /// For `--suite allreduce` started by torchrun, mpirun or srun.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "from", hide_short_help = true)]
    pub(crate) timeout: Option<u64>,
    /// Copy until standard input says stop: `--suite contention` starts this program again with it.
    #[arg(long, value_name = "TASK", hide = true)]
    pub(crate) companion: Option<CompanionTask>,
    /// Evaluate samples saved by --raw instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "suites", "gpu", "raw"])]
    pub(crate) from: Option<PathBuf>,
}

/// Files next to the answer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct KeepArgs {
    /// Write the machine profile to this file [default: machine.json, or machine-2.json and so on if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Write no machine profile
    #[arg(long, conflicts_with = "save")]
    pub(crate) no_save: bool,
    /// Also write the raw times of every repetition to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) raw: Option<PathBuf>,
    /// Also write the page to this file; the older spelling of -o FILE.html.
    #[arg(long, value_name = "FILE.html", hide = true)]
    pub(crate) html: Option<PathBuf>,
    /// Print the results in nvbandwidth's JSON format instead of the answer
    #[arg(long, conflicts_with_all = ["open", "format", "json"], hide_short_help = true)]
    pub(crate) nvbandwidth: bool,
}

fn any_suite() -> impl TypedValueParser<Value = Suite> {
    PossibleValuesParser::new(Suite::ALL.iter().map(|suite| suite.name()))
        .try_map(|name| Suite::ALL.iter().copied().find(|suite| suite.name() == name).ok_or("unknown suite"))
}
