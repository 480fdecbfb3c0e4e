//! Does a trace with missing records ever look complete? For every trace in the fixtures.

use std::path::Path;

use crate::every::every_trace;
use busbound_diagnosis::{Bound, Diagnosis, Options, Source, diagnose, survey, what_if};
use busbound_machine::Machine;
use busbound_trace::{Event, EventKind, Trace};

fn diagnosed(path: &Path, trace: &Trace) -> Diagnosis {
    let name = path.display().to_string();
    diagnose(trace, &Source::named(name), &Machine::default(), &Options::default())
}

/// Two of five, chosen by number as if at random.
fn is_dropped(event: &Event<'_>) -> bool {
    let mixed = (event.id().index() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    mixed % 5 < 2
}

#[test]
fn without_two_of_five_kernels_no_trace_is_complete_and_none_has_a_verdict() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, trace) in every_trace() {
        let is_gone = |event: &Event<'_>| event.kind() == EventKind::Kernel && is_dropped(event);
        if !trace.events().any(|event| is_gone(&event)) {
            continue;
        }
        count += 1;
        let rest = trace.part(|event| !is_gone(event));
        let name = path.display().to_string();
        let run = diagnosed(&path, &rest);
        let survey = survey(&rest, &Source::named(&name));
        let predicted = what_if(&rest, &name, &Machine::default(), &Options::default(), &[]);
        let looks_right = [
            (run.source.complete, "is complete"),
            (survey.headline.starts_with("Complete"), "has a headline that says so"),
            (run.verdict.bound != Bound::Unknown, "has a verdict"),
            (run.prize.is_some(), "promises a gain"),
            (predicted.is_ok(), "has a prediction"),
        ];
        for (_, what) in looks_right.into_iter().filter(|(is, _)| *is) {
            wrong.push(format!("{name} {what}: {}", run.verdict.statement));
        }
    }
    assert!(count > 100, "only {count} traces");
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
}

/// Complete fixtures stay complete: the same checks find nothing in them.
#[test]
fn no_sound_trace_is_called_incomplete() {
    let mut wrong = Vec::new();
    for (path, trace) in every_trace() {
        let name = path.display().to_string();
        // Made to be wrong, or recorded without the work of its graphs.
        if ["/hostile/", "/cases/", "/damaged", "/graphs_whole"].iter().any(|part| name.contains(part)) {
            continue;
        }
        let survey = survey(&trace, &Source::named(&name));
        if !survey.source.complete {
            wrong.push(format!("{name}: {} {:?}", survey.headline, survey.missing.first()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
