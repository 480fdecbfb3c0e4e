//! `busbound run`: a program with staged copies.

use std::os::unix::process::CommandExt;
use std::path::Path;

use busbound_apply::settings::{self, Mode};

use crate::args::run::RunArgs;
use crate::failure::Failure;
use crate::launch::stage::staged;

/// Becomes the program, so that signals and the exit code are its own; returns only if it could not be started.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    // The one switch that turns it off is the library's own.
    let mode = std::env::var(settings::MODE).map_or(Mode::Stage, |name| Mode::named(&name));
    let mut command = staged(&args.command, mode, &args.stage)?;
    let error = command.exec();
    Err(Failure::unreadable_at(Path::new(command.get_program()))(error))
}
