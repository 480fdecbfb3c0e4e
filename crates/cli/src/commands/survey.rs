//! `busbound survey`.

use crate::args::survey::SurveyArgs;
use crate::failure::Failure;
use crate::io::output::show;
use crate::io::reading::each_run;
use crate::request::resolve_output;

pub(crate) fn run(args: &SurveyArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let mut surveys = Vec::new();
    each_run(&args.paths, &args.reading, &output, |run| surveys.push(run.survey()))?;
    show(&surveys.as_slice(), &output, "survey.html")
}
