//! `busbound history`: real summaries, repeated over days, with a change that is known.

use crate::common;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

const HOUR_MS: i64 = 3_600_000;
/// 2026-11-01 00:00 UTC.
const START_MS: i64 = 1_793_491_200_000;

/// The summaries that the command writes for these ranks, as JSON.
fn summaries() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let done =
        common::busbound(&["summarize", &common::fixture("ranks"), "-o", &out, "-q"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let mut files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect()
}

/// Writes 40 recordings of each rank, one per hour; from recording 25 on, the copies of `slow` take 10 ms more.
fn write_history(folder: &Path, slow: &[u64]) {
    for (number, summary) in summaries().into_iter().enumerate() {
        let rank = summary["rank"]["rank"].as_u64().unwrap();
        for at in 0..40_i64 {
            let mut one = summary.clone();
            // Noise of about 1% that is the same every time.
            let noise = 1.0 + 0.01 * ((at * 7 + number as i64 * 3) % 5 - 2) as f64;
            let more = if slow.contains(&rank) && at >= 25 { 10.0 } else { 0.0 };
            let time = &mut one["time"];
            let ms = |value: &Value| value.as_f64().unwrap();
            time["compute_ms"] = json!(ms(&time["compute_ms"]) * noise);
            time["exposed_bus_copy_ms"] = json!(ms(&time["exposed_bus_copy_ms"]) + more);
            time["exposed_copy_ms"] = json!(ms(&time["exposed_copy_ms"]) + more);
            time["span_ms"] = json!(ms(&time["span_ms"]) * (1.0 + (noise - 1.0) * 0.3) + more);
            one["recorded_ms"] = json!(START_MS + at * HOUR_MS + number as i64);
            one["path"] = json!(format!("day{}/rank-{rank}.{at}.json", at / 24));
            fs::write(folder.join(format!("{number}-{at}.rank.json")), one.to_string()).unwrap();
        }
    }
}

fn history(folder: &Path, more: &[&str]) -> String {
    let path = folder.display().to_string();
    let (out, error, code) =
        common::text(&common::busbound(&[&["history", &path], more].concat()).output().unwrap());
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    out
}

#[test]
fn a_summary_says_when_its_trace_was_recorded() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    for summary in summaries() {
        // These traces have no date, so it is that of the file.
        let recorded = summary["recorded_ms"].as_i64().unwrap();
        assert!(recorded > 1_700_000_000_000 && recorded <= now, "{recorded}");
    }
}

#[test]
fn a_change_is_found_with_its_time_ranks_part_and_traces() {
    let folder = tempfile::tempdir().unwrap();
    write_history(folder.path(), &[1, 4]);
    let answer: Value = serde_json::from_str(&history(folder.path(), &["--format", "json"])).unwrap();
    assert_eq!(answer["schema"], "busbound.history/1");
    assert_eq!((&answer["jobs"][0]["ranks"], &answer["jobs"][0]["recordings"]), (&json!(6), &json!(240)));
    let changes = answer["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:#?}");
    let change = &changes[0];
    assert_eq!((&change["figure"], &change["ranks"]), (&json!("span_ms"), &json!(["rank 1", "rank 4"])));
    let at = |name: &str| (change[name].as_i64().unwrap() - START_MS) / HOUR_MS;
    assert_eq!((at("before_unix_ms"), at("after_unix_ms")), (24, 25));
    let (low, high) = (change["low_ms"].as_f64().unwrap(), change["high_ms"].as_f64().unwrap());
    assert!(low < 10.0 && high > 10.0 && high - low < 2.0, "{low} to {high}");
    assert_eq!(change["parts"][0]["figure"], "exposed_bus_copy_ms");
    assert!(change["trace_before"].as_str().unwrap().ends_with(".24.json"));
    assert!(change["trace_after"].as_str().unwrap().ends_with(".25.json"));

    for format in ["terminal", "markdown", "html"] {
        let text = history(folder.path(), &["--format", format]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("1 change of the step time in 240 recordings of 6 ranks"), "{text}");
        assert!(words.contains("2026-11-02 01:00: step "), "{text}");
    }
}

/// Its directories used to be read as if they were summaries.
#[test]
fn a_quoted_pattern_of_directories_is_one_job_each() {
    let folder = tempfile::tempdir().unwrap();
    for job in ["a", "b"] {
        fs::create_dir(folder.path().join(job)).unwrap();
        write_history(&folder.path().join(job), &[]);
    }
    let answer: Value =
        serde_json::from_str(&history(&folder.path().join("*"), &["--format", "json"])).unwrap();
    let names: Vec<&str> =
        answer["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect();
    let wanted = ["a", "b"].map(|job| folder.path().join(job).display().to_string());
    assert_eq!((names, &answer["unread"]), (wanted.iter().map(String::as_str).collect(), &json!([])));
}

#[test]
fn for_an_address_it_names_the_python_package() {
    let (_, error, code) =
        common::text(&common::busbound(&["history", "s3://bucket/summaries"]).output().unwrap());
    assert!(code == Some(2) && error.contains("s3://bucket/summaries is not a directory"), "{error}");
    assert!(error.contains("busbound.history of the Python package"), "{error}");
}

#[test]
fn without_a_change_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    write_history(folder.path(), &[]);
    let text = history(folder.path(), &[]);
    assert!(text.starts_with("No change of the step time in 240 recordings of 6 ranks."), "{text}");
}

