//! `busbound man`.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound man | man -l -
  busbound man -o ~/.local/share/man/man1";

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to this directory [default: print the first page]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}
