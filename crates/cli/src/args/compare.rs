//! `busbound compare`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{CompileLogArgs, OutputArgs, RunArgs};

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound compare before.json.gz after.json.gz
  busbound compare before.json.gz after.json.gz --open
  busbound compare b2.json b4.json b8.json --label batch=2,4,8
  busbound compare a?.json b?.json --label batch=2,4,2,4 --label run=a,a,b,b";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Trace files, one per run, in order
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Say what the runs differ in, one number per run: batch=2,4,8; more labels, also words, make several series
    #[arg(long, value_name = "KEY=N,N,…", value_parser = parse_labels, help_heading = "Analysis")]
    pub(crate) label: Vec<(String, Vec<String>)>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) compile: CompileLogArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `batch=2,4,8`.
fn parse_labels(text: &str) -> Result<(String, Vec<String>), String> {
    let wrong = || format!("{NUMBERS}, or a key and one word per run, e.g. memory=pinned,pageable");
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok((key.to_owned(), values))
}

/// What a label of a sweep has.
pub(crate) const NUMBERS: &str = "give a key and one number above zero per run, e.g. batch=2,4,8";
