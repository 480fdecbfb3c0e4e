//! Where does a summary go? Into a folder that tasks of many machines write into at the same time.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use busbound_fleet::{Fleet, RankSummary};
use busbound_report::rank_as_json;
use tempfile::NamedTempFile;

use crate::diagnose::stem_of;

/// Writes it whole or not at all, over an earlier summary of the same trace and over nothing else.
pub(crate) fn keep(summary: &RankSummary, folder: &Path) -> anyhow::Result<()> {
    let mut file = in_the_making(folder)?;
    file.write_all(rank_as_json(summary)?.as_bytes())?;
    let stem = stem(summary);
    let numbered = (2..).map(|n: u64| format!("{stem}-{n}.rank.json"));
    for name in std::iter::once(format!("{stem}.rank.json")).chain(numbered) {
        let path = folder.join(name);
        // Looking first and writing then would let another task come between.
        match file.persist_noclobber(&path) {
            Ok(_) => break,
            Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => file = taken.file,
            Err(other) => return Err(other.error.into()),
        }
        if is_of_the_same_trace(&path, summary) {
            file.persist(&path)?;
            break;
        }
    }
    Ok(())
}

/// Readable by those who may read what is written here, as other files are.
fn in_the_making(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// `rank-5`, on a host that is known `rank-5.node17`; where no rank is told, after the trace.
fn stem(summary: &RankSummary) -> String {
    let stem = match &summary.rank {
        Some(rank) => format!("rank-{}", rank.rank),
        None => stem_of(summary.path.as_ref()),
    };
    let plain = |char: char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '-' };
    match &summary.host {
        Some(host) => format!("{stem}.{}", host.chars().map(plain).collect::<String>()),
        None => stem,
    }
}

fn is_of_the_same_trace(path: &Path, summary: &RankSummary) -> bool {
    let saved = fs::read_to_string(path).ok().and_then(|text| Fleet::parse(&text).ok());
    saved.is_some_and(|saved| {
        saved.ranks().iter().any(|other| (&other.path, &other.host) == (&summary.path, &summary.host))
    })
}
