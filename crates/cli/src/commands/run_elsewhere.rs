//! `busbound run` on other systems: programs can only be changed this way on Linux.

use crate::args::run::RunArgs;
use crate::failure::Failure;

pub(crate) fn run(_: &RunArgs) -> Result<u8, Failure> {
    Err(Failure::no_gpu("staged copies need Linux: run this command there"))
}
