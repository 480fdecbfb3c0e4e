//! `busbound`: arguments in, exit code out. No analysis here.

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

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
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
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::complain(&message);
            }
            failure.exit_code()
        }
    }
}
