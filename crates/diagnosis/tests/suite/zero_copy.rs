//! Kernels that read or write host memory: recordings of programs on an H200, with what each moves and what copying ahead gives.

use std::path::{Path, PathBuf};

use busbound_diagnosis::{Bound, FigureId, FindingId, Options, Source, diagnose, what_if};
use busbound_machine::{Machine, MachineProfile};
use busbound_trace::{ReadOptions, Trace, open};
use busbound_whatif::replay::Copied;
use serde_json::Value;

const MIB: f64 = 1048576.0;

/// Programs, the bytes that each launch moves, and what may bound them.
const PROGRAMS: [(&str, f64, &[Bound]); 16] = [
    ("decode", 32.0 * MIB, &[Bound::Transfer]),
    ("batch", 32.0 * MIB, &[Bound::Transfer]),
    ("wide", 128.0 * MIB, &[Bound::Transfer]),
    ("operand", 32.0 * MIB, &[Bound::Mixed]),
    ("operand_large", 128.0 * MIB, &[Bound::Transfer]),
    ("lookup", 32.0 * MIB, &[Bound::Transfer]),
    ("results", 32.0 * MIB, &[Bound::Mixed]),
    ("beside", 32.0 * MIB, &[Bound::Transfer]),
    ("swap", 32.0 * MIB, &[Bound::Transfer]),
    ("prefill", 8.0 * 32.0 * MIB, &[Bound::Transfer]),
    ("prompt", 2.0 * 72.0 * MIB, &[Bound::Transfer]),
    ("chunk", 4.0 * 18.0 * MIB, &[Bound::Transfer]),
    ("projection", 16.0 * 128.0 * MIB, &[Bound::Transfer]),
    ("rerank", 4.0 * 50.0 * MIB, &[Bound::Transfer]),
    ("encode", 4.0 * 98.0 * MIB, &[Bound::Transfer]),
    ("document", 8.0 * 32.0 * MIB, &[Bound::Transfer]),
];

/// Of these, how often a launch reads its weights: once per row of tiles.
const READ_AGAIN: [(&str, f64); 7] = [
    ("prefill", 8.0),
    ("prompt", 2.0),
    ("chunk", 4.0),
    ("projection", 16.0),
    ("rerank", 4.0),
    ("encode", 4.0),
    ("document", 8.0),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn recorded(name: &str) -> Trace {
    open(&root().join(format!("fixtures/zero_copy/recorded/{name}.bbt")), &ReadOptions::default()).unwrap()
}

fn h200() -> Machine {
    let text = std::fs::read_to_string(root().join("fixtures/machines/h200.json")).unwrap();
    Machine::measured(MachineProfile::parse(&text).unwrap())
}

/// Steps of a program without the recorder: the least and the most, in milliseconds.
fn walls(name: &str, variant: &str) -> (f64, f64) {
    let text = std::fs::read_to_string(root().join("fixtures/zero_copy/walls.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of = lines.filter(|line| line["name"] == name && line["variant"] == variant);
    let steps: Vec<f64> = of
        .flat_map(|line| line["step_ms"].as_array().unwrap().clone())
        .filter_map(|ms| ms.as_f64())
        .collect();
    (steps.iter().copied().fold(f64::INFINITY, f64::min), steps.iter().copied().fold(0.0, f64::max))
}

#[test]
fn bytes_that_no_copy_explains_are_those_of_the_kernels_that_read_host_memory() {
    let machine = h200();
    for (name, bytes, bounds) in PROGRAMS {
        let d = diagnose(&recorded(name), &Source::named(name), &machine, &Options::default());
        assert!(bounds.contains(&d.verdict.bound), "{name}: {:?}", d.verdict);
        let finding = d.findings.iter().find(|finding| finding.id == FindingId::ZeroCopy).unwrap();
        let found = finding.evidence["bytes_per_launch"].as_f64().unwrap();
        assert!((found / bytes - 1.0).abs() < 0.05, "{name}: {found} of {bytes}");
        let once = finding.evidence["different_bytes_per_launch"].as_f64().unwrap();
        let times = READ_AGAIN.iter().find(|again| again.0 == name).map_or(1.0, |again| again.1);
        assert!((found / once - times).abs() < 0.01, "{name}: {times} times, {found} and {once}");
        assert!(
            finding.evidence["share_explained"].as_f64().unwrap() > 0.98,
            "{name}: {:?}",
            finding.evidence
        );
    }
}

#[test]
fn steps_are_those_of_the_program_and_copying_ahead_gives_what_was_measured() {
    let machine = h200();
    for (name, ..) in PROGRAMS {
        let answer =
            what_if(&recorded(name), name, &machine, &Options::default(), &[vec![Copied.into()]]).unwrap();
        let now = walls(name, "zero_copy");
        assert!((0.97 * now.0..1.03 * now.1).contains(&answer.baseline_ms), "{name}: {}", answer.baseline_ms);
        let scenario = answer.scenarios.last().unwrap();
        let then = walls(name, "copied");
        // `document` copies its rows of the table when they are needed, not ahead.
        let error = if name == "document" { 0.1 } else { 0.05 };
        let is_near = ((1.0 - error) * then.0..(1.0 + error) * then.1).contains(&scenario.step_ms);
        assert!(is_near, "{name}: {} of {then:?}", scenario.step_ms);
        let gain = (now.0 + now.1 - then.0 - then.1) / 2.0;
        let predicted = answer.baseline_ms - scenario.step_ms;
        assert!((predicted / gain - 1.0).abs() < 0.15, "{name}: {predicted} of {gain}");
        let is_inside = scenario.low_ms <= then.1 && then.0 <= scenario.high_ms;
        assert!(is_inside || name == "document", "{name}: {scenario:?} of {then:?}");
    }
}

#[test]
fn kernels_that_read_no_host_memory_get_no_bytes() {
    let d = diagnose(&recorded("resident"), &Source::named("resident"), &h200(), &Options::default());
    assert_eq!(d.verdict.bound, Bound::Compute);
    assert!(d.findings.iter().all(|finding| finding.id != FindingId::ZeroCopy));
}

/// Kernels read 39 GB/s while copies run at 15.5 GB/s: the link is full. It was once "slow", with advice to check its width.
#[test]
fn a_link_that_kernels_share_with_copies_is_not_slow() {
    let run = diagnose(&recorded("beside"), &Source::named("beside"), &h200(), &Options::default());
    assert!(run.findings.iter().all(|finding| finding.id != FindingId::SlowLink), "{:?}", run.findings);
}

#[test]
fn waits_of_kernels_are_drawn_beside_compute() {
    let trace = recorded("decode");
    let run = diagnose(&trace, &Source::named("decode"), &h200(), &Options::default());
    let (span, compute) = (FigureId::SpanMs.of(&run).unwrap(), FigureId::ComputeMs.of(&run).unwrap());
    let parts = FigureId::drawn(FigureId::PARTS, &run);
    let part = |wanted: FigureId| parts.iter().find(|(figure, _)| *figure == wanted).unwrap().1;
    let (waiting, working) = (part(FigureId::KernelWaitMs), part(FigureId::ComputeMs));
    assert!(waiting > 0.9 * span, "{waiting} of {span}");
    assert!((waiting + working - compute).abs() < 1e-9 * span, "{waiting} + {working} of {compute}");
    assert!((parts.iter().map(|(_, ms)| ms).sum::<f64>() - span).abs() < 1e-9 * span);
}
