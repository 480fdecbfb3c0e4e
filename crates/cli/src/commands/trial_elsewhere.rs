//! `busbound try` on other systems: programs can only be changed this way on Linux.

use crate::args::trial::TryArgs;
use crate::failure::Failure;

pub(crate) fn run(_: &TryArgs) -> Result<u8, Failure> {
    Err(Failure::no_gpu("staged copies need Linux: run this command there"))
}
