//! Real jobs whose processes meet on the host: a change on one rank, copies at the same time, and dumps beside a trace.

use std::fs;

use serde_json::Value;

use crate::common::{busbound, fixture, text};
use crate::made::MadeRank;
use crate::ranks::run;

/// The step of the job and its first scenario, for a change on rank 1 of a recorded job.
fn changed(job: &str, rank: &str, apply: &str) -> (f64, Value) {
    let args =
        ["whatif", &fixture(&format!("collectives/{job}")), "--rank", rank, "--apply", apply, "--json"];
    let (stdout, stderr, code) = text(&busbound(&args).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    (answer["baseline_ms"].as_f64().unwrap(), answer["scenarios"][0].clone())
}

/// Two real processes that reduce with gloo on the CPU: rank 1 waits 120 ms for each batch. Measured with the delay 388 to 397 ms, without it 257 to
/// 276 ms, median 263 (`input_30ms` of the run `long`). Worker processes leave a few percent of the delay.
#[test]
fn loading_in_workers_on_the_late_rank_gives_the_step_of_a_real_job_on_the_host() {
    let (now, workers) = changed("on_cpu", "1", "workers=4");
    assert!((now / 390.0 - 1.0).abs() < 0.02, "{now}");
    let (step, low) = (workers["step_ms"].as_f64().unwrap(), workers["low_ms"].as_f64().unwrap());
    assert!((step / 263.2 - 1.0).abs() < 0.07 && low < 263.2, "{workers}");
    let (now, of_other) = changed("on_cpu", "0", "workers=4");
    assert!((of_other["step_ms"].as_f64().unwrap() / now - 1.0).abs() < 0.01, "{of_other}");
}

/// Two real processes, rank 1 of which waits 160 ms for its input, with DistributedDataParallel and with asynchronous collectives: with workers the
/// step was 329.6 and 328.2 ms (medians of fixtures/collectives/changed/results.json). Of the first, waits once counted as work; of the
/// second, they counted twice.
#[test]
fn waits_for_collectives_of_the_host_are_found_in_real_programs() {
    for (job, recorded, measured) in [("changed/ddp", 487.8, 329.6), ("changed/async", 490.0, 328.2)] {
        let (now, workers) = changed(job, "1", "workers=1");
        assert!((now / recorded - 1.0).abs() < 0.05, "{job}: {now}");
        assert!((workers["step_ms"].as_f64().unwrap() / measured - 1.0).abs() < 0.05, "{job}: {workers}");
    }
}

/// Three real processes on one GPU that reduce with gloo: without recording, a step took 26.9 to 27.3 ms.
#[test]
fn ranks_on_a_gpu_that_meet_on_the_host_are_replayed_together() {
    let (now, nosync) = changed("delayed", "0", "nosync");
    assert!((now / 27.0 - 1.0).abs() < 0.05, "{now}");
    assert!((nosync["step_ms"].as_f64().unwrap() / now - 1.0).abs() < 0.01, "{nosync}");
}

/// Three real processes on one GPU, whose copies of 0.1 ms are shorter than the error of their clocks (0.3 ms): in no format is it said how long they
/// copy at once.
#[test]
fn merged_ranks_say_how_long_they_share_an_uplink_or_why_that_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let tree = fs::read_to_string(fixture("topology/one_switch4.tree")).unwrap();
    let entries = tree.lines().filter(|line| !line.starts_with('#'));
    for (path, content) in entries.filter_map(|line| line.split_once(' ')) {
        let path = folder.path().join("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let (topology, ..) = run(folder.path(), &["topo", "--root", "root", "--format", "json"]);
    let mut topology: Value = serde_json::from_str(&topology).unwrap();
    for rank in 0..4 {
        topology["gpus"][rank]["rank"] = rank.into();
    }
    fs::write(folder.path().join("topo.json"), topology.to_string()).unwrap();
    for rank in 0..3 {
        let trace = fixture(&format!("collectives/delayed/rank-{rank}.json.gz"));
        let (_, stderr, code) = run(folder.path(), &["summarize", &trace, "-o", "ranks"]);
        assert_eq!(code, Some(0), "{stderr}");
    }
    let merged = |format: &str| {
        let args = ["merge", "ranks", "--topology", "topo.json", "--quiet", "--format", format];
        let (stdout, stderr, code) = run(folder.path(), &args);
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    };
    for format in ["terminal", "markdown", "json"] {
        let words = merged(format).split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = "How long H2D copies of two or more of them run at the same time is inconclusive: by the error of their clocks 0 ";
        assert!(words.contains(wanted), "{format}: {words}");
    }
    let answer: Value = serde_json::from_str(&merged("json")).unwrap();
    let copies = &answer["uplinks"][0]["at_once"][0];
    assert_eq!((&copies["what"], &copies["decided"]), (&"h2d_copies".into(), &false.into()), "{copies}");
    assert!(copies["high_ms"].as_f64().unwrap() < copies["any_ms"].as_f64().unwrap(), "{copies}");
}

/// A dump was read only alone, not beside a trace of the run.
#[test]
fn dumps_of_the_flight_recorder_are_read_beside_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    // Its collectives have no sizes.
    fs::write(folder.path().join("rank-2.json"), MadeRank::usual(2, 4).trace()).unwrap();
    let dumps = fixture("flight");
    let words = |args: &[&str]| {
        let (stdout, stderr, code) = run(folder.path(), &[args, &["--flight-recorder", &dumps]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for command in ["survey", "diagnose"] {
        let found = words(&[command, "rank-2.json", "-v"]);
        assert!(found.contains("Rank 2 issued 5 collectives of default_pg (0), others 7"), "{found}");
        assert!(found.contains("had not ended (rank "), "{found}");
        let is_sized = found.contains("The trace has no sizes of collectives") && found.contains("26.2 MB");
        assert_eq!(is_sized, command == "diagnose", "{found}");
    }
    let found = words(&["diagnose", "rank-2.json", "--json"]);
    assert!(found.contains(r#""id": "flight_recorder""#), "{found}");
    let (_, stderr, code) =
        run(folder.path(), &["diagnose", "rank-2.json", "--flight-recorder", "rank-2.json"]);
    assert_eq!(code, Some(3));
    assert!(stderr.contains("is a profiler trace, not a dump of PyTorch's flight recorder"), "{stderr}");
}

/// Two real processes on one GPU; rank 1 is late in ten ways that were written down before, five of them copies from pageable memory
/// (fixtures/collectives/delayed_on_gpu.py). Measured without the profiler: as it is, on time, and with pinned memory.
#[test]
fn jobs_that_wait_for_pageable_copies_are_predicted_as_they_were_measured() {
    let file = fs::read_to_string(fixture("collectives/on_gpu/results.json")).unwrap();
    let results: Value = serde_json::from_str(&file).unwrap();
    let median = |times: &Value| {
        let mut times: Vec<f64> =
            times.as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2].midpoint(times[(times.len() - 1) / 2])
    };
    let cases = results["results"].as_object().unwrap();
    assert_eq!(cases.len(), 10);
    for (name, measured) in cases {
        let folder = fixture(&format!("collectives/on_gpu/{name}"));
        let (answer, ..) =
            text(&busbound(&["diagnose", &folder, "--format", "json", "-q"]).output().unwrap());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let on_time =
            answer["fleet"]["job"].as_array().unwrap().iter().find(|one| one["cause"].is_null()).unwrap();
        assert_eq!(on_time["rank"], "rank 1", "{name}");
        let error = on_time["step_ms"].as_f64().unwrap() / median(&measured["on_time_ms"]) - 1.0;
        assert!(error.abs() < 0.05, "{name}: {error}");
        if measured["pinned_ms"].is_array() {
            let (_, pinned) = changed(&format!("on_gpu/{name}"), "1", "pin");
            let error = pinned["step_ms"].as_f64().unwrap() / median(&measured["pinned_ms"]) - 1.0;
            assert!(error.abs() < 0.05, "{name}, pinned: {error}");
        }
    }
}

/// Rank 0 is the last at four collectives by 0.2 to 0.4 ms of a step of 115 ms: the page called it late, too.
#[test]
fn only_ranks_that_the_others_wait_for_are_marked_late_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let args =
        ["diagnose", &fixture("collectives/on_gpu/pageable_320mb"), "-q", "-o", &page.display().to_string()];
    assert!(busbound(&args).output().unwrap().status.success());
    assert_eq!(fs::read_to_string(&page).unwrap().matches(">late<").count(), 1);
}
