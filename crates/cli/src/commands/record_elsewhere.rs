//! `busbound record` on other systems: CUPTI can only be injected on Linux.

use crate::args::record::RecordArgs;
use crate::failure::Failure;

pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let file = args.output.as_deref().map_or_else(|| "run.bbt".into(), |path| path.to_string_lossy());
    Err(Failure::no_gpu(format!(
        "recording needs Linux: run this command there, and diagnose its {file} here"
    )))
}
