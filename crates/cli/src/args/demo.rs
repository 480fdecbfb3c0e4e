//! `busbound demo`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound demo
  busbound demo --open                  open the page in the browser
  busbound demo -o demo.html            write the page to a file";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Also write the page to this file; the older spelling of -o FILE.html.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) page: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
