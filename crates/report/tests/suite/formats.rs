//! Every answer renders in every format that supports it, and in no other.

use crate::common::paths::fixture_path;
use busbound_diagnosis::{
    Detail, Options, Requirement, Source, advice_of_diagnosis, compare, diagnose_and_draw, gate, judge_bench,
    survey, what_if,
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
