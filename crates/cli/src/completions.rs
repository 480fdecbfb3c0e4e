//! `busbound completions`: what does a shell have to know to complete the command line?

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::{Cli, Format};
use crate::failure::Failure;
use crate::output::write_answer;
use crate::request::Output;

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  busbound completions bash > ~/.local/share/bash-completion/completions/busbound
  busbound completions zsh > ~/.zfunc/_busbound                 with fpath+=~/.zfunc before compinit
  busbound completions fish > ~/.config/fish/completions/busbound.fish
  busbound completions powershell >> $PROFILE";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads it
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "busbound", &mut script);
    write_answer(&String::from_utf8_lossy(&script), &Output::quiet_or_not(Format::Terminal, true))
}
