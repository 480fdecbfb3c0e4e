//! The gate for CI servers.

use crate::common::shown::shown;
use busbound_diagnosis::{Baseline, Options, Requirement, Source, diagnose, gate};
use busbound_machine::Machine;
use busbound_report::{Format, Report, Style};
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
fn junit_is_valid_xml_for_any_file_name() {
    let xml = shown(&failing("a<b>&\"c\" 'd'.json"), Format::Junit);
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
    let lines = shown(&failing("a\n::set-output name=x::y%.json"), Format::Github);
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.lines().all(|line| line.starts_with("::error title=")), "{lines}");
    assert!(lines.contains("%0A::set-output"), "{lines}");
}

#[test]
fn the_json_of_a_gate_is_a_baseline() {
    let written = failing("run.json");
    let json = shown(&written, Format::Json);
    let saved = Baseline::saved("bar.json", &json).unwrap();
    assert_eq!(saved.figures, written.runs[0].figures);
    assert!(Baseline::saved("x", "{}").is_err());
    assert!(Baseline::saved("x", r#"{"schema":"busbound.survey/2","runs":[]}"#).is_err());
    assert!(Baseline::saved("x", r#"{"schema":"busbound.gate/2","runs":[]}"#).is_err());
}

#[test]
fn an_unsupported_format_is_an_error_that_lists_the_supported_ones() {
    let refused = failing("run.json").render(Format::Prometheus, &Style::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "gates cannot be written as prometheus; choose terminal, markdown, json, html, junit, github"
    );
}
