//! `busbound merge`.

use busbound::{Merged, merge_files};

use crate::args::merge::MergeArgs;
use crate::failure::Failure;
use crate::io::output::{show, warn};
use crate::request::{resolve_output, resolve_topology};

pub(crate) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let wiring = resolve_topology(&args.topology)?;
    let Merged { fleet, mut unread } = merge_files(&args.paths)?;
    if fleet.is_empty()
        && let Some(last) = unread.pop()
    {
        return Err(Failure::unreadable(last.why));
    }
    for file in &unread {
        warn(&format!("passed over: {}", file.why));
    }
    show(&fleet.with_unread(unread).answer(wiring.as_deref()), &output, "fleet.html")
}
