//! The real binary, as a person calls it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn busbound(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbound"));
    command.args(args).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn fixture(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "fixtures", name].iter().collect();
    path.display().to_string()
}

fn text(output: &Output) -> (String, String, Option<i32>) {
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (utf8(&output.stdout), utf8(&output.stderr), output.status.code())
}

#[test]
fn documented_sessions() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

#[test]
fn standard_input_gives_what_the_file_gives() {
    let file = std::fs::read(fixture("graph_replay.json.gz")).unwrap();
    let mut child = busbound(&["survey", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&file).unwrap();
    let (from_pipe, _, code) = text(&child.wait_with_output().unwrap());
    assert_eq!(code, Some(0));
    let path = fixture("graph_replay.json.gz");
    let (from_file, ..) = text(&busbound(&["survey", &path, "--format", "json"]).output().unwrap());
    assert_eq!(from_pipe, from_file.replace(&path, "standard input"));
}

#[test]
fn two_runs_give_the_same_bytes_on_any_number_of_threads() {
    let path = fixture("launch_bound.json.gz");
    let answers: Vec<_> = ["1", "2", "2", "7"]
        .iter()
        .map(|threads| {
            busbound(&["survey", &path, "--threads", threads, "--format", "json"]).output().unwrap().stdout
        })
        .collect();
    assert!(answers[0].len() > 1000);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    for path in ["launch_bound.json.gz", "train_pageable.json.gz", "runs/scheduled_bus_too_short.json.gz"] {
        let diagnose = |threads| {
            let args = ["diagnose", &fixture(path), "--threads", threads, "--format", "json"];
            busbound(&args).output().unwrap().stdout
        };
        let one = diagnose("1");
        assert!(one.len() > 1000);
        assert!(["1", "2", "7"].iter().all(|threads| diagnose(threads) == one), "{path}");
    }
}

#[test]
fn a_directory_is_its_ranks_and_what_is_no_trace_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    let trace = br#"{"traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1}]}"#;
    put("trace_rank_10.json", trace);
    put("trace_rank_2.json", trace);
    put("config.json", br#"{"learning_rate": 0.1}"#);
    put("notes.txt", b"no trace");
    let path = directory.path().display().to_string();
    let (out, err, code) = text(&busbound(&["survey", &path, "--format", "json"]).output().unwrap());
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("passed over") && err.contains("learning_rate"), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let ranks: Vec<_> =
        json["runs"].as_array().unwrap().iter().map(|run| run["rank"]["rank"].as_u64()).collect();
    assert_eq!(ranks, [Some(2), Some(10)]);
}

#[test]
fn an_answer_in_a_file_has_no_styles_and_standard_output_stays_empty() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("answer.txt");
    let path = file.display().to_string();
    let (out, _, code) = text(&busbound(&["demo", "-o", &path]).output().unwrap());
    assert_eq!((out.as_str(), code), ("", Some(0)));
    let answer = std::fs::read_to_string(file).unwrap();
    assert!(answer.starts_with("Transfer-bound: 75 % of each 274 ms step waits"), "{answer}");
    assert!(!answer.contains('\u{1b}'));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let mut child = busbound(&["demo"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_memory_bound_stops_reading_and_says_so() {
    let path = fixture("launch_bound.json.gz");
    let output = busbound(&["survey", &path, "--memory", "200kB", "--threads", "1"]).output().unwrap();
    let (out, _, code) = text(&output);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("Read in part (memory bound): "), "{out}");
}
