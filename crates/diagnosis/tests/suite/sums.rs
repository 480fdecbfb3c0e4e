//! Do all answers about one trace have the same sums? For every trace in the fixtures.

use std::path::Path;

use crate::every::every_trace;
use busbound_diagnosis::{Diagnosis, Items, Options, Source, diagnose_and_itemize, what_if};
use busbound_machine::Machine;
use busbound_trace::Trace;

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

/// Where the answers about a trace disagree.
fn disagreements(path: &Path, trace: &Trace) -> Vec<String> {
    let name = path.display().to_string();
    let (machine, options) = (Machine::default(), Options::default());
    let (run, items) = diagnose_and_itemize(trace, &Source::named(&name), &machine, &options);
    let mut wrong = of_idle(&run, &items);
    wrong.extend(of_steps(&run, &items));
    if let Ok(predicted) = what_if(trace, &name, &machine, &options, &[]) {
        let (ours, theirs) = (run.window.baseline_ms, predicted.baseline_ms);
        if !is_near(ours, theirs) {
            wrong.push(format!("a step is {ours} ms in diagnose, {theirs} ms in whatif"));
        }
        if predicted.unit != run.unit() {
            wrong.push(format!("per {} in diagnose, per {} in whatif", run.unit(), predicted.unit));
        }
        // The prize is what the same replay says.
        for scenario in &predicted.scenarios {
            if scenario.step_ms + scenario.gain_ms < 0.999 * theirs {
                wrong.push(format!("{:?} gains more than the step", scenario.apply));
            }
        }
    }
    wrong.into_iter().map(|what| format!("{name}: {what}")).collect()
}

/// Gaps in the table, idle time by cause, and the idle time of the step.
fn of_idle(run: &Diagnosis, items: &Items) -> Vec<String> {
    let mut wrong = Vec::new();
    let by_cause: f64 = run.idle.iter().map(|idle| idle.ms).sum();
    if !is_near(by_cause, run.time.idle_ms) {
        wrong.push(format!("idle causes sum to {by_cause} of {} ms", run.time.idle_ms));
    }
    for idle in &run.idle {
        let gaps = items.gaps.iter().filter(|gap| gap.analyzed && gap.cause == idle.cause);
        let ms: f64 = gaps.map(|gap| gap.duration.as_millis()).sum();
        if !is_near(ms, idle.ms) {
            wrong.push(format!("{:?}: gaps of {ms} ms, idle {} ms", idle.cause, idle.ms));
        }
    }
    let parts = run.time.idle_ms + run.time.busy_ms;
    if !is_near(parts, run.time.analyzed_ms) {
        wrong.push(format!("busy and idle are {parts} of {} ms", run.time.analyzed_ms));
    }
    wrong
}

/// Steps in the table, and those of the JSON.
fn of_steps(run: &Diagnosis, items: &Items) -> Vec<String> {
    let Some(steps) = &run.window.steps else { return Vec::new() };
    let mut wrong = Vec::new();
    let analyzed: Vec<f64> =
        items.steps.iter().filter(|step| step.analyzed).map(|step| step.duration.as_millis()).collect();
    if analyzed.len() != steps.count {
        wrong.push(format!("{} steps in the table, {} in JSON", analyzed.len(), steps.count));
    }
    // The first step of the JSON begins with its own work.
    let pairs = analyzed.iter().zip(&steps.each_ms).enumerate().skip(1);
    for (i, (table, json)) in pairs.filter(|(_, (table, json))| !is_near(**table, **json)) {
        wrong.push(format!("step {i} takes {table} ms in the table, {json} ms in JSON"));
    }
    wrong
}

#[test]
fn gaps_steps_and_predictions_agree_with_the_diagnosis() {
    let traces = every_trace();
    assert!(traces.len() > 200, "only {} traces", traces.len());
    let wrong: Vec<String> = traces.iter().flat_map(|(path, trace)| disagreements(path, trace)).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
