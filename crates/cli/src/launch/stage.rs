//! A program with staged copies.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use busbound::whatif::replay::staged_from;
use busbound_apply::settings::{self, Mode};

use super::library::APPLY;
use super::preload::for_glibc;
use super::program::closed;
use crate::args::run::StageArgs;
use crate::failure::Failure;
use crate::request::machine_named;

/// What the loader loads first.
const PRELOAD: &str = "LD_PRELOAD";

/// The program, with the library loaded into it and its processes.
pub(crate) fn staged(command: &[OsString], mode: Mode, args: &StageArgs) -> Result<Command, Failure> {
    let [program, rest @ ..] = command else {
        return Err(Failure::usage("no program to run: give it after --"));
    };
    let library = APPLY.unpacked()?;
    let mut command = Command::new(program);
    command.args(rest).env(settings::MODE, mode.name());
    if closed(program).is_none_or(|closed| closed.passes_on()) {
        let mut library = for_glibc(&library);
        if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
            library.push(":");
            library.push(others);
        }
        command.env(PRELOAD, library);
    }
    let numbers = [
        (settings::THREADS, args.threads),
        (settings::RING_MIB, args.ring_mib),
        (settings::SMALLEST_KIB, smallest_kib(args)?),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            command.env(name, number.to_string());
        }
    }
    Ok(command)
}

/// From which size on copies are staged; `None` if the library's own threshold counts.
fn smallest_kib(args: &StageArgs) -> Result<Option<u64>, Failure> {
    let (None, Some(name)) = (args.min_kib, &args.machine) else { return Ok(args.min_kib) };
    let gains_from = staged_from(&machine_named(name)?.link_of(None));
    let is_unknown =
        || Failure::usage(format!("--machine {name} is not measured: give a profile of `busbound bench`"));
    Ok(Some(gains_from.ok_or_else(is_unknown)? >> 10))
}

/// A sentence if this program runs as without the library.
pub(crate) fn not_staged(program: &OsStr) -> Option<String> {
    let closed = closed(program)?;
    let others = if closed.passes_on() { " Programs that it starts have theirs staged." } else { "" };
    Some(format!("{} {closed}: its copies stay as they are.{others}", Path::new(program).display()))
}

/// Where the processes of a run leave their counters.
pub(crate) fn counting(command: &mut Command, folder: &Path) {
    command.env(settings::TALLY, folder.join("tally"));
}
