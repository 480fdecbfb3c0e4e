//! `busbound record` where there is nothing to inject into: CUPTI's injection is Linux's.

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::output::complain;

pub(crate) fn run(args: &RecordArgs) -> u8 {
    let file = args.output.display();
    let why = format!("recording needs Linux: run this command there, and read its {file} here");
    let failure = Failure::NoGpu(anyhow::anyhow!(why));
    if let Some(message) = failure.message() {
        complain(&message);
    }
    failure.exit_code()
}
