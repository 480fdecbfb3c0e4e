//! `busbound run`: a program with staged copies.

use busbound_apply::settings::{self, Mode};

use crate::args::run::RunArgs;
use crate::failure::Failure;
use crate::launch::child::{code_of, watch};
use crate::launch::stage::staged;

/// Returns the program's exit code, unless it could not be started.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    // The one switch that turns it off is the library's own.
    let mode = std::env::var(settings::MODE).map_or(Mode::Stage, |name| Mode::named(&name));
    Ok(code_of(watch(staged(&args.command, mode, &args.stage)?)?))
}
