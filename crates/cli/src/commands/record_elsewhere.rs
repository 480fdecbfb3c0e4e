//! `busbound record` where there is nothing to inject into: CUPTI's injection is Linux's.

use crate::args::record::RecordArgs;
use crate::failure::Failure;

pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let file = args.output.display();
    Err(Failure::no_gpu(format!("recording needs Linux: run this command there, and read its {file} here")))
}
