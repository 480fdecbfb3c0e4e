//! `busbound survey`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{OutputArgs, ReadingArgs};

/// The formats come from the registry of readers.
pub(super) fn help() -> String {
    let files = busbound::trace::readers().iter().map(|reader| format!("  {}\n", reader.format().files));
    format!("Reads files that are whole, cut off or damaged:\n{}{EXAMPLES}", files.collect::<String>())
}

const EXAMPLES: &str = "\
Every readable event counts, and what was lost is said with its place.

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
