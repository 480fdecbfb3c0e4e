//! Which flags do not fit the trace? Said on standard error before the answer, so that nobody reads figures for something
//! else than was asked for.

use std::path::Path;

use busbound::diagnosis::Misfit;
use busbound::diagnosis::quantity::{milliseconds, plural};
use busbound::{Diagnosis, Inputs, WhatIf};

use crate::args::shared::{AnalysisArgs, RunArgs};
use crate::io::output::warn;
use crate::request::Output;

/// Each input once; warns about files that were given twice.
pub(crate) fn once(inputs: Inputs) -> Inputs {
    let inputs = inputs.once();
    for path in &inputs.repeated {
        warn(&format!("{} is given more than once, and read once", path.display()));
    }
    inputs
}

/// Warns about each run, unless --quiet.
pub(crate) fn warn_of_misfits<'d>(
    runs: impl IntoIterator<Item = &'d Diagnosis>,
    args: &RunArgs,
    output: &Output,
) {
    let misfits = runs.into_iter().map(|run| (run.source.path.as_str(), run.misfits.as_slice()));
    warn_of_all(misfits, args, output);
}

/// Warns about each prediction, unless --quiet.
pub(crate) fn warn_of_misfit_predictions(answers: &[WhatIf], args: &RunArgs, output: &Output) {
    let misfits = answers.iter().map(|answer| (answer.path.as_str(), answer.misfits.as_slice()));
    warn_of_all(misfits, args, output);
}

fn warn_of_all<'d>(runs: impl Iterator<Item = (&'d str, &'d [Misfit])>, args: &RunArgs, output: &Output) {
    if output.quiet {
        return;
    }
    let mut said: Vec<String> = Vec::new();
    for (path, misfits) in runs {
        for text in misfits.iter().filter_map(|misfit| in_words(*misfit, args)) {
            // Ranks of one run misfit alike; the first one is enough.
            if !said.contains(&text) {
                warn(&format!("{path}: {text}"));
                said.push(text);
            }
        }
    }
}

/// With the flag or key that gave the option; nothing if none did.
fn in_words(misfit: Misfit, RunArgs { machine, analysis, .. }: &RunArgs) -> Option<String> {
    Some(match misfit {
        Misfit::Steps => {
            let steps = analysis.steps.as_ref()?;
            let given = as_given("steps", &format!("'{steps}'"), analysis.steps_file.as_deref());
            format!(
                "no annotation matches {given}, so figures are for the whole trace; busbound survey lists the annotations"
            )
        }
        Misfit::Warmup { steps, dropped } => {
            let given = as_given("warmup", &analysis.warmup?.to_string(), analysis.warmup_file.as_deref());
            let all_steps = plural(steps as u64, "step", "steps");
            format!("{given} is too large for {all_steps}: only the first {dropped} are left out")
        }
        Misfit::WallTooLong { recorded_ms, unit } => {
            let given = wall_as_given(analysis)?;
            let recorded = milliseconds(recorded_ms);
            format!("{given} is longer than the recorded {unit} ({recorded}): is it the time of one {unit}?")
        }
        Misfit::WallTooShort { compute_ms, unit } => {
            let given = wall_as_given(analysis)?;
            let compute = milliseconds(compute_ms);
            format!(
                "{given} is shorter than the kernels of one {unit} ({compute}): is it the time of one {unit}?"
            )
        }
        Misfit::WallUnused => {
            let given = wall_as_given(analysis)?;
            format!("{given} is not used: what this profiler costs per event is unknown")
        }
        Misfit::Blocks => {
            let by = analysis.by.as_ref()?;
            format!("no annotation matches --by '{by}', so no time is attributed to blocks")
        }
        Misfit::Link => {
            let given = as_given("machine", machine.machine.as_ref()?, machine.file.as_deref());
            format!("{given} does not fit: copies in this trace are faster than that link")
        }
        Misfit::Gpu { recorded } => {
            let given = as_given("machine", machine.machine.as_ref()?, machine.file.as_deref());
            format!("{given} has another GPU than this trace, which is from {recorded}")
        }
    })
}

fn wall_as_given(analysis: &AnalysisArgs) -> Option<String> {
    let [wall] = analysis.wall.as_slice() else { return None };
    Some(as_given("wall", &milliseconds(*wall), analysis.wall_file.as_deref()))
}

/// `--steps 'x'`, or the key in the file that it comes from.
fn as_given(name: &str, value: &str, file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("{name} = {value} in {}", file.display()),
        None => format!("--{name} {value}"),
    }
}
