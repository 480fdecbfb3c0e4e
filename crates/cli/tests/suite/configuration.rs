//! `busbound.toml`: settings of a project, found upward from the working directory.

use std::fs;
use std::path::Path;

use crate::common::{busbound, fixture, text};
use tempfile::TempDir;

/// A project with this file, and a directory below it.
fn project(config: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("runs/today")).unwrap();
    fs::write(directory.path().join("busbound.toml"), config).unwrap();
    directory
}

fn run(directory: &Path, args: &[&str]) -> (String, String, Option<i32>) {
    text(&busbound(args).current_dir(directory).output().unwrap())
}

fn link(answer: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(answer).unwrap();
    json["machine"]["gpus"][0]["link"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn settings_apply_below_the_file_and_flags_win() {
    let project = project("machine = \"pcie6x16\"\nwarmup = 2\n");
    let below = project.path().join("runs/today");
    let trace = fixture("off_block_pinned_c4.json.gz");
    let (json, stderr, code) = run(&below, &[&trace, "--format", "json"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert_eq!(link(&json), "PCIe 6 x16");
    assert!(json.contains("\"warmup_dropped\": 2"), "{json:.2000}");
    let (json, ..) = run(&below, &[&trace, "--format", "json", "--machine", "h200", "--warmup", "0"]);
    assert_eq!(link(&json), "PCIe 5 x16");
    assert!(json.contains("\"warmup_dropped\": 0"), "{json:.2000}");
    let (_, stderr, _) = run(&below, &[&trace, "-v"]);
    assert!(
        stderr.starts_with("busbound: settings from ") && stderr.trim_end().ends_with("busbound.toml"),
        "{stderr}"
    );
    // Commands that no setting concerns do not read it.
    fs::write(project.path().join("busbound.toml"), "nonsense").unwrap();
    assert_eq!(run(&below, &["survey", &trace]).2, Some(0));
}

#[test]
fn a_gate_takes_its_requirements_and_baseline_from_the_file() {
    let project = project("[gate]\nrequire = [\"step_p50 <= 1.05 * baseline\"]\nbaseline = \"base.json\"\n");
    let (slow, fast) = (fixture("off_block_pageable_c4.json.gz"), fixture("off_block_pinned_c4.json.gz"));
    let saved = project.path().join("base.json").display().to_string();
    let save = ["gate", &fast, "--require", "step_p50 > 0", "--baseline", &fast, "-o", &saved];
    assert_eq!(run(project.path(), &save).2, Some(0));
    let below = project.path().join("runs");
    assert_eq!(run(&below, &["gate", &fast]).2, Some(0));
    assert_eq!(run(&below, &["gate", &slow]).2, Some(1));
    // A requirement on the command line replaces those of the file.
    assert_eq!(run(&below, &["gate", &slow, "--require", "step_p50 > 0"]).2, Some(0));
    fs::write(project.path().join("busbound.toml"), "[gate]\nrequire = [\"step_50 < 3\"]\n").unwrap();
    let (_, stderr, code) = run(project.path(), &["gate", &fast]);
    assert_eq!(code, Some(2));
    assert_eq!(
        stderr,
        "busbound: require in busbound.toml: unknown figure \"step_50\" in \"step_50 < 3\"; did you mean step_p50, step_p90 or step_p99?\n"
    );
}

#[test]
fn stages_of_the_file_are_the_pipeline() {
    let project = project("[stages]\nfirst = \"stage0\"\nsecond = \"stage1\"\n");
    let (json, _, code) = run(project.path(), &[&fixture("pipe_serial.json.gz"), "--format", "json"]);
    assert_eq!(code, Some(0));
    assert!(json.contains("\"first\"") && json.contains("\"second\""), "{json:.3000}");
}

/// A log may be from another machine.
#[test]
fn a_replayed_log_keeps_its_peaks() {
    let project = project("machine = \"pcie3x16\"\n");
    let args = ["top", "--replay", &fixture("top/made.jsonl"), "--once"];
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(run(project.path(), &args), run(elsewhere.path(), &args));
    assert_ne!(
        run(project.path(), &[&args[..], &["--machine", "pcie3x16"]].concat()),
        run(elsewhere.path(), &args)
    );
}

#[test]
fn mistakes_have_the_line_and_a_suggestion() {
    let trace = fixture("launch_bound.json.gz");
    for (config, wanted) in [
        (
            "warmup = 1\nmachin = 1\n",
            "busbound: busbound.toml:2: unknown key \"machin\"; did you mean machine?\n",
        ),
        (
            "[gate]\nrequires = []\n",
            "busbound: busbound.toml:2: unknown key \"requires\"; did you mean require?\n",
        ),
        (
            "warmup = true\n",
            "busbound: busbound.toml:1: warmup has a value of the wrong type; write e.g. warmup = 2\n",
        ),
        ("machine = \"h100-pci\"\n", "busbound: busbound.toml: unknown machine \"h100-pci\"; did you mean "),
    ] {
        let project = project(config);
        let (stdout, stderr, code) = run(project.path(), &[&trace]);
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{config}");
        assert!(stderr.starts_with(wanted), "{config}: {stderr}");
    }
    let project = project("steps = \"zork\"\n");
    let (_, stderr, code) = run(project.path(), &[&trace]);
    assert!(
        code == Some(0) && stderr.contains("no annotation matches steps = 'zork' in busbound.toml"),
        "{stderr}"
    );
}
