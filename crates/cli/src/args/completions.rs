//! `busbound completions`.

use clap::Args;
use clap_complete::Shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound completions bash \\
      > ~/.local/share/bash-completion/completions/busbound
  busbound completions zsh > ~/.zfunc/_busbound
  busbound completions fish > ~/.config/fish/completions/busbound.fish
  busbound completions powershell >> $PROFILE";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to write for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
