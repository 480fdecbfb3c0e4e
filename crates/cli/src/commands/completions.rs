//! `busbound completions`: the script with which a shell completes the command line.

use clap::CommandFactory;

use crate::args::Cli;
use crate::args::completions::CompletionsArgs;
use crate::failure::Failure;
use crate::io::output::write_answer;

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "busbound", &mut script);
    write_answer(&String::from_utf8_lossy(&script))
}
