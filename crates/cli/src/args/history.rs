//! `busbound history`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound summarize traces/ -o history/llama7b/    after each recording
  busbound history history/llama7b/                 what changed, and when
  busbound history history/*/ -o week.md            several jobs, Markdown
  busbound history history/llama7b/ --format json
  busbound history history/*/ --parquet tables/     for SQL, see docs/history.md";

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Directories of rank summaries, one per job
    #[arg(required = true, value_name = "DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Also write the recordings as Parquet files, in folders by job, rank and day
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
