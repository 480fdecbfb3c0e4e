//! `busbound top`, the real binary: from a log, since a test has no GPU.

use std::path::Path;
use std::process::Stdio;

use crate::common::{Running, busbound, fixture, text};

fn run(args: &[&str]) -> (String, String, Option<i32>) {
    text(&busbound(args).output().unwrap())
}

/// Every log in the fixtures, synthetic or recorded.
fn logs() -> Vec<String> {
    let found = std::fs::read_dir(fixture("top")).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = found.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    logs.sort();
    assert!(!logs.is_empty());
    logs.iter().map(|path| path.display().to_string()).collect()
}

#[test]
fn a_log_is_played_back_as_a_table_as_lines_and_as_json() {
    for log in logs() {
        let snapshots = std::fs::read_to_string(&log).unwrap().lines().count();
        let (table, stderr, code) = run(&["top", "--replay", &log, "--once"]);
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "{log}");
        assert!(table.contains("GPU 0") && table.contains("to the"), "{table}");
        let (json, _, code) = run(&["top", "--replay", &log, "--json"]);
        assert_eq!((json.lines().count(), code), (snapshots, Some(0)));
        for line in json.lines() {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(object["schema"], "busbound.top/1");
        }
        // The output is a log as well, and nothing is lost.
        let again = Path::new(env!("CARGO_TARGET_TMPDIR")).join("again.jsonl");
        std::fs::write(&again, &json).unwrap();
        assert_eq!(run(&["top", "--replay", &again.display().to_string(), "--json"]).0, json);
        let (lines, ..) = run(&["top", "--replay", &log]);
        assert!(lines.lines().filter(|line| line.contains("Z GPU 0: ")).count() == snapshots, "{lines}");
    }
}

#[test]
fn shares_follow_machine_and_warnings_follow_the_limits() {
    let log = fixture("top/made.jsonl");
    let (table, ..) = run(&["top", "--replay", &log, "--once"]);
    assert!(table.replace('\n', " ").contains("75% of the 63.0 GB/s nominal"), "{table}");
    assert!(table.contains("bus traffic to the device is near the peak"), "{table}");
    let profile = fixture("machines/h200.json");
    let (table, ..) = run(&["top", "--replay", &log, "--once", "--machine", &profile]);
    assert!(table.replace('\n', " ").contains("85% of the 55.5 GB/s measured"), "{table}");
    let (table, ..) = run(&["top", "--replay", &log, "--once", "--bus-share", "95%", "--patience", "60"]);
    assert!(!table.contains("bus traffic to the device") && !table.contains("memory is full"), "{table}");
    let (table, ..) = run(&["top", "--replay", &log, "--once", "--watchdog", "15"]);
    assert!(table.contains("Steps are close to the watchdog"), "{table}");
    let (markdown, ..) = run(&["top", "--replay", &log, "--format", "markdown"]);
    assert!(markdown.starts_with("**The bus is near its peak"), "{markdown}");
}

#[test]
fn without_a_driver_there_is_one_sentence_and_exit_code_4() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        return;
    }
    for args in [vec!["top"], vec!["top", "--once"], vec!["top", "--json", "--log", "never.jsonl"]] {
        let (stdout, stderr, code) = run(&args);
        assert_eq!((stdout.as_str(), code), ("", Some(4)), "{stderr}");
        assert!(stderr.starts_with("busbound: ") && stderr.lines().count() == 1, "{stderr}");
        assert!(stderr.contains("NVIDIA") && stderr.contains("--replay"), "{stderr}");
    }
    assert!(!Path::new(env!("CARGO_TARGET_TMPDIR")).join("never.jsonl").exists());
}

#[test]
fn wrong_usage_is_rejected_and_a_truncated_log_is_played_to_its_end() {
    let log = fixture("top/made.jsonl");
    let trace = fixture("walls.json");
    for (args, code, words) in [
        (vec!["top", "--replay", "no-such.jsonl"], 3, "no-such.jsonl"),
        (vec!["top", "--replay", &trace], 3, "is not a log of `busbound top`"),
        (vec!["top", "--replay", &log, "--log", "x"], 2, "cannot be used with"),
        (vec!["top", "--once", "--prometheus", "127.0.0.1:0"], 2, "cannot be used with"),
        (vec!["top", "--replay", &log, "--prometheus", "nowhere"], 2, "cannot serve metrics at nowhere"),
        (vec!["top", "--once", "--otlp"], 2, "cannot be used with"),
        (vec!["top", "--replay", &log, "--otlp", "https://here:4318"], 2, "--otlp: https is not supported"),
        (vec!["top", "--replay", &log, "--otlp", "here:4318"], 2, "--otlp: give an address such as http"),
        (vec!["top", "--replay", &log, "-o", "x", "--otlp"], 2, "leave out --count, --prometheus and --otlp"),
        (vec!["top", "--replay", &log, "-o", "x", "--count", "2"], 2, "leave out --count"),
        (vec!["top", "--interval", "0"], 2, "0.1 to 3600"),
        (vec!["top", "--heartbeat", "a***"], 2, "--heartbeat a***"),
        (vec!["top", "--keys", "loss=x"], 2, "the keys are toks_per_s"),
    ] {
        let (_, stderr, seen) = run(&args);
        assert!(seen == Some(code) && stderr.contains(words), "{args:?}: {seen:?} {stderr}");
    }
    let whole = std::fs::read(&log).unwrap();
    let cut = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.jsonl");
    std::fs::write(&cut, &whole[..whole.len() - 100]).unwrap();
    let (json, stderr, code) = run(&["top", "--replay", &cut.display().to_string(), "--json"]);
    assert_eq!((json.lines().count(), code), (23, Some(0)));
    assert!(stderr.contains("skipped: 1 line of "), "{stderr}");
}