#[test]
fn too_few_recordings_and_summaries_without_a_date_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut undated = summaries().remove(0);
    fs::write(folder.path().join("a.rank.json"), undated.to_string()).unwrap();
    undated["recorded_ms"] = Value::Null;
    undated["path"] = json!("other.json");
    fs::write(folder.path().join("b.rank.json"), undated.to_string()).unwrap();
    let text = history(folder.path(), &[]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("1 of 1 ranks have fewer than 10 recordings"), "{text}");
    assert!(words.contains("1 summaries do not say when they were recorded"), "{text}");
}

/// `record --every` deletes its recordings: the answer named them as if they were there.
#[test]
fn recordings_that_are_gone_are_not_offered_for_comparison() {
    let folder = tempfile::tempdir().unwrap();
    write_history(folder.path(), &[1]);
    let summaries = || fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    for path in summaries() {
        let mut summary: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let name = summary["path"].as_str().unwrap().replace("day", "window-").replace('/', "-");
        summary["path"] = json!(format!("gone/{}", name.replace("window-", "run.window-")));
        fs::write(&path, summary.to_string()).unwrap();
    }
    let said = |more: &[&str]| history(folder.path(), more).split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = ("run.window-1-rank-1.24.json", "run.window-1-rank-1.25.json");
    let expected = format!(
        "Not found, so nothing to compare: gone/{before} and gone/{after}. `record --every` keeps them with `--keep`."
    );
    assert!(said(&[]).contains(&expected), "{}", said(&[]));
    assert!(!said(&[]).contains("busbound compare"));
    // A ring that was dumped meanwhile, one that was dumped later, and the recordings next to the summaries.
    for (name, at) in [("node7.12.dump-1.bbt", 24), ("node7.12.dump-2.bbt", 30)] {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        let since = std::time::Duration::from_millis((START_MS + at * HOUR_MS + HOUR_MS / 2) as u64);
        file.set_modified(std::time::UNIX_EPOCH + since).unwrap();
    }
    for name in [before, after] {
        fs::write(folder.path().join(name), "{}").unwrap();
    }
    let json: Value = serde_json::from_str(&history(folder.path(), &["--format", "json"])).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let change = &json["changes"][0];
    assert_eq!(change["compare"], json!([at(before), at(after)]), "{json:#}");
    assert_eq!(change["dumps"], json!([at("node7.12.dump-1.bbt")]));
    let text = history(folder.path(), &["--format", "markdown"]);
    assert!(text.contains(&format!("busbound diagnose {}", at("node7.12.dump-1.bbt"))), "{text}");
}

/// "S1: 1 of 1 ranks" for the job s1.
#[test]
fn the_name_of_a_job_keeps_its_case() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("s1")).unwrap();
    let summary = summaries().remove(0);
    fs::write(folder.path().join("s1/a.rank.json"), summary.to_string()).unwrap();
    let done = common::busbound(&["history", "s1"]).current_dir(folder.path()).output().unwrap();
    let (text, _, code) = common::text(&done);
    assert!(code == Some(0) && text.contains("s1: 1 of 1 ranks have fewer"), "{text}");
}

/// Programs on a GPU that became slower by 7 to 15% at a time that they wrote down, and two that did not: fixtures/history/slower.py.
#[test]
fn real_programs_that_become_slower_are_found_within_two_windows() {
    let read = |name: &str| fs::read_to_string(common::fixture(&format!("history/{name}"))).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&read("changes.json")).unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let name = case["case"].as_str().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut recorded = Vec::new();
        for (number, line) in read(&format!("{name}.jsonl")).lines().enumerate() {
            fs::write(folder.path().join(format!("{number}.rank.json")), line).unwrap();
            let summary: Value = serde_json::from_str(line).unwrap();
            recorded.push(summary["recorded_ms"].as_i64().unwrap());
        }
        let found: Value = serde_json::from_str(&history(folder.path(), &["--format", "json"])).unwrap();
        let steps: Vec<&Value> =
            found["changes"].as_array().unwrap().iter().filter(|one| one["figure"] == "span_ms").collect();
        let (expected, changed_at) =
            (usize::from(case["has_change"] == true), case["changed_at"].as_f64().unwrap());
        assert_eq!(steps.len(), expected, "{name}: {found:#}");
        for change in steps {
            let after = change["after_unix_ms"].as_i64().unwrap();
            let window = |at: i64| recorded.iter().filter(|&&recording| recording < at).count();
            let apart = window(after).abs_diff(window((changed_at * 1e3) as i64));
            assert!(apart <= 2, "{name}: {apart} windows apart, {change:#}");
        }
    }
}
