//! `busbound run`: a program with staged copies.

use std::os::unix::process::CommandExt;

use busbound_apply::settings::{self, Mode};

use crate::args::run::RunArgs;
use crate::failure::Failure;
use crate::io::output::warn;
use crate::launch::program::not_started;
use crate::launch::stage::{not_staged, staged};

/// Becomes the program, so that signals and the exit code are its own; returns only if it could not be started.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    // The one switch that turns it off is the library's own.
    let mode = std::env::var(settings::MODE).map_or(Mode::Stage, |name| Mode::named(&name));
    let mut command = staged(&args.command, mode, &args.stage)?;
    if mode == Mode::Stage
        && let Some(why) = not_staged(command.get_program())
    {
        warn(&why);
    }
    let error = command.exec();
    Err(not_started(command.get_program())(error))
}
