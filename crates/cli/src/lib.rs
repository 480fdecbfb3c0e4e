//! `busbound`: arguments in, exit code out. No analysis here.
//!
//! A library, because the command comes two ways: as a program of its own, and inside the Python wheel.

mod admission;
mod args;
mod args_fleet;
mod args_plan;
mod args_top;
mod bench;
mod compare;
mod completions;
mod diagnose;
mod export;
mod failure;
mod gate;
mod interrupt;
mod machine;
mod man;
mod merge;
mod nsys;
mod output;
mod parallel;
mod plan;
mod progress;
mod reading;
#[cfg_attr(not(target_os = "linux"), path = "record_elsewhere.rs")]
mod record;
mod request;
mod summarize;
mod summary_file;
mod survey;
mod top;
mod topo;
mod whatif;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;

pub use admission::memory_for;
pub use failure::Failure;
pub use machine::resolve_machine;
pub use merge::read_topology;
pub use request::traces_in;

use args::{Cli, Command};

/// Runs the command; `args` begin with its name. What comes back is the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let code = match Cli::try_parse_from(args) {
        Ok(cli) => answer(&cli.command),
        Err(error) => {
            // Help and version are asked for this way too. Nothing is left to do where they cannot be printed.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    };
    // A program of Rust's own would do so by itself; inside Python nobody does.
    let _ = io::stdout().flush();
    code
}

fn answer(command: &Command) -> u8 {
    let result = match command {
        Command::Demo(args) => diagnose::demo(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Summarize(args) => summarize::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Gate(args) => gate::run(args),
        Command::WhatIf(args) => whatif::run(args),
        Command::Plan(command) => plan::run(command),
        Command::Topo(args) => topo::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Record(args) => return record::run(args),
        Command::Top(args) => top::run(args),
        Command::Export(args) => export::run(args),
        Command::Survey(args) => survey::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    };
    match result {
        Ok(()) => 0,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::complain(&message);
            }
            failure.exit_code()
        }
    }
}
