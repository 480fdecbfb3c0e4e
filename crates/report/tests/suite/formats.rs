//! Every answer renders in every format that supports it, and in no other.

use std::path::PathBuf;

use crate::common::paths::fixture_path;
use busbound_diagnosis::{
    Detail, Options, Requirement, Source, advice_of_diagnosis, compare, diagnose, diagnose_and_draw, gate,
    judge_bench, survey, what_if,
};
use busbound_fleet::{Fleet, RankSummary};
use busbound_machine::Machine;
use busbound_machine::bench::Samples;
use busbound_machine::live::Log;
use busbound_machine::topology::from_nccl;
use busbound_report::{Answer, AnswerKind, Format, Plan, RenderError, Report, Style, Timeline};
use busbound_trace::{ReadOptions, open};
use busbound_whatif::plan::budget::{Budget, BudgetInputs};

/// Renders a report in every format and checks that exactly the supported ones succeed.
fn check(report: &dyn Report) {
    let kind = report.answer().kind();
    for &format in Format::ALL {
        let is_supported = match kind {
            AnswerKind::Advice | AnswerKind::Timeline => false,
            _ => format.is_general(),
        } || Format::only_for(kind).any(|only| only == format);
        match report.render(format, &Style::default()) {
            Ok(text) => assert!(is_supported && !text.is_empty(), "{kind:?} as {format}"),
            Err(RenderError::NotAvailable { kind: refused, .. }) => {
                assert!(!is_supported && refused == kind, "{kind:?} as {format}");
            }
            Err(other) => panic!("{kind:?} as {format}: {other}"),
        }
    }
}

#[test]
fn every_answer_renders_in_every_supported_format() {
    let text = |name: &str| std::fs::read_to_string(fixture_path(name)).unwrap();
    let trace = open(&fixture_path("off_block_pageable_c4.json.gz"), &ReadOptions::default()).unwrap();
    let (source, machine, options) = (Source::named("run.json"), Machine::default(), Options::default());
    let drawn = diagnose_and_draw(&trace, &source, &machine, &options, &[], Detail::Page { runs: 1 });
    let run = &drawn.diagnosis;
    check(&survey(&trace, &source));
    check(run);
    check(&drawn);
    check(&compare(&[run.clone(), run.clone()], None));
    check(&what_if(&trace, "run.json", &machine, &options, &[]).unwrap());
    // A requirement that fails: annotations only list failures.
    let wanted = [Requirement::parse("compute_ms < 0").unwrap()];
    check(&gate(std::slice::from_ref(run), &wanted, None, false));
    check(&RankSummary::of(run));
    check(&Fleet::of([RankSummary::of(run)]).answer(None));
    check(&judge_bench(&Samples::parse(&text("machines/raw/h200-quick.json")).unwrap()));
    check(&from_nccl(&text("topology/nccl-eight-gpus.xml")).unwrap().topology());
    check(&Log::parse(&text("top/made.jsonl")).unwrap().snapshots[0]);
    let inputs = BudgetInputs {
        bytes: 1e9,
        copy_bytes: 1e9,
        step_ms: None,
        link: Machine::named("pcie4x16").unwrap().link_of(None),
        pageable: false,
        observed_gbps: None,
    };
    check(&Plan::Budget(Budget::plan(inputs).unwrap()));
    check(&advice_of_diagnosis(run));
    check(&Timeline { trace: &trace, drawn: Some(&drawn) });
}

/// The page of a diagnosis has charts only if there is a picture to draw.
#[test]
fn a_diagnosis_without_its_picture_is_a_page_without_charts() {
    let trace = open(&fixture_path("off_block_pageable_c4.json.gz"), &ReadOptions::default()).unwrap();
    let (source, machine, options) = (Source::named("run.json"), Machine::default(), Options::default());
    let drawn = diagnose_and_draw(&trace, &source, &machine, &options, &[], Detail::Page { runs: 1 });
    let page = |report: &dyn Report| report.render(Format::Html, &Style::default()).unwrap();
    let (words, whole) = (page(&drawn.diagnosis), page(&drawn));
    assert!(!words.contains("<script") && whole.contains("<script"));
    for page in [&words, &whole] {
        assert!(page.contains("<title>run.json: Transfer-bound"), "{}", &page[..400]);
    }
    assert!(matches!(drawn.answer(), Answer::Drawn(_)));
}

/// Plain terminal text must not contain escape sequences.
#[test]
fn terminal_text_is_styled_only_on_request() {
    let trace = open(&fixture_path("pipe_serial.json.gz"), &ReadOptions::default()).unwrap();
    let answer = survey(&trace, &Source::named("run.json"));
    let shown = |color| answer.render(Format::Terminal, &Style { width: 80, color, verbose: true }).unwrap();
    assert!(shown(true).contains("\u{1b}[1m") && !shown(false).contains('\u{1b}'));
    let length = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    assert!(length(&shown(false)) < length(&shown(true)));
}

/// Below the fixtures, without those that only differ in their framework.
fn traces() -> Vec<PathBuf> {
    let mut folders = vec![fixture_path("")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("frameworks") {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    let suffixes = [".json", ".json.gz", ".sqlite", ".bbt", ".pb"];
    files.retain(|path| suffixes.iter().any(|suffix| path.to_string_lossy().ends_with(suffix)));
    files
}

/// The sum of no numbers is -0.0, and a trace without GPU events had `"busy_ms": -0.0`.
#[test]
fn no_zero_in_json_has_a_sign() {
    let mut read = 0;
    for path in traces() {
        let Ok(trace) = open(&path, &ReadOptions::default()) else { continue };
        let diagnosis = diagnose(&trace, &Source::named("run"), &Machine::default(), &Options::default());
        let json = diagnosis.render(Format::Json, &Style::default()).unwrap();
        let digit = |rest: &str| rest.starts_with(|next: char| next.is_ascii_digit());
        let signed = json.split(": -0.0").skip(1).find(|rest| !digit(rest));
        assert_eq!(signed, None, "{}", path.display());
        read += 1;
    }
    assert!(read > 100, "{read} traces");
}
