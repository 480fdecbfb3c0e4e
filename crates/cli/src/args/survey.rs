//! `busbound survey`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{OutputArgs, ReadingArgs};

pub(super) const EXAMPLES: &str = "\
Reads .json and .json.gz of torch.profiler, .sqlite of nsys export and .bbt of busbound record,
whole, cut off or damaged: every readable event counts, and what was lost is said with its place.
A .nsys-rep is exported first, where nsys is installed.

Examples:
  busbound survey run.json.gz
  busbound survey traces/                     every rank file in a directory
  busbound survey run.sqlite                  what nsys export --type sqlite wrote
  zcat huge.json.gz | busbound survey -       from standard input
  busbound survey run.json --format json      for programs";

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
