//! `busbound survey`.

use std::fs;
use std::path::{Path, PathBuf};

use busbound::machine::flight_recorder::FlightRecorder;
use busbound::trace::{by_rank, discover};

use crate::args::survey::SurveyArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, kind_of};
use crate::io::output::show;
use crate::io::reading::each_run;
use crate::request::{read_compile_logs, read_nccl_logs, resolve_output};

pub(crate) fn run(args: &SurveyArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let files = files_beside_traces(&args.paths);
    match beside_traces(&files)? {
        Some(FileKind::NcclLog) => return show(&read_nccl_logs(&files)?, &output, "nccl.html"),
        Some(FileKind::CompileLog) => return show(&read_compile_logs(&files)?, &output, "compile.html"),
        Some(_) => return show(&flight_recorder(&files)?, &output, "collectives.html"),
        None => {}
    }
    let mut surveys = Vec::new();
    each_run(&args.paths, &args.reading, &output, |run| surveys.push(run.survey()))?;
    show(&surveys.as_slice(), &output, "survey.html")
}

/// The paths, with folders without traces as the files in them: dumps and logs have no names that say what they are.
pub(super) fn files_beside_traces(paths: &[PathBuf]) -> Vec<PathBuf> {
    let inside = |folder: &PathBuf| {
        let is_beside = |file: &PathBuf| kind_beside_traces(file).is_some();
        let entries = fs::read_dir(folder).ok()?;
        if !discover(folder).ok()?.iter().all(is_beside) {
            return None;
        }
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_beside).collect();
        by_rank(&mut files);
        Some(files).filter(|files| !files.is_empty())
    };
    paths.iter().flat_map(|path| inside(path).unwrap_or_else(|| vec![path.clone()])).collect()
}

fn kind_beside_traces(path: &Path) -> Option<FileKind> {
    kind_of(path).filter(|kind| kind.is_beside_traces())
}

/// The kind of the files, if they are not traces but say something about a run too.
pub(super) fn beside_traces(paths: &[PathBuf]) -> Result<Option<FileKind>, Failure> {
    let mut found: Vec<Option<FileKind>> = paths.iter().map(|path| kind_beside_traces(path)).collect();
    found.dedup();
    match found.as_slice() {
        [one] => Ok(*one),
        mixed if mixed.iter().all(Option::is_none) => Ok(None),
        _ => Err(Failure::usage(
            "survey takes traces, logs of NCCL or torch.compile, or flight recorder dumps, one kind at a time; diagnose --nccl-log and \
             --compile-log take a log beside a trace",
        )),
    }
}

pub(super) fn flight_recorder(paths: &[PathBuf]) -> Result<FlightRecorder, Failure> {
    let mut dumps = Vec::new();
    for path in paths {
        let bytes = fs::read(path).map_err(Failure::unreadable_at(path))?;
        dumps.push((path.to_string_lossy().into_owned(), bytes));
    }
    FlightRecorder::parse(&dumps).map_err(|error| Failure::Unreadable(format!("the file {error}")))
}
