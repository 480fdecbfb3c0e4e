//! What is to be done? Flags resolved against the machine and the terminal, before any work.

use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use busbound_diagnosis::Source;
use busbound_trace::{ReadOptions, by_rank, discover};

use crate::args::{Format, OutputArgs, ReadingArgs};

/// One thing to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Stdin,
}

impl Input {
    pub(crate) fn label(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Stdin => Path::new("standard input"),
        }
    }

    pub(crate) fn source(&self) -> Source {
        Source::named(self.label().display().to_string())
    }
}

/// The inputs that the given paths stand for, and whether one of them was a directory.
pub(crate) struct Inputs {
    pub(crate) list: Vec<Input>,
    /// In a directory a file that is no trace is passed over; one named outright is an error.
    pub(crate) from_directory: bool,
}

pub(crate) fn resolve_inputs(paths: &[PathBuf]) -> anyhow::Result<Inputs> {
    let mut inputs = Inputs { list: Vec::new(), from_directory: false };
    for path in paths {
        if path.as_os_str() == "-" {
            inputs.list.push(Input::Stdin);
            continue;
        }
        if let Some(found) = expand(path)? {
            for path in found {
                inputs.list.extend(discover(&path)?.into_iter().map(Input::File));
            }
            continue;
        }
        let files = discover(path).with_context(|| path.display().to_string())?;
        inputs.from_directory |= path.is_dir();
        anyhow::ensure!(
            !files.is_empty(),
            "{} holds no trace: nothing in it ends in {}",
            path.display(),
            suffixes_in_words()
        );
        inputs.list.extend(files.into_iter().map(Input::File));
    }
    Ok(inputs)
}

/// `.json, .json.gz or .bbt`, of all formats that are read.
fn suffixes_in_words() -> String {
    let mut all: Vec<&str> = busbound_trace::suffixes().collect();
    let last = all.pop().unwrap_or_default();
    format!("{} or {last}", all.join(", "))
}

/// The files that paths, directories and patterns stand for, in the order of their ranks.
///
/// # Errors
/// If one of them stands for nothing.
pub fn traces_in(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let named = |input| match input {
        Input::File(path) => Some(path),
        Input::Stdin => None,
    };
    Ok(resolve_inputs(paths)?.list.into_iter().filter_map(named).collect())
}

/// What a pattern stands for that the shell has left as it is; `None` where the path is no pattern.
pub(crate) fn expand(path: &Path) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '['])) else { return Ok(None) };
    // A file may have such a name.
    if path.exists() {
        return Ok(None);
    }
    let found = glob::glob(pattern).with_context(|| format!("{pattern} is no pattern"))?;
    let mut found: Vec<PathBuf> = found.filter_map(Result::ok).collect();
    anyhow::ensure!(!found.is_empty(), "nothing is named like {pattern}");
    by_rank(&mut found);
    Ok(Some(found))
}

pub(crate) fn resolve_reading(args: &ReadingArgs) -> ReadOptions {
    let mut options = ReadOptions::default();
    if let Some(threads) = args.threads {
        options = options.threads(usize::from(threads));
    }
    if let Some(memory) = args.memory {
        options = options.memory_bound(memory);
    }
    options
}

/// Where the answer goes and how it looks.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) file: Option<PathBuf>,
    pub(crate) width: u16,
    pub(crate) show_progress: bool,
    /// Nothing but the answer, and what went wrong.
    pub(crate) quiet: bool,
}

/// A pipe has no width; what comes out of it ends in tickets and terminals, and 80 columns fit into both.
const USUAL_WIDTH: u16 = 80;

impl Output {
    /// For commands whose answer is a file of their own.
    pub(crate) fn quiet_or_not(format: Format, quiet: bool) -> Self {
        let show_progress = !quiet && stderr().is_terminal();
        Self { format, file: None, width: USUAL_WIDTH, show_progress, quiet }
    }
}

pub(crate) fn resolve_output(args: &OutputArgs) -> Output {
    let terminal =
        (args.output.is_none() && stdout().is_terminal()).then(terminal_size::terminal_size).flatten();
    Output {
        format: if args.json { Format::Json } else { args.format },
        file: args.output.clone(),
        width: terminal.map_or(USUAL_WIDTH, |(width, _)| width.0.clamp(60, 140)),
        show_progress: !args.quiet && stderr().is_terminal(),
        quiet: args.quiet,
    }
}