#[test]
fn prometheus_reads_the_figures_over_plain_tcp() {
    let log = fixture("top/made.jsonl");
    let args = ["top", "--replay", &log, "--prometheus", "127.0.0.1:0", "--interval", "0.1"];
    let mut child = Running(busbound(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let metrics = child.metrics();
    // The log is played; its last interval has this sign.
    let answer = metrics.until(|text| text.contains("busbound_warning{id=\"collective_trouble\""));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let labels = "{gpu=\"0\",uuid=\"GPU-00000000-0000-0000-0000-000000000000\",name=\"NVIDIA H200\"}";
    assert!(body.contains(&format!("\nbusbound_pcie_rx_bytes_per_second{labels} 5")), "{body}");
    assert!(metrics.ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(metrics.ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let log = fixture("top/made.jsonl");
    let mut child = busbound(&["top", "--replay", &log, "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Beats of a training, for a machine without a driver.
fn beats(folder: &Path) -> String {
    let file = folder.join("heartbeat_rank0.jsonl");
    std::fs::write(&file, "{\"dt_step_s\": 3.5, \"toks_per_s\": 41}\n").unwrap();
    file.display().to_string()
}

#[test]
fn heartbeats_are_shown_without_a_driver() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = beats(folder.path());
    let args = ["top", "--heartbeat", &file, "--interval", "0.1"];
    let (json, stderr, code) = run(&[&args[..], &["--json", "--count", "1"]].concat());
    assert!(code == Some(0) && stderr.ends_with(": only the heartbeats are shown\n"), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["training"][0]["beats"][0]["dt_step_s"], 3.5);
    for more in [&["--once"][..], &["--count", "1"]] {
        let (table, _, code) = run(&[&args[..], more].concat());
        assert!(code == Some(0) && table.contains("step 3.50 s") && table.contains("41"), "{table}");
    }
}

#[test]
fn heartbeats_are_shown_at_the_end_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let (file, log) = (beats(folder.path()), fixture("top/made.jsonl"));
    let (json, stderr, code) = run(&["top", "--replay", &log, "--heartbeat", &file, "--json"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |line: &serde_json::Value| {
        line["training"].as_array().is_some_and(|all| all.iter().any(|one| one["file"] == *file))
    };
    let (last, others) = lines.split_last().unwrap();
    assert!(has(last) && !others.iter().any(has));
}

#[test]
fn an_unreadable_folder_of_summaries_is_no_answer() {
    let (stdout, stderr, code) = run(&["top", "--summaries", "no-such-folder", "--once"]);
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    assert_eq!(stderr, "busbound: no-such-folder does not exist\n");
}

/// A log on a full disk ends with a sentence, not with half of a log that looks whole.
#[test]
#[cfg(target_os = "linux")]
fn a_log_on_a_full_disk_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = beats(folder.path());
    let args = ["top", "--heartbeat", &file, "--interval", "0.1", "--count", "2", "--log", "/dev/full"];
    let (_, stderr, code) = run(&args);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("cannot write the answer: /dev/full: No space left on device"), "{stderr}");
}

/// A log is rotated while `top` writes it: by copying and truncating, and by renaming, which `top` does not notice.
#[test]
#[cfg(unix)]
fn no_interval_of_a_rotated_log_is_lost() {
    for by_renaming in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (file, log, old) =
            (beats(folder.path()), folder.path().join("top.jsonl"), folder.path().join("top.jsonl.1"));
        let path = log.display().to_string();
        let args = ["top", "--heartbeat", &file, "--interval", "0.3", "--count", "8", "--log", &path];
        let child = busbound(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = |path: &Path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let parsed = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            parsed.map(|line| line["at"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        while std::fs::read_to_string(&log).unwrap_or_default().matches('\n').count() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if by_renaming {
            std::fs::rename(&log, &old).unwrap();
        } else {
            std::fs::copy(&log, &old).unwrap();
            std::fs::OpenOptions::new().write(true).truncate(true).open(&log).unwrap();
        }
        let (_, stderr, code) = text(&child.wait_with_output().unwrap());
        assert_eq!(code, Some(0), "{stderr}");
        let all = [lines(&old), lines(&log)].concat();
        assert!(all.len() == 8 && all.is_sorted(), "{all:?}");
        assert_eq!(log.exists(), !by_renaming, "a renamed log is written on");
    }
}
