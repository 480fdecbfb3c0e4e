//! `busbound survey`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{FlightRecorderArgs, OutputArgs, ReadingArgs};

/// The formats come from the registry of readers.
pub(super) fn long_help() -> String {
    let files = busbound::trace::readers().iter().map(|reader| format!("\n  {}", reader.format().files));
    format!("{EXAMPLES}\n\nFormats:{}", files.collect::<String>())
}

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound survey run.json.gz
  busbound survey traces/                       every rank file in a directory
  busbound survey run.sqlite                    written by nsys export
  zcat huge.json.gz | busbound survey -         from standard input
  busbound survey nccl.log                      printed with NCCL_DEBUG=INFO
  busbound survey /tmp/nccl_trace_rank_*        PyTorch's flight recorder
  busbound survey run.json -o run.survey.json   for programs";

#[derive(Debug, Args)]
pub(crate) struct SurveyArgs {
    /// Trace files, directories of rank files, patterns ('rank*.json'), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) flight: FlightRecorderArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
