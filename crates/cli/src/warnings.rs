//! Which flags do not fit the trace? Said on standard error before the answer, so that nobody reads figures for something
//! else than was asked for.

use std::path::Path;

use busbound::Diagnosis;
use busbound::diagnosis::quantity::{milliseconds, plural};
use busbound::diagnosis::{FigureId, LimitationId};

use crate::args::shared::{AnalysisArgs, MachineArgs};
use crate::io::output::warn;
use crate::request::Output;

/// Warns about each run, unless --quiet.
pub(crate) fn warn_of_misfits<'d>(
    runs: impl IntoIterator<Item = &'d Diagnosis>,
    machine: &MachineArgs,
    analysis: &AnalysisArgs,
    output: &Output,
) {
    if output.quiet {
        return;
    }
    let mut said: Vec<String> = Vec::new();
    for run in runs {
        for text in misfits(run, machine, analysis) {
            // Ranks of one run misfit alike; the first one is enough.
            if !said.contains(&text) {
                warn(&format!("{}: {text}", run.source.path));
                said.push(text);
            }
        }
    }
}

/// Whether anything is set that could misfit.
pub(crate) fn has_settings(machine: &MachineArgs, analysis: &AnalysisArgs) -> bool {
    let AnalysisArgs { steps, warmup, wall, by, .. } = analysis;
    machine.machine.is_some() || steps.is_some() || warmup.is_some() || !wall.is_empty() || by.is_some()
}

fn misfits(run: &Diagnosis, machine: &MachineArgs, analysis: &AnalysisArgs) -> Vec<String> {
    let has = |id: LimitationId| run.limitations.iter().any(|limitation| limitation.id == id);
    let mut all = Vec::new();
    if let Some(steps) = &analysis.steps
        && (has(LimitationId::Steps) || has(LimitationId::StepsByPeriod))
    {
        let given = as_given("steps", &format!("'{steps}'"), analysis.steps_file.as_deref());
        all.push(format!(
            "no annotation matches {given}, so figures are for the whole trace; busbound survey lists the annotations"
        ));
    }
    if let (Some(warmup), Some(steps)) = (analysis.warmup, &run.window.steps)
        && steps.warmup_dropped != warmup
    {
        let given = as_given("warmup", &warmup.to_string(), analysis.warmup_file.as_deref());
        let count = steps.count + steps.warmup_dropped + steps.outliers_dropped;
        let (all_steps, dropped) = (plural(count as u64, "step", "steps"), steps.warmup_dropped);
        all.push(format!("{given} is too large for {all_steps}: only the first {dropped} are left out"));
    }
    all.extend(wall_misfit(run, analysis));
    if let Some(by) = &analysis.by
        && has(LimitationId::Blocks)
    {
        all.push(format!("no annotation matches --by '{by}', so no time is attributed to blocks"));
    }
    if let Some(name) = &machine.machine
        && has(LimitationId::LinkWrong)
    {
        let given = as_given("machine", name, machine.file.as_deref());
        all.push(format!("{given} does not fit: copies in this trace are faster than that link"));
    }
    all
}

/// A profiler never makes a step shorter, and where its cost is unknown, nothing can be computed from the time.
fn wall_misfit(run: &Diagnosis, analysis: &AnalysisArgs) -> Option<String> {
    let [wall] = analysis.wall.as_slice() else { return None };
    let recorded = FigureId::SpanMs.of(run)?;
    let given = as_given("wall", &milliseconds(*wall), analysis.wall_file.as_deref());
    if *wall > 1.03 * recorded {
        let recorded = milliseconds(recorded);
        return Some(format!(
            "{given} is longer than the recorded {} ({recorded}): is it the time of one {}?",
            run.unit(),
            run.unit()
        ));
    }
    let is_used = run.window.unprofiled.is_some() || *wall > 0.97 * recorded;
    (!is_used).then(|| format!("{given} is not used: what this profiler costs per event is unknown"))
}

/// `--steps 'x'`, or the key in the file that it comes from.
fn as_given(name: &str, value: &str, file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("{name} = {value} in {}", file.display()),
        None => format!("--{name} {value}"),
    }
}
