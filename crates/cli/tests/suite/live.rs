//! `busbound top --summaries`: the verdicts of running jobs, from summaries that the real commands write.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::common::{Running, busbound, fixture, text};

/// A directory of summaries, and one real summary of each of two programs.
struct Job {
    folder: tempfile::TempDir,
    fast: Value,
    slow: Value,
}

impl Job {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let summary = |trace: &str| -> Value {
            let made = tempfile::tempdir().unwrap();
            let mut command = busbound(&["summarize", "--quiet", &fixture(trace), "-o"]);
            let (_, stderr, code) = text(&command.arg(made.path()).output().unwrap());
            assert_eq!((stderr.as_str(), code), ("", Some(0)));
            let file = std::fs::read_dir(made.path()).unwrap().next().unwrap().unwrap().path();
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
        };
        Self { folder, fast: summary("train_pageable.json.gz"), slow: summary("train_pinned.json.gz") }
    }

    fn path(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// A window of a rank that was recorded this long ago, with one every ten minutes.
    fn add(&self, summary: &Value, name: &str, rank: Option<u32>, ago_s: i64) -> PathBuf {
        let mut summary = summary.clone();
        summary["recorded_ms"] = (now_ms() - ago_s * 1000).into();
        summary["every_ms"] = 600_000.into();
        summary["rank"] = rank.map_or(
            Value::Null,
            |rank| json!({"rank": rank, "world_size": 2, "backend": null, "origin": "file_name"}),
        );
        let path = self.folder.path().join(format!("{name}.rank.json"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, summary.to_string()).unwrap();
        path
    }

    fn top(&self, args: &[&str]) -> (String, String, Option<i32>) {
        let path = self.path();
        let args = [&["top", "--summaries", path.as_str(), "--interval", "0.1"], args].concat();
        text(&busbound(&args).output().unwrap())
    }

    fn windows(&self) -> Vec<Value> {
        let (stdout, stderr, code) = self.top(&["--json", "--once"]);
        assert_eq!(code, Some(0), "{stderr}");
        let snapshot: Value = serde_json::from_str(&stdout).unwrap();
        snapshot["windows"].as_array().cloned().unwrap_or_default()
    }
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_last_window_is_shown_with_its_phases_and_the_change_since_an_hour_before() {
    let job = Job::new();
    // The one nearest to an hour before the last one counts, not the oldest.
    job.add(&job.slow, "a", Some(0), 7200);
    job.add(&job.fast, "b", Some(0), 3790);
    job.add(&job.slow, "c", Some(0), 800);
    job.add(&job.slow, "d", Some(0), 200);
    let windows = job.windows();
    assert_eq!(windows.len(), 1);
    let last = &windows[0];
    assert_eq!((&last["rank"], &last["run"], &last["is_stale"]), (&0.into(), &"".into(), &false.into()));
    assert_eq!(last["verdict"], job.slow["verdict"]["bound"]);
    assert_ne!(job.slow["verdict"]["bound"], job.fast["verdict"]["bound"]);
    assert!((200.0..260.0).contains(&last["age_s"].as_f64().unwrap()), "{last}");
    assert_eq!(last["steps"], json!({"count": job.slow["steps"]["count"], "found": "annotation"}));
    // The same figures under the same names.
    let (step, then) = (&job.slow["time"]["span_ms"], &job.fast["time"]["span_ms"]);
    assert_eq!(last["figures"]["span_ms"], *step);
    assert_eq!(last["figures"]["exposed_bus_copy_ms"], job.slow["time"]["exposed_bus_copy_ms"]);
    let shares: f64 = last["phases"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{last}");
    let change = &last["change"];
    assert_eq!((&change["span_ms"], &change["verdict"]), (then, &job.fast["verdict"]["bound"]));
    assert!((change["before_s"].as_f64().unwrap() - 3590.0).abs() < 1.0, "{change}");
    let ratio = step.as_f64().unwrap() / then.as_f64().unwrap() - 1.0;
    assert!((change["span_change"].as_f64().unwrap() - ratio).abs() < 1e-12, "{change}");

    let table = words(&job.top(&["--once"]).0);
    let bound = "rank 0 Input-bound, step 300 ms (1 step, marked by the program); recorded 3 min ago";
    assert!(table.contains(bound), "{table}");
    assert!(table.contains("input 65%, host 23%, compute 8%, transfer 4%"), "{table}");
    let changed = "step 119% longer than 60 min before, when it was mixed (then 137 ms)";
    assert!(table.contains(changed), "{table}");
    let markdown = job.top(&["--format", "markdown"]).0;
    assert!(markdown.contains("- rank 0: Input-bound, step 300 ms"), "{markdown}");
}

#[test]
fn a_series_younger_than_an_hour_is_compared_with_its_oldest_window() {
    let job = Job::new();
    job.add(&job.fast, "a", Some(3), 1500);
    let alone = job.windows();
    assert_eq!(alone[0]["change"], Value::Null);
    assert!(words(&job.top(&["--once"]).0).contains("no earlier window to compare with"));
    job.add(&job.fast, "b", Some(3), 300);
    job.add(&job.fast, "c", Some(3), 900);
    let window = &job.windows()[0];
    assert_eq!(window["change"]["span_change"], 0.0);
    assert!((window["change"]["before_s"].as_f64().unwrap() - 1200.0).abs() < 1.0, "{window}");
    assert!(words(&job.top(&["--once"]).0).contains("step as long as 20 min before"));
}

#[test]
fn without_new_windows_a_rank_is_stale_and_after_a_day_it_has_ended() {
    let job = Job::new();
    job.add(&job.fast, "fresh", Some(0), 1100);
    job.add(&job.fast, "stale", Some(1), 1300);
    job.add(&job.fast, "ended", Some(2), 25 * 3600);
    let windows = job.windows();
    let stale: Vec<_> = windows.iter().map(|window| (&window["rank"], &window["is_stale"])).collect();
    assert_eq!(stale, [(&0.into(), &false.into()), (&1.into(), &true.into())]);
    let table = words(&job.top(&["--once"]).0);
    assert!(table.contains("Last windows: 1 rank mixed; 1 stale."), "{table}");
    assert!(
        table.contains("stale: recorded 22 min ago, although there is one window every 10 min"),
        "{table}"
    );
}

/// Clocks that are set back made a window the last one until the clock was there again.
#[test]
fn a_window_from_the_future_is_called_that_and_hides_no_other_one() {
    let job = Job::new();
    job.add(&job.slow, "ahead", Some(0), -3600);
    let window = &job.windows()[0];
    assert_eq!(window["age_s"], Value::Null);
    assert!((3540.0..=3600.0).contains(&window["ahead_s"].as_f64().unwrap()), "{window}");
    let table = words(&job.top(&["--once"]).0);
    assert!(table.contains("in the future: check the clocks") && !table.contains(" ago"), "{table}");
    job.add(&job.fast, "now", Some(0), 5);
    let window = &job.windows()[0];
    assert_eq!((&window["verdict"], &window["change"]), (&job.fast["verdict"]["bound"], &Value::Null));
    assert!(window["age_s"].as_f64().unwrap() < 60.0 && window.get("ahead_s").is_none(), "{window}");
}

#[test]
fn damaged_and_other_files_cost_one_line_each_and_nothing_else() {
    let job = Job::new();
    job.add(&job.fast, "good", Some(0), 60);
    let whole = std::fs::read(job.add(&job.fast, "torn", Some(1), 60)).unwrap();
    let place = |name: &str| job.folder.path().join(format!("{name}.rank.json"));
    std::fs::write(place("torn"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(place("empty"), "").unwrap();
    std::fs::write(place("binary"), [0xff, 0xfe, 0]).unwrap();
    std::fs::write(place("other"), "{\"schema\": \"busbound.rank/9\"}").unwrap();
    let mut undated: Value = serde_json::from_slice(&whole).unwrap();
    undated["recorded_ms"] = Value::Null;
    std::fs::write(place("undated"), undated.to_string()).unwrap();
    std::fs::create_dir(place("folder")).unwrap();
    std::fs::write(job.folder.path().join("notes.txt"), "not a summary").unwrap();
    let (stdout, stderr, code) = job.top(&["--json", "--once"]);
    assert_eq!(code, Some(0));
    let snapshot: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(snapshot["windows"].as_array().unwrap().len(), 1, "{stdout}");
    for name in ["torn", "empty", "binary", "other", "undated"] {
        let about = stderr.lines().filter(|line| line.contains(&format!("{name}.rank.json")));
        assert_eq!(about.count(), 1, "{name}: {stderr}");
    }
    assert_eq!(stderr.matches("busbound: skipped: ").count(), 5, "{stderr}");
    // A directory that does not exist yet.
    let args = ["top", "--count", "1", "--interval", "0.1", "--summaries", "no-such-folder"];
    let (_, stderr, code) = text(&busbound(&args).output().unwrap());
    assert_eq!(code, Some(0));
    assert_eq!(stderr.matches("no-such-folder").count(), 2, "{stderr}");
}

#[test]
fn new_windows_appear_while_it_runs_and_metrics_have_the_names_of_the_catalog() {
    let job = Job::new();
    job.add(&job.fast, "job7/a", Some(0), 3700);
    let own = job.add(&job.slow, "b", None, 100);
    let mut summary: Value = serde_json::from_slice(&std::fs::read(&own).unwrap()).unwrap();
    summary["path"] = "/home/me/summaries/secrethost-1.2.window-7.bbt".into();
    std::fs::write(&own, summary.to_string()).unwrap();
    let args = ["top", "--summaries", &job.path(), "--interval", "0.1", "--prometheus", "127.0.0.1:0"];
    let mut child = Running(busbound(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let metrics = child.metrics();
    let stale = "busbound_window_stale{run=\"job7\",rank=\"0\"}";
    let before = metrics.until(|text| text.contains(&format!("{stale} 1")));
    assert!(!before.contains("busbound_span_seconds{run=\"job7\""), "{before}");
    assert!(before.contains("busbound_verdict{run=\"\",rank=\"process 1\",verdict=\"input\"} 1"), "{before}");
    assert!(!before.contains("secrethost") && !before.contains("/home/me"), "{before}");
    job.add(&job.slow, "job7/b", Some(0), 1);
    let after = metrics.until(|text| text.contains(&format!("{stale} 0")));
    let value = |name: &str| -> f64 {
        let line =
            after.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {after}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let ms = |name: &str| job.slow["time"][name].as_f64().unwrap();
    let of = "{run=\"job7\",rank=\"0\",per=\"step\"}";
    assert!((value(&format!("busbound_span_seconds{of}")) * 1e3 - ms("span_ms")).abs() < 1e-9);
    assert!(
        (value(&format!("busbound_exposed_bus_copy_seconds{of}")) * 1e3 - ms("exposed_bus_copy_ms")).abs()
            < 1e-9
    );
    assert!((value("busbound_span_change_ratio{run=\"job7\",rank=\"0\"}") - 1.19).abs() < 0.01);
    assert_eq!(value("busbound_verdict_changed{run=\"job7\",rank=\"0\"}"), 1.0);
    assert!((value("busbound_phase_ratio{run=\"job7\",rank=\"0\",phase=\"input\"}") - 0.647).abs() < 0.001);
}

#[test]
fn thousands_of_ranks_are_all_in_the_json_and_some_in_the_table() {
    let job = Job::new();
    let whole = std::fs::read(job.add(&job.fast, "r0", Some(0), 60)).unwrap();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    for rank in 1..3000_u32 {
        let mut one = whole.clone();
        one["rank"]["rank"] = rank.into();
        std::fs::write(job.folder.path().join(format!("r{rank}.rank.json")), one.to_string()).unwrap();
    }
    let (stdout, _, code) = job.top(&["--json", "--count", "5"]);
    assert_eq!((stdout.lines().count(), code), (5, Some(0)));
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["windows"].as_array().unwrap().len(), 3000);
    let table = job.top(&["--once"]).0;
    assert!(table.lines().count() < 250 && table.contains("2968 more ranks"), "{}", table.lines().count());
}

/// Two windows of a process without a rank were two ranks, and nothing was compared.
#[test]
fn windows_of_a_process_without_a_rank_are_one_series() {
    let job = Job::new();
    for (name, ago) in [("a", 1000), ("b", 400)] {
        let path = job.add(&job.fast, name, None, ago);
        let mut summary: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        summary["path"] = format!("summaries/node7-1.2.window-{name}.bbt").into();
        std::fs::write(&path, summary.to_string()).unwrap();
    }
    let windows = job.windows();
    assert_eq!(windows.len(), 1);
    assert_eq!(windows[0]["process"], json!({"name": "node7-1.2", "number": 1}));
    assert_eq!(windows[0]["change"]["span_change"], 0.0);
    let (history, ..) = text(&busbound(&["history", "--json", &job.path()]).output().unwrap());
    let history: Value = serde_json::from_str(&history).unwrap();
    assert_eq!((&history["jobs"][0]["ranks"], &history["jobs"][0]["recordings"]), (&1.into(), &2.into()));
}
