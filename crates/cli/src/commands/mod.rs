//! What does each command do? One file per command: arguments in, answer out.

mod bench;
mod compare;
mod completions;
mod demo;
mod diagnose;
mod explain;
mod export;
mod gate;
mod history;
mod man;
mod mcp;
mod merge;
mod plan;
#[cfg_attr(not(target_os = "linux"), path = "record_elsewhere.rs")]
mod record;
#[cfg(target_os = "linux")]
mod record_cycles;
#[cfg_attr(not(target_os = "linux"), path = "run_elsewhere.rs")]
mod run;
mod summarize;
mod survey;
mod top;
mod topo;
#[cfg_attr(not(target_os = "linux"), path = "trial_elsewhere.rs")]
mod trial;
mod watch;
mod whatif;

use crate::args::Command;
use crate::config;
use crate::failure::Failure;
use crate::io::output::warn;

/// Runs a command and returns its exit code.
pub(crate) fn run(mut command: Command) -> u8 {
    if let Err(failure) = config::apply(&mut command) {
        return end(Err(failure));
    }
    let result = match &command {
        Command::Demo(args) => demo::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Summarize(args) => summarize::run(args),
        Command::Merge(args) => merge::run(args),
        Command::History(args) => history::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Gate(args) => gate::run(args),
        Command::WhatIf(args) => whatif::run(args),
        Command::Plan(command) => plan::run(command),
        Command::Topo(args) => topo::run(args),
        Command::Bench(args) => bench::run(args),
        // The exit code is the program's own.
        Command::Record(args) => return end(record::run(args)),
        Command::Try(args) => return end(trial::run(args)),
        Command::Run(args) => return end(run::run(args)),
        Command::Top(args) => top::run(args),
        Command::Export(args) => export::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Survey(args) => survey::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Mcp(args) => mcp::run(args),
        Command::Man(args) => man::run(args),
    };
    end(result.map(|()| 0))
}

/// Prints what is left to say, and returns the exit code.
fn end(result: Result<u8, Failure>) -> u8 {
    result.unwrap_or_else(|failure| {
        if let Some(message) = failure.message() {
            warn(&message);
        }
        if failure.ends_at_once() {
            signal_hook::low_level::exit(failure.exit_code().into());
        }
        failure.exit_code()
    })
}
