//! The program `busbound`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(busbound_cli::run(std::env::args_os()))
}
