//! Rank summaries in files: tasks on many machines write them to one folder at the same time, and one task merges them.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use busbound_fleet::{Fleet, Job, RankSummary, Unread};
use busbound_report::{Format, Report, Style};
use tempfile::NamedTempFile;

use crate::error::Error;
use crate::inputs::{folders_matching, summaries_in};

/// Ranks read from files.
#[derive(Debug)]
pub struct Merged {
    pub fleet: Fleet,
    pub unread: Vec<Unread>,
}

/// Reads the summaries that match paths, folders and patterns, in any order.
///
/// # Errors
/// If a path matches nothing.
pub fn merge_files(paths: &[PathBuf]) -> Result<Merged, Error> {
    let files = summaries_in(paths)?.into_iter().map(|path| {
        let text = fs::read_to_string(&path).map_err(Error::io(&path));
        (path, text)
    });
    Ok(merged(files))
}

fn merged(files: impl Iterator<Item = (PathBuf, Result<String, Error>)>) -> Merged {
    let mut saved = Vec::new();
    let mut unread = Vec::new();
    for (path, text) in files {
        let parsed = text.and_then(|text| Fleet::parse(&text).map_err(|error| Error::content(&path, error)));
        match parsed {
            Ok(more) => saved.push(more),
            Err(why) => unread.push(Unread::new(path.display().to_string(), why.to_string())),
        }
    }
    Merged { fleet: saved.into_iter().collect(), unread }
}

/// The recordings of jobs, for [`History::of`](busbound_fleet::History::of): each path holds the summaries of one, in files,
/// folders or patterns. A pattern that matches only folders is one job per folder.
///
/// # Errors
/// If a path matches nothing.
pub fn jobs_in(paths: &[PathBuf]) -> Result<(Vec<Job>, Vec<Unread>), Error> {
    let (mut jobs, mut unread) = (Vec::new(), Vec::new());
    for path in paths {
        for path in folders_matching(path)?.unwrap_or_else(|| vec![path.clone()]) {
            let merged = merge_files(std::slice::from_ref(&path))?;
            jobs.push(job(&path.display().to_string(), &merged.fleet));
            unread.extend(merged.unread);
        }
    }
    Ok((jobs, unread))
}

/// The same for one job whose summaries were read elsewhere, such as from an object store: their names and texts.
pub fn job_of(name: &str, texts: Vec<(String, String)>) -> (Job, Vec<Unread>) {
    let merged = merged(texts.into_iter().map(|(name, text)| (name.into(), Ok(text))));
    (job(name, &merged.fleet), merged.unread)
}

fn job(name: &str, fleet: &Fleet) -> Job {
    Job { name: name.trim_end_matches('/').to_owned(), recordings: fleet.ranks().to_vec() }
}

/// Writes a summary to a folder atomically. Replaces an earlier summary of the same trace, but no other file.
///
/// # Errors
/// If the folder cannot be written to.
pub fn keep_summary(summary: &RankSummary, folder: &Path) -> Result<(), Error> {
    let json = summary
        .render(Format::Json, &Style::default())
        .map_err(|error| Error::Render { path: folder.to_owned(), error })?;
    keep(&json, summary, folder).map_err(Error::io(folder))
}

fn keep(json: &str, summary: &RankSummary, folder: &Path) -> io::Result<()> {
    let mut file = temporary_file(folder)?;
    file.write_all(json.as_bytes())?;
    let stem = stem(summary);
    let numbered = (2..).map(|n: u64| format!("{stem}-{n}.rank.json"));
    for name in std::iter::once(format!("{stem}.rank.json")).chain(numbered) {
        let path = folder.join(name);
        // Checking first and writing later would race with other tasks.
        match file.persist_noclobber(&path) {
            Ok(_) => break,
            Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => file = taken.file,
            Err(other) => return Err(other.error),
        }
        if is_of_the_same_trace(&path, summary) {
            file.persist(&path)?;
            break;
        }
    }
    Ok(())
}

/// Uses the default permissions of new files: temporary files are otherwise readable only by their owner.
fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// `rank-5`, or `rank-5.node17` if the host is known; named after the trace if no rank is known.
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

/// The stem for files derived from a trace: `run` for `traces/run.json.gz`.
pub fn stem_of(path: &Path) -> String {
    let name = path.file_name().filter(|name| *name != "-").unwrap_or("run".as_ref()).to_string_lossy();
    let stem = busbound_trace::suffixes().find_map(|suffix| name.split_once(suffix));
    stem.map_or(&*name, |(stem, _)| stem).to_owned()
}

fn is_of_the_same_trace(path: &Path, summary: &RankSummary) -> bool {
    let saved = fs::read_to_string(path).ok().and_then(|text| Fleet::parse(&text).ok());
    saved.is_some_and(|saved| {
        saved.ranks().iter().any(|other| (&other.path, &other.host) == (&summary.path, &summary.host))
    })
}
