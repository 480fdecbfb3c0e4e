//! `busbound diagnose --watch`, the real binary: files appear, grow, are damaged and removed while it runs.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::common::{busbound, fixture, text};
use serde_json::Value;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// The program that watches a directory, and its lines.
struct Watching {
    directory: PathBuf,
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = channel();
    thread::spawn(move || {
        BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
    });
    lines
}

impl Watching {
    /// Watches a new directory with these files in it.
    fn start(name: &str, there: &[(&str, &str)], more: &[&str]) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("watch-{name}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        for (name, from) in there {
            fs::copy(fixture(from), directory.join(name)).unwrap();
        }
        let path = directory.display().to_string();
        let mut command = busbound(&["diagnose", "--watch", &path, "--settle", "0.2"]);
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { directory, child, stdout, stderr }
    }

    fn put(&self, name: &str, from: &str) {
        fs::copy(fixture(from), self.directory.join(name)).unwrap();
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout.recv_timeout(LONG).unwrap()).unwrap()
    }

    /// The lines up to an empty one, as one text.
    fn block(&self) -> String {
        let mut block = Vec::new();
        loop {
            match self.stdout.recv_timeout(LONG).unwrap() {
                line if line.is_empty() => return block.join(" "),
                line => block.extend(line.split_whitespace().map(str::to_owned)),
            }
        }
    }

    /// Ctrl-C, what was still printed, and the exit code.
    fn end(mut self) -> (Vec<String>, Option<i32>) {
        assert!(
            Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success()
        );
        let code = self.child.wait().unwrap().code();
        (self.stdout.iter().collect(), code)
    }
}

const PAGEABLE: &str = "off_block_pageable_c4.json.gz";
const PINNED: &str = "off_block_pinned_c4.json.gz";

#[test]
fn each_new_trace_is_compared_with_the_last_one_and_its_prediction() {
    let watching = Watching::start("text", &[("1.json.gz", PAGEABLE)], &[]);
    let first = watching.block();
    assert!(first.contains("1.json.gz Transfer-bound: 274 ms/step → "), "{first}");
    assert!(
        first.contains("1 H2D copies from pageable memory: fix saves ~170 ms/step (274 → 104 ms)"),
        "{first}"
    );
    assert!(!first.contains("since"), "{first}");
    watching.put("2.json.gz", PINNED);
    let second = watching.block();
    assert!(second.contains("since the last trace: 2.6x faster (274 ms → 104 ms)."), "{second}");
    assert!(second.contains("no longer found: pageable_copies"), "{second}");
    assert!(second.contains("by pinning host buffers; measured 104 ms: inside the range"), "{second}");
    watching.put("3.json.gz", PINNED);
    let third = watching.block();
    assert!(third.contains("since the last trace: No clear difference"), "{third}");
    assert!(!third.contains("predicted") && !third.contains("no longer found"), "{third}");
    assert_eq!(watching.end(), (Vec::new(), Some(0)));
}

#[test]
fn json_is_one_line_per_trace() {
    let watching = Watching::start("json", &[], &["--format", "json"]);
    watching.put("1.json.gz", PAGEABLE);
    let first = watching.json();
    assert_eq!((&first["schema"], &first["since"]), (&"busbound.watch/1".into(), &Value::Null));
    let path = watching.directory.join("1.json.gz").display().to_string();
    let (alone, ..) = text(&busbound(&["diagnose", &path, "--json"]).output().unwrap());
    assert_eq!(first["diagnosis"], serde_json::from_str::<Value>(&alone).unwrap());
    watching.put("2.json.gz", PINNED);
    let since = &watching.json()["since"];
    assert_eq!(since["change"]["outcome"], "faster");
    let prediction = &since["prediction"];
    assert_eq!((&prediction["fixed"][0], &prediction["inside"]), (&"pageable_copies".into(), &true.into()));
    let number = |name: &str| prediction[name].as_f64().unwrap();
    assert!(
        number("low_ms") <= number("measured_ms") && number("measured_ms") <= number("high_ms"),
        "{since}"
    );
    assert_eq!(watching.end(), (Vec::new(), Some(0)));
}

#[test]
fn a_partial_file_waits_until_it_is_complete() {
    let whole = fs::read(fixture(PAGEABLE)).unwrap();
    let watching = Watching::start("partial", &[], &["--json"]);
    let path = watching.directory.join("run.json.gz");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    // Longer than it takes to settle, shorter than what makes a file final.
    thread::sleep(Duration::from_millis(700));
    fs::write(&path, &whole).unwrap();
    let shown = watching.json();
    assert_eq!(shown["diagnosis"]["source"]["complete"], true, "{}", shown["diagnosis"]["source"]);
    assert_eq!(watching.end(), (Vec::new(), Some(0)));
}

#[test]
fn damaged_files_are_shown_as_far_as_they_are_readable_and_others_are_skipped() {
    let watching = Watching::start("damaged", &[], &["--json"]);
    fs::write(watching.directory.join("notes.json"), "nothing that a profiler wrote").unwrap();
    let skipped = watching.stderr.recv_timeout(LONG).unwrap();
    assert!(skipped.starts_with("busbound: skipped: ") && skipped.contains("notes.json"), "{skipped}");
    watching.put("cut.json.gz", "hostile/cut_in_gpu.json.gz");
    assert_eq!(watching.json()["diagnosis"]["source"]["complete"], false);
    // Files go, one comes back.
    fs::remove_file(watching.directory.join("notes.json")).unwrap();
    fs::remove_file(watching.directory.join("cut.json.gz")).unwrap();
    thread::sleep(Duration::from_millis(700));
    watching.put("cut.json.gz", PAGEABLE);
    assert_eq!(watching.json()["diagnosis"]["verdict"]["bound"], "transfer");
    assert_eq!(watching.end(), (Vec::new(), Some(0)));
}

#[test]
fn what_cannot_be_watched_is_said_at_once() {
    let usage = |args: &[&str], what: &str, wanted: i32| {
        let (stdout, stderr, code) = text(&busbound(args).output().unwrap());
        assert_eq!((stdout.as_str(), code), ("", Some(wanted)), "{stderr}");
        assert!(stderr.contains(what), "{stderr}");
    };
    usage(&["diagnose", "--watch", "nowhere"], "nowhere is not a directory", 3);
    usage(&["diagnose", "--watch", ".", "-o", "x.json"], "use > FILE instead of -o", 2);
    usage(&["diagnose", "--watch", ".", "--format", "html"], "--watch has no html", 2);
    usage(&["diagnose", "--watch", ".", "run.json"], "cannot be used with", 2);
    usage(&["diagnose", "--watch", ".", "--settle", "0"], "give seconds from 0.01 to 3600", 2);
}
