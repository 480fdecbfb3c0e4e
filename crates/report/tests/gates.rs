//! The gate for CI servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use busbound_diagnosis::{Baseline, Options, Requirement, Source, diagnose, gate};
use busbound_machine::Machine;
use busbound_report::{gate_as_github, gate_as_json, gate_as_junit};
use busbound_trace::TraceBuilder;
use quick_xml::events::Event;

fn failing(path: &str) -> busbound_diagnosis::Gate {
    let mut trace = TraceBuilder::default();
    let stream = trace.stream(0, 7);
    trace.kernel(stream, "gemm", 1_000..201_000);
    let trace = trace.finish();
    let run = diagnose(&trace, &Source::named(path), &Machine::default(), &Options::default());
    let wanted =
        ["compute_ms > 5", "compute_ms < 5", "step_p50 < 3"].map(|text| Requirement::parse(text).unwrap());
    gate(&[run], &wanted, None, false)
}

#[test]
fn junit_is_xml_whatever_the_files_name() {
    let xml = gate_as_junit(&failing("a<b>&\"c\" 'd'.json"));
    let mut reader = quick_xml::Reader::from_str(&xml);
    let (mut cases, mut failures, mut names) = (0, 0, Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                b"testcase" => {
                    cases += 1;
                    let name = tag.try_get_attribute("name").unwrap().unwrap();
                    names.push(name.unescape_value().unwrap().into_owned());
                }
                b"failure" => failures += 1,
                b"testsuite" => {
                    let name = tag.try_get_attribute("name").unwrap().unwrap();
                    assert_eq!(name.unescape_value().unwrap(), "a<b>&\"c\" 'd'.json");
                }
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!((cases, failures), (3, 2));
    assert_eq!(names, ["compute_ms > 5", "compute_ms < 5", "step_p50 < 3"]);
}

#[test]
fn a_name_cannot_end_a_workflow_command() {
    let lines = gate_as_github(&failing("a\n::set-output name=x::y%.json"));
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.lines().all(|line| line.starts_with("::error title=")), "{lines}");
    assert!(lines.contains("%0A::set-output"), "{lines}");
}

#[test]
fn what_a_gate_writes_is_a_baseline() {
    let written = failing("run.json");
    let json = gate_as_json(&written).unwrap();
    let saved = Baseline::saved("bar.json", &json).unwrap();
    assert_eq!(saved.figures, written.runs[0].figures);
    assert!(Baseline::saved("x", "{}").is_err());
    assert!(Baseline::saved("x", r#"{"schema":"busbound.survey/1","runs":[]}"#).is_err());
    assert!(Baseline::saved("x", r#"{"schema":"busbound.gate/1","runs":[]}"#).is_err());
}
