//! The command `busbound`: arguments are parsed (`args`), resolved into what is to be done (`request`), done
//! (`commands`, with what reads and writes in `io`), and end in an exit code. No analysis here: that is the library's.
//!
//! A library, because the command comes two ways: as a program of its own, and inside the Python wheel.

mod args;
mod commands;
mod failure;
mod io;
mod request;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use args::Cli;

/// Runs the command; `args` begin with its name. What comes back is the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let code = match Cli::try_parse_from(args) {
        Ok(cli) => commands::run(&cli.command),
        Err(error) => {
            // Help and version are asked for this way too. Nothing is left to do where they cannot be printed.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    };
    // A program of Rust's own would do so by itself; inside Python nobody does.
    let _ = std::io::stdout().flush();
    code
}
