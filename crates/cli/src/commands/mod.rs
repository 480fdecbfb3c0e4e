//! What does each command do? One file for each: what is asked for goes in, the answer is shown.

mod bench;
mod compare;
mod completions;
mod demo;
mod diagnose;
mod export;
mod gate;
mod man;
mod merge;
mod plan;
#[cfg_attr(not(target_os = "linux"), path = "record_elsewhere.rs")]
mod record;
mod summarize;
mod survey;
mod top;
mod topo;
mod whatif;

use crate::args::Command;
use crate::failure::Failure;
use crate::io::output::warn;

/// Runs a command; what comes back is the exit code.
pub(crate) fn run(command: &Command) -> u8 {
    let result = match command {
        Command::Demo(args) => demo::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Summarize(args) => summarize::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Gate(args) => gate::run(args),
        Command::WhatIf(args) => whatif::run(args),
        Command::Plan(command) => plan::run(command),
        Command::Topo(args) => topo::run(args),
        Command::Bench(args) => bench::run(args),
        // The exit code is the recorded program's own.
        Command::Record(args) => return end(record::run(args)),
        Command::Top(args) => top::run(args),
        Command::Export(args) => export::run(args),
        Command::Survey(args) => survey::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    };
    end(result.map(|()| 0))
}

/// The exit code, and what is left to say.
fn end(result: Result<u8, Failure>) -> u8 {
    result.unwrap_or_else(|failure| {
        if let Some(message) = failure.message() {
            warn(&message);
        }
        failure.exit_code()
    })
}
