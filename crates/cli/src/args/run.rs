//! `busbound run`.

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound run -- python generate.py
  busbound run -- torchrun --nproc-per-node 8 train.py
  BUSBOUND_STAGE=off busbound run -- python generate.py     turned off";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) stage: StageArgs,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// How copies are staged.
#[derive(Debug, Args)]
#[command(next_help_heading = "Staging")]
pub(crate) struct StageArgs {
    /// Threads that copy, in each process [default: as many as fill the link, within the CPUs of the process]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) threads: Option<u64>,
    /// The most pinned memory for each GPU of a process, in MiB [default: 256]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(32..=65536), hide_short_help = true)]
    pub(crate) ring_mib: Option<u64>,
    /// Leave copies below this size to the driver, in KiB [default: 2048, or what --machine says]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u64).range(1..=1048576), hide_short_help = true)]
    pub(crate) min_kib: Option<u64>,
    /// Stage copies from the size on at which that gains on this machine, by the profile of `busbound bench`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) machine: Option<String>,
}
