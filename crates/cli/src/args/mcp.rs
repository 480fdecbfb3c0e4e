//! `busbound mcp`.

use std::path::PathBuf;

use clap::Args;

use super::values::parse_size;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound mcp                                  for an agent, over stdin/stdout
  busbound mcp --root traces --root ~/profiles  only these directories
  claude mcp add busbound -- busbound mcp       add it to Claude Code";

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Read only below this directory; give it once for each [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Cut each answer to this size; the answer says how much was left off
    #[arg(long, value_name = "SIZE", default_value = "16kB", value_parser = parse_size)]
    pub(crate) max_answer: u64,
}
