//! `busbound survey`.

use std::path::PathBuf;

use busbound::diagnosis::flight::beside_trace;

use crate::args::survey::SurveyArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, files_beside_traces, kind_beside_traces};
use crate::io::output::show;
use crate::io::reading::each_run;
use crate::request::{
    flight_recorder, read_compile_logs, read_flight_recorder, read_nccl_logs, resolve_output,
};

pub(crate) fn run(args: &SurveyArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let files = files_beside_traces(&args.paths);
    match beside_traces(&files)? {
        Some(FileKind::NcclLog) => return show(&read_nccl_logs(&files)?, &output, "nccl.html"),
        Some(FileKind::CompileLog) => return show(&read_compile_logs(&files)?, &output, "compile.html"),
        Some(_) => return show(&flight_recorder(&files)?, &output, "collectives.html"),
        None => {}
    }
    let dumps = read_flight_recorder(&args.flight)?;
    let mut surveys = Vec::new();
    each_run(&args.paths, &args.reading, &output, |run| {
        let mut survey = run.survey();
        if let Some(dumps) = &dumps {
            // The sizes that a trace lacks are a matter of its diagnosis.
            survey.flight_recorder = beside_trace(dumps, run.rank(), false);
        }
        surveys.push(survey);
    })?;
    show(&surveys.as_slice(), &output, "survey.html")
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
             --compile-log take a log beside a trace, survey and diagnose --flight-recorder dumps",
        )),
    }
}
