//! `busbound survey` and, until there is a diagnosis, `busbound demo`.

use std::io::stdin;

use busbound_diagnosis::{Source, Survey, survey};
use busbound_report::{surveys_as_json, surveys_as_markdown, surveys_as_terminal};
use busbound_trace::{OpenError, ReadOptions, Trace, open_with_progress, read, read_with_progress};

use crate::args::{DemoArgs, Format, SurveyArgs};
use crate::failure::Failure;
use crate::output::{remark, write_answer};
use crate::progress::ReadingBar;
use crate::request::{Input, Output, resolve_inputs, resolve_output, resolve_reading};

/// A run of twelve groups of matrix products whose weights come from pageable memory, recorded on
/// an H200; see fixtures/README.md.
const DEMO: &[u8] = include_bytes!("../../../fixtures/off_block_pageable_c4.json.gz");

pub(crate) fn run(args: &SurveyArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let options = resolve_reading(&args.reading);
    let inputs = resolve_inputs(&args.paths).map_err(Failure::Unreadable)?;
    let mut surveys = Vec::new();
    let mut unread = Vec::new();
    for input in &inputs.list {
        match read_input(input, &options, output.show_progress) {
            Ok(trace) => surveys.push(survey(&trace, &Source::named(input.label().display().to_string()))),
            Err(error) => unread.push(error),
        }
    }
    // Several inputs: what could be read is answered, what could not is said.
    let (last, others) = match unread.split_last() {
        Some((last, others)) if surveys.is_empty() => (Some(last), others),
        _ => (None, unread.as_slice()),
    };
    for error in others {
        remark(&output, &format!("passed over: {error}"));
    }
    if let Some(error) = last {
        return Err(Failure::Unreadable(anyhow::anyhow!("{error}")));
    }
    show(&surveys, &output)?;
    if unread.is_empty() || inputs.from_directory { Ok(()) } else { Err(Failure::PartlyUnreadable) }
}

pub(crate) fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let path = "fixtures/off_block_pageable_c4.json.gz";
    let trace =
        read(DEMO, path.as_ref(), &ReadOptions::default()).map_err(|e| Failure::Unreadable(e.into()))?;
    show(&[survey(&trace, &Source::named(path))], &output)
}

fn read_input(input: &Input, options: &ReadOptions, show_progress: bool) -> Result<Trace, OpenError> {
    let mut bar = ReadingBar::new(input.label(), show_progress);
    let mut progress = |p| bar.update(p);
    match input {
        Input::File(path) => open_with_progress(path, options, &mut progress),
        Input::Stdin => read_with_progress(stdin(), input.label(), options, &mut progress),
    }
}

fn show(surveys: &[Survey], output: &Output) -> Result<(), Failure> {
    let text = match output.format {
        Format::Terminal => surveys_as_terminal(surveys, output.width),
        Format::Markdown => surveys_as_markdown(surveys),
        Format::Json => surveys_as_json(surveys).map_err(|e| Failure::Output(e.into()))?,
    };
    write_answer(&text, output)
}
