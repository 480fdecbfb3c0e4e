//! `busbound survey`.

use busbound_diagnosis::survey;
use busbound_report::{markdown_as_html, surveys_as_json, surveys_as_markdown, surveys_as_terminal};

use crate::args::{Format, SurveyArgs};
use crate::failure::Failure;
use crate::output::write_answer;
use crate::reading::each_trace;
use crate::request::resolve_output;

pub(crate) fn run(args: &SurveyArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let mut surveys = Vec::new();
    each_trace(&args.paths, &args.reading, &output, |trace, source| surveys.push(survey(trace, source)))?;
    let text = match output.format {
        Format::Terminal => surveys_as_terminal(&surveys, output.width),
        Format::Markdown => surveys_as_markdown(&surveys),
        Format::Html => markdown_as_html("What is in the trace", &surveys_as_markdown(&surveys)),
        Format::Json => surveys_as_json(&surveys).map_err(|e| Failure::Output(e.into()))?,
    };
    write_answer(&text, &output)
}
