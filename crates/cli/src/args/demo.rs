//! `busbound demo`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputArgs;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "busbound-demo.html")]
    pub(crate) page: PathBuf,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
