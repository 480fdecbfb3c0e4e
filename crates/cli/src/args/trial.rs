//! `busbound try`.

use busbound::machine::live::BeatKeys;
use clap::Args;

use super::run::StageArgs;
use super::shared::OutputArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound try -- python generate.py
  busbound try --runs 3 -- python train.py --max-steps 50
  busbound try --record gen -- python generate.py      record both, for compare
  busbound run -- python generate.py                   use it without comparing";

#[derive(Debug, Args)]
pub(crate) struct TryArgs {
    /// Run the program this many times each way, alternating
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) runs: u16,
    /// Also record one run each way, as NAME-before.bbt and NAME-after.bbt, and compare their steps
    #[arg(long, value_name = "NAME")]
    pub(crate) record: Option<String>,
    /// Compare the step times (dt_step_s) that the program writes to these JSON-lines files; a pattern, repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) heartbeat: Vec<String>,
    /// Rename keys of heartbeats, e.g. dt_step_s=perf.step_s
    #[arg(long, value_name = "KEY=NAME,…", default_value = "batch=batch", hide_default_value = true)]
    #[arg(hide_short_help = true)]
    pub(crate) keys: BeatKeys,
    #[command(flatten)]
    pub(crate) stage: StageArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}
