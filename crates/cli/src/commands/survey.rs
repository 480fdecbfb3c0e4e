//! `busbound survey`.

use std::fs;
use std::path::PathBuf;

use busbound::machine::flight_recorder::FlightRecorder;

use crate::args::survey::SurveyArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, kind_of};
use crate::io::output::show;
use crate::io::reading::each_run;
use crate::request::{read_compile_logs, read_nccl_logs, resolve_output};

pub(crate) fn run(args: &SurveyArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    match beside_traces(&args.paths)? {
        Some(FileKind::NcclLog) => return show(&read_nccl_logs(&args.paths)?, &output, "nccl.html"),
        Some(FileKind::CompileLog) => {
            return show(&read_compile_logs(&args.paths)?, &output, "compile.html");
        }
        Some(_) => return show(&flight_recorder(&args.paths)?, &output, "collectives.html"),
        None => {}
    }
    let mut surveys = Vec::new();
    each_run(&args.paths, &args.reading, &output, |run| surveys.push(run.survey()))?;
    show(&surveys.as_slice(), &output, "survey.html")
}

/// The kind of the files, if they are not traces but say something about a run too.
pub(super) fn beside_traces(paths: &[PathBuf]) -> Result<Option<FileKind>, Failure> {
    let kinds = [FileKind::NcclLog, FileKind::CompileLog, FileKind::FlightRecorder];
    let of = |path: &PathBuf| kind_of(path).filter(|kind| kinds.contains(kind));
    let mut found: Vec<Option<FileKind>> = paths.iter().map(of).collect();
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
