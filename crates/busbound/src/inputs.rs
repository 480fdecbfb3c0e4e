//! Which files match paths, folders and patterns?

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use busbound_diagnosis::Source;
use busbound_trace::{by_rank, discover};

use crate::error::Error;

/// One thing to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Stdin,
}

impl Input {
    /// The name shown in answers and errors.
    pub fn label(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Stdin => Path::new("standard input"),
        }
    }

    /// When the file was last written, in milliseconds since 1970.
    pub fn written_ms(&self) -> Option<i64> {
        let Self::File(path) = self else { return None };
        let written = fs::metadata(path).ok()?.modified().ok()?;
        i64::try_from(written.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    }

    pub(crate) fn source(&self) -> Source {
        Source::named(self.label().display().to_string())
    }
}

/// The inputs that match the given paths, in order.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    pub list: Vec<Input>,
    /// Whether one of the paths was a folder. In a folder, a file that is not a trace is skipped; if the user names it, it
    /// is an error.
    pub from_directory: bool,
    /// Files left out by [`once`](Self::once).
    pub repeated: Vec<PathBuf>,
}

impl Inputs {
    /// Each file once. `repeated` lists those that were given more than once, by whatever path.
    pub fn once(mut self) -> Self {
        let mut seen = HashSet::new();
        self.list.retain(|input| {
            let Input::File(path) = input else { return true };
            // A file that does not exist is reported when it is read.
            let is_new = path.canonicalize().is_ok_and(|file| seen.insert(file)) || !path.exists();
            if !is_new {
                self.repeated.push(path.clone());
            }
            is_new
        });
        self
    }
}

/// The inputs for these paths: `-` is standard input, a folder stands for all traces in it, a pattern for all matching
/// files.
///
/// # Errors
/// If one of them matches nothing.
pub fn resolve_inputs(paths: &[PathBuf]) -> Result<Inputs, Error> {
    let mut inputs = Inputs::default();
    for path in paths {
        if path.as_os_str() == "-" {
            inputs.list.push(Input::Stdin);
            continue;
        }
        if let Some(found) = expand(path)? {
            for path in found {
                let files = discover(&path).map_err(Error::io(&path))?;
                inputs.list.extend(files.into_iter().map(Input::File));
            }
            continue;
        }
        let files = discover(path).map_err(Error::io(path))?;
        inputs.from_directory |= path.is_dir();
        if files.is_empty() {
            return Err(Error::NoTraces { path: path.clone() });
        }
        inputs.list.extend(files.into_iter().map(Input::File));
    }
    Ok(inputs)
}

/// The trace files that match paths, folders and patterns, in the order of their ranks.
///
/// # Errors
/// If one of them matches nothing.
///
/// ```
/// let traces = busbound::traces_in(&["demo".into()])?;
/// assert!(traces[0].ends_with("off_block_pageable_c4.json.gz"));
/// # Ok::<(), busbound::Error>(())
/// ```
pub fn traces_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let file = |input| match input {
        Input::File(path) => Some(path),
        Input::Stdin => None,
    };
    Ok(resolve_inputs(paths)?.list.into_iter().filter_map(file).collect())
}

/// The rank summaries that match paths, folders and patterns.
///
/// # Errors
/// If one of them matches nothing.
pub fn summaries_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        match expand(path)? {
            Some(found) => files.extend(found),
            None if path.is_dir() => {
                let found = summaries_below(path).map_err(Error::io(path))?;
                if found.is_empty() {
                    return Err(Error::NoSummaries { path: path.clone() });
                }
                files.extend(found);
            }
            None => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// The rank summaries below a folder, by their names.
///
/// # Errors
/// If the folder, or one below it, cannot be listed.
pub fn summaries_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Does not follow symbolic links to directories: they may form a cycle.
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else if name.ends_with(".rank.json") || name.ends_with(".fleet.json") {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// What a pattern matches, if these are folders only.
pub(crate) fn folders_matching(path: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
    Ok(expand(path)?.filter(|found| found.iter().all(|path| path.is_dir())))
}

/// Expands a pattern that the shell did not expand; `None` if the path is not a pattern.
fn expand(path: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
    let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '['])) else { return Ok(None) };
    // A file name may contain these characters.
    if path.exists() {
        return Ok(None);
    }
    let found = glob::glob(pattern)
        .map_err(|error| Error::Pattern { pattern: pattern.to_owned(), why: error.to_string() })?;
    let mut found: Vec<PathBuf> = found.filter_map(Result::ok).collect();
    if found.is_empty() {
        return Err(Error::NoMatch { pattern: pattern.to_owned() });
    }
    by_rank(&mut found);
    Ok(Some(found))
}
