//! No line on the terminal is wider than the terminal: every renderer, every fixture, four widths.

use std::path::PathBuf;

use crate::common::paths::fixture_path;
use busbound_diagnosis::{
    BlockChoice, Diagnosis, Options, Requirement, Source, compare, diagnose, gate, judge_bench, survey,
    what_if,
};
use busbound_fleet::{Fleet, NotOneRun, RankSummary, Unread};
use busbound_machine::Machine;
use busbound_machine::bench::Samples;
use busbound_machine::topology::{from_nccl, from_smi};
use busbound_report::{Format, Report, Runs, Style};
use busbound_trace::{ReadOptions, Trace, open};

const WIDTHS: [u16; 4] = [60, 80, 100, 140];

/// Every trace of these folders.
fn traces(folders: &[&str]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(fixture_path(folder)).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            (name.ends_with(".json.gz") || *folder == "hostile") && path.is_file()
        }));
    }
    paths.sort();
    assert!(paths.len() > 40, "{paths:?}");
    paths
}

/// Checks that every rendered line fits. A single word that is too long, such as a path, must be alone on its line.
fn check(what: &str, report: &(impl Report + ?Sized)) {
    for (width, verbose) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
        let text = report.render(Format::Terminal, &Style { width, color: false, verbose }).unwrap();
        for line in text.lines() {
            assert_eq!(line, line.trim_end(), "{what} at {width}: a line ends in spaces");
            let fits = line.chars().count() <= usize::from(width);
            let alone = !line.trim_start().contains(' ');
            assert!(fits || alone, "{what} at {width}: {} columns:\n{line}", line.chars().count());
        }
    }
}

/// The answer has at most 20 lines on a terminal of 80 columns.
fn check_length(name: &str, run: &Diagnosis) {
    let text = run.render(Format::Terminal, &Style::default()).unwrap();
    assert!(text.lines().count() <= 20, "{name}: {} lines:\n{text}", text.lines().count());
}

fn diagnosed(trace: &Trace, name: &str, options: &Options) -> Diagnosis {
    diagnose(trace, &Source::named(name), &Machine::default(), options)
}

#[test]
fn traces_fit() {
    let mut runs = Vec::new();
    for path in traces(&[".", "runs", "pairs", "hostile"]) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let trace = open(&path, &ReadOptions::default()).unwrap();
        check(&format!("survey of {name}"), &survey(&trace, &Source::named(&name)));
        let run = diagnosed(&trace, &name, &Options::default());
        check(&format!("diagnosis of {name}"), &run);
        check_length(&name, &run);
        if let Ok(answer) = what_if(&trace, &name, &Machine::default(), &Options::default(), &[]) {
            check(&format!("whatif of {name}"), &answer);
        }
        runs.push(run);
    }
    check("all in one call", runs.as_slice());
    let summaries: Vec<RankSummary> = runs.iter().map(RankSummary::of).collect();
    let unread = [Unread::new(
        "rank-3.json",
        "rank-3.json is empty: the profiler was stopped before it wrote anything",
    )];
    let fleet = Fleet::of(summaries.iter().cloned()).with_unread(unread.iter().cloned()).answer(None);
    check("all as ranks of one run", &fleet);
    let separate = Runs {
        all: &runs,
        summaries: &summaries,
        fleet: None,
        why_not_merged: Some(&NotOneRun::NoRank),
        shown: &[],
        on_terminal: &[],
        unread: &unread,
        sections: &[],
    };
    check("all in one table", &separate);
    for pair in runs.windows(2) {
        let comparison = compare(pair, None);
        check("comparison", &comparison);
    }
    let wanted = ["step_p50 <= 1.05 * baseline", "exposed_copy_ms < 5", "idle_share < 10%"]
        .map(|text| Requirement::parse(text).unwrap());
    let gated = gate(&runs, &wanted, None, false);
    check("gate", &gated);
}

/// Deep trees and long names have the least room.
#[test]
fn trees_of_blocks_fit() {
    let mut options = Options::default();
    options.blocks = BlockChoice::Depth(6);
    for name in ["runs/nested_blocks.json.gz", "runs/broken_compile.json.gz", "train_pinned.json.gz"] {
        let trace = open(&fixture_path(name), &ReadOptions::default()).unwrap();
        let run = diagnosed(&trace, name, &options);
        check(name, &run);
    }
}

#[test]
fn machines_fit() {
    let text = |name: &str| std::fs::read_to_string(fixture_path(name)).unwrap();
    for name in ["nccl-one-gpu.xml", "nccl-eight-gpus.xml"] {
        let topology = from_nccl(&text(&format!("topology/{name}"))).unwrap().topology();
        check(name, &topology);
    }
    for name in ["nvidia-smi-one-gpu.txt", "nvidia-smi-eight-gpus.txt"] {
        let topology = from_smi(&text(&format!("topology/{name}"))).unwrap().topology();
        check(name, &topology);
    }
    for name in ["h200-quick.json", "h200-full-1.json"] {
        let samples = Samples::parse(&text(&format!("machines/raw/{name}"))).unwrap();
        let bench = judge_bench(&samples);
        check(name, &bench);
    }
}
