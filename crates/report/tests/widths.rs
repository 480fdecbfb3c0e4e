//! No line at a terminal is wider than the terminal: every renderer, every fixture, four widths.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

#[path = "common/paths.rs"]
mod paths;

use std::path::PathBuf;

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
use paths::fixture_path;

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

/// Holds what is rendered to its width. One word, such as a path, may be longer than the room there is, but then
/// it stands alone in its line.
fn check(what: &str, report: &(impl Report + ?Sized)) {
    for width in WIDTHS {
        let text = report.render(Format::Terminal, &Style { width, ..Style::default() }).unwrap();
        for line in text.lines() {
            assert_eq!(line, line.trim_end(), "{what} at {width}: a line ends in spaces");
            let fits = line.chars().count() <= usize::from(width);
            let alone = !line.trim_start().contains(' ');
            assert!(fits || alone, "{what} at {width}: {} columns:\n{line}", line.chars().count());
        }
    }
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
        let told = survey(&trace, &Source::named(&name));
        check(&format!("survey of {name}"), &told);
        let run = diagnosed(&trace, &name, &Options::default());
        check(&format!("diagnosis of {name}"), &run);
        if let Ok(answer) = what_if(&trace, &name, &Machine::default(), &Options::default(), &[]) {
            check(&format!("whatif of {name}"), &answer);
        }
        runs.push(run);
    }
    check("all at once", runs.as_slice());
    let summaries: Vec<RankSummary> = runs.iter().map(RankSummary::of).collect();
    let unread = [Unread::new(
        "rank-3.json",
        "rank-3.json is empty: the profiler was stopped before it wrote anything",
    )];
    let fleet = Fleet::of(summaries.iter().cloned()).with_unread(unread.iter().cloned()).answer(None);
    check("all as ranks of one run", &fleet);
    let apart = Runs {
        all: &runs,
        summaries: &summaries,
        fleet: None,
        why_apart: Some(&NotOneRun::NoRank),
        told: &[],
        unread: &unread,
        sections: &[],
    };
    check("all in one table", &apart);
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
