//! The command `busbound`: parse the arguments (`args`), add the project's settings (`config`), resolve what to do
//! (`request`), do it (`commands`, with reading and writing in `io`), and return an exit code. No analysis here: that is the
//! library's.
//!
//! A library, because the command ships in two ways: as a program, and inside the Python wheel.

mod args;
mod commands;
mod config;
mod failure;
mod io;
#[cfg(target_os = "linux")]
mod launch;
mod request;
mod warnings;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use args::mistakes::{like_our_errors, with_tips};
use args::{Cli, shorthand};

/// Runs the command and returns its exit code; the first of `args` is the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let code = match Cli::try_parse_from(shorthand::expand(args.into_iter().collect())) {
        Ok(cli) => commands::run(cli.command),
        Err(error) => {
            let error = with_tips(error);
            // Help and version come this way too. If they cannot be printed, there is nothing left to do.
            let _ = if error.use_stderr() {
                write!(anstream::stderr(), "{}", like_our_errors(&error))
            } else {
                error.print()
            };
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    };
    // A Rust program flushes when it exits; inside Python nobody does.
    let _ = std::io::stdout().flush();
    code
}
