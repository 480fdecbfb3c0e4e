//! `busbound explain`.

use clap::Args;

use super::names::any_topic;
use super::shared::OutputArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound explain                      list everything that can be explained
  busbound explain pageable_copies      a finding, with its fix
  busbound explain transfer             a verdict
  busbound explain exposed_bus_copy_ms  a figure
  busbound explain bounds               what `if one alone took no time` means";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A finding, verdict, idle cause, figure, limitation, what-if change or term, as answers name it [default: list all]
    #[arg(value_name = "ID", num_args = 0.., value_parser = any_topic())]
    pub(crate) id: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
