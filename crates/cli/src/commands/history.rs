//! `busbound history`.

use std::path::{Path, PathBuf};

use busbound::diagnosis::quantity::plural;
use busbound::fleet::History;
use busbound::tables::write_history;
use busbound::{find_recordings, jobs_in};

use crate::args::history::HistoryArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, not_a};
use crate::io::output::{show, warn};
use crate::request::resolve_output;

pub(crate) fn run(args: &HistoryArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let is_address = |path: &&PathBuf| path.to_string_lossy().contains("://");
    if let Some(address) = args.paths.iter().chain(&args.parquet).find(is_address) {
        let why = "is not a directory: for object stores, use busbound.history of the Python package";
        return Err(Failure::usage(format!("{} {why}", address.display())));
    }
    let (jobs, unread) = jobs_in(&args.paths)?;
    if let Some(folder) = &args.parquet {
        let rows = write_history(folder, &jobs).map_err(Failure::output)?;
        if !args.output.quiet {
            let rows = plural(rows as u64, "recording", "recordings");
            warn(&format!("wrote {rows} to {}", folder.display()));
        }
    }
    let mut history = History::of(jobs, unread);
    find_recordings(&mut history);
    for file in &mut history.unread {
        let explained = not_a(FileKind::RankSummary, Path::new(&file.path));
        file.why = explained.unwrap_or_else(|| std::mem::take(&mut file.why));
    }
    if history.jobs.is_empty()
        && let Some(last) = history.unread.pop()
    {
        return Err(Failure::unreadable(last.why));
    }
    show(&history, &output, "history.html")
}
