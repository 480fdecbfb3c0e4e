//! `busbound compare`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{CompileLogArgs, OutputArgs, RunArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound compare before.json.gz after.json.gz
  busbound compare before.json.gz after.json.gz --open
  busbound compare b2.json b4.json b8.json --label batch=2,4,8";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Trace files, one per run, in order
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Say what the runs differ in, one number per run: batch=2,4,8
    #[arg(long, value_name = "KEY=N,N,…", value_parser = parse_labels, help_heading = "Analysis")]
    pub(crate) label: Option<(String, Vec<f64>)>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) compile: CompileLogArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `batch=2,4,8`.
fn parse_labels(text: &str) -> Result<(String, Vec<f64>), String> {
    let wrong = || "give a key and one number above zero per run, e.g. batch=2,4,8".to_owned();
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Option<Vec<f64>> =
        values.split(',').map(|value| value.trim().parse().ok().filter(|value: &f64| *value > 0.0)).collect();
    Ok((key.to_owned(), values.ok_or_else(wrong)?))
}
