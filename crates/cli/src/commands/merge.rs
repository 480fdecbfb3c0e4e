//! `busbound merge`.

use std::path::Path;

use busbound::{Merged, merge_files};

use crate::args::merge::MergeArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, not_a};
use crate::io::output::show;
use crate::request::{resolve_output, resolve_topology};

pub(crate) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let wiring = resolve_topology(&args.topology)?;
    let Merged { fleet, mut unread } = merge_files(&args.paths)?;
    for file in &mut unread {
        let explained = not_a(FileKind::RankSummary, Path::new(&file.path));
        file.why = explained.unwrap_or_else(|| std::mem::take(&mut file.why));
    }
    if fleet.is_empty()
        && let Some(last) = unread.pop()
    {
        return Err(Failure::unreadable(last.why));
    }
    // The answer lists the others.
    show(&fleet.with_unread(unread).answer(wiring.as_deref()), &output, "fleet.html")
}
