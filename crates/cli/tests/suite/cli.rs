//! The real binary, as a person calls it.

use std::io::Write;
use std::process::Stdio;

use crate::common::{busbound, fixture, text};

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
fn a_directory_means_its_ranks_and_other_files_are_skipped() {
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
    assert!(err.starts_with("busbound: skipped: ") && err.contains("learning_rate"), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "busbound.surveys/2");
    let ranks: Vec<_> =
        json["runs"].as_array().unwrap().iter().map(|run| run["rank"]["rank"].as_u64()).collect();
    assert_eq!(ranks, [Some(2), Some(10)]);
}

#[test]
fn an_answer_in_a_file_has_no_colors_and_standard_output_stays_empty() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("answer.txt");
    let path = file.display().to_string();
    let (out, _, code) = text(&busbound(&["demo", "-o", &path]).output().unwrap());
    assert_eq!((out.as_str(), code), ("", Some(0)));
    let answer = std::fs::read_to_string(file).unwrap();
    assert!(
        answer.starts_with("Transfer-bound: 274 ms/step → 66.7–86.9 ms (3.2–4.1x) by pinning host buffers"),
        "{answer}"
    );
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
    assert!(out.starts_with("Partly read (memory limit): "), "{out}");
}

/// On a machine with a GPU this would measure; here only the error without one is tested.
#[test]
fn without_a_gpu_there_is_one_sentence_and_exit_code_4() {
    let directory = tempfile::tempdir().unwrap();
    // CUDA hides all GPUs then.
    let output = busbound(&["bench", "--suite", "latency"])
        .current_dir(&directory)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let (stdout, stderr, code) = text(&output);
    assert_eq!((stdout.as_str(), code), ("", Some(4)), "{stderr}");
    assert!(stderr.starts_with("busbound: ") && stderr.trim_end().lines().count() == 1, "{stderr}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "nothing is written");
}

#[test]
fn the_costs_of_recording_are_added_to_a_profile_that_exists() {
    let directory = tempfile::tempdir().unwrap();
    let raw = std::fs::read_to_string(fixture("machines/raw/h200-quick.json")).unwrap();
    let mut samples: serde_json::Value = serde_json::from_str(&raw).unwrap();
    let series = |off: u64, calls: u64, on: u64| serde_json::json!({"what": "kernel_launch", "before_ns": [off], "off_ns": [off], "calls_ns": [calls], "on_ns": [on]});
    samples["cases"] = serde_json::json!([{
        "suite": "profiler", "calls": 100, "repetitions": 1, "library": "libcupti.so.13",
        "loops": [series(200_000, 250_000, 350_000)],
    }]);
    std::fs::write(directory.path().join("samples.json"), samples.to_string()).unwrap();
    std::fs::copy(fixture("machines/h200.json"), directory.path().join("here.json")).unwrap();
    let run = |args: &[&str]| text(&busbound(args).current_dir(&directory).output().unwrap());
    let (stdout, stderr, code) = run(&["bench", "--from", "samples.json", "--save", "here.json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("1.50 µs  extra host time per recorded kernel launch"), "{stdout}");
    let profile = std::fs::read_to_string(directory.path().join("here.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&profile).unwrap();
    assert_eq!(profile["profiler"][0]["tool"], "busbound_record");
    assert_eq!(
        (&profile["profiler"][0]["call_us"], &profile["profiler"][0]["work_us"]),
        (&0.5.into(), &1.0.into())
    );
    assert!(profile["curves"].as_array().unwrap().len() > 1, "the rest of the profile stays");
    // Without a profile there is nothing to add to.
    assert_eq!(run(&["bench", "--from", "samples.json", "--save", "new.json"]).2, Some(3));
}

#[test]
fn saved_samples_are_evaluated_again_and_their_profile_works_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let raw = fixture("machines/raw/h200-quick.json");
    let run = |args: &[&str]| text(&busbound(args).current_dir(&directory).output().unwrap());
    let (stdout, stderr, code) = run(&["bench", "--from", &raw]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(stdout.starts_with("NVIDIA H200: pinned copies reach 55."), "{stdout}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "evaluating saved samples writes nothing");
    let (_, stderr, _) = run(&["bench", "--from", &raw, "--save", "here.json"]);
    assert_eq!(stderr, "busbound: wrote the machine profile to here.json; use it with --machine here.json\n");
    let trace = fixture("off_block_pinned_c4.json.gz");
    let (stdout, _, code) = run(&["diagnose", &trace, "--machine", "here.json", "--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["machine"]["gpus"][0]["link"]["source"], "measured");
    let (stdout, _, code) = run(&[
        "plan",
        "offload",
        "--layers",
        "12",
        "--bytes",
        "32MiB",
        "--compute",
        "0.6",
        "--link",
        "here.json",
    ]);
    assert!(code == Some(0) && stdout.contains("(measured)"), "{stdout}");
    let (stdout, _, _) = run(&["bench", "--from", &raw, "--nvbandwidth"]);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["nvbandwidth"]["testcases"][0]["name"], "host_to_device_memcpy_ce");
    for (args, code, words) in [
        (vec!["bench", "--from", &trace], 3, "is a profiler trace, not a file of samples"),
        (vec!["bench", "--from", "here.json"], 3, "is a machine profile, not a file of samples"),
        (vec!["bench", "--suite", "copies"], 2, "a similar value exists: 'copy'"),
        (vec!["bench", "--from", &raw, "--full"], 2, "cannot be used with"),
    ] {
        let (_, stderr, seen) = run(&args);
        assert!(seen == Some(code) && stderr.contains(words), "{args:?}: {seen:?} {stderr}");
    }
}

#[test]
fn the_demo_shows_the_same_answer_at_the_terminal_and_as_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| text(&busbound(args).current_dir(&directory).output().unwrap());
    let (stdout, ..) = run(&["demo"]);
    let verdict = stdout.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(verdict.starts_with("Transfer-bound: "), "{stdout}");
    assert_eq!(run(&["demo", "-o", "demo.html"]), (String::new(), String::new(), Some(0)));
    let page = std::fs::read_to_string(directory.path().join("demo.html")).unwrap();
    assert!(page.contains(&format!("<h1>{verdict}</h1>")), "{page:.2000}");
    assert_eq!(run(&["demo", "--format", "html"]), (page, String::new(), Some(0)));
    let (_, stderr, code) = run(&["demo", "-o", "no/such/place.html"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        stderr,
        "busbound: cannot write the answer: no/such/place.html does not exist: there is no directory no/such\n"
    );
}

#[test]
fn every_command_has_a_page() {
    let trace = fixture("launch_bound.json.gz");
    let other = fixture("graph_replay.json.gz");
    let smi = fixture("topology/nvidia-smi-eight-gpus.txt");
    let raw = fixture("machines/raw/h200-quick.json");
    for args in [
        vec!["survey", &trace],
        vec!["diagnose", &trace, &other],
        vec!["compare", &other, &trace],
        vec!["gate", &trace, "--require", "step_p50 < 1000"],
        vec!["whatif", &trace],
        vec!["topo", "--from-smi", &smi],
        vec!["bench", "--from", &raw],
        vec!["plan", "allreduce", "--params", "7e9", "--dtype", "fp16", "--ranks", "8", "--link", "32"],
    ] {
        let mut args = args;
        args.extend(["--format", "html"]);
        let (stdout, stderr, code) = text(&busbound(&args).output().unwrap());
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "{args:?}");
        assert!(stdout.starts_with("<!DOCTYPE html>") && stdout.ends_with("</html>\n"), "{args:?}");
        assert!(stdout.contains("<article class=\"run"), "{args:?}");
    }
}

#[test]
fn export_writes_a_file_that_is_read_as_the_same_run() {
    let directory = tempfile::tempdir().unwrap();
    let trace = fixture("swap_duplex.json.gz");
    let run = |args: &[&str]| text(&busbound(args).current_dir(&directory).output().unwrap());
    let (stdout, stderr, code) = run(&["export", &trace, "--to", "perfetto"]);
    assert_eq!((stdout.as_str(), code), ("", Some(0)));
    assert_eq!(stderr, "busbound: wrote swap_duplex.perfetto.json.gz; open it in ui.perfetto.dev\n");
    let first = |args: &[&str]| run(args).0.lines().next().unwrap().to_owned();
    assert_eq!(first(&["diagnose", "swap_duplex.perfetto.json.gz"]), first(&["diagnose", &trace]));
    assert_eq!(run(&["export", &trace, "--to", "perfetto", "-o", "plain.json", "--quiet"]).1, "");
    assert!(std::fs::read_to_string(directory.path().join("plain.json")).unwrap().starts_with('{'));
    let (_, stderr, code) = run(&["export", "no-such.json", "--to", "perfetto"]);
    assert!(code == Some(3) && stderr.contains("no-such.json"), "{stderr}");
    let (_, stderr, code) = run(&["export", ".", "--to", "perfetto"]);
    assert!(code == Some(2) && stderr.contains("is a directory"), "{stderr}");
}

/// One file for trace viewers has every copy and kernel twice: recorded and predicted.
#[test]
fn whatif_writes_both_timelines() {
    let directory = tempfile::tempdir().unwrap();
    let trace = fixture("off_block_pageable_c4.json.gz");
    let args =
        ["whatif", &trace, "--apply", "pin", "--apply", "prefetch=1", "--timeline", "both.json", "--json"];
    let (stdout, stderr, code) = text(&busbound(&args).current_dir(&directory).output().unwrap());
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["scenarios"][0]["apply"], serde_json::json!(["pin", "prefetch=1"]));
    let written = std::fs::read_to_string(directory.path().join("both.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let named = |name: &str| {
        let process = events.iter().find(|event| {
            event["name"] == "process_name" && event["args"]["name"].as_str().unwrap().starts_with(name)
        });
        process.unwrap()["pid"].as_i64().unwrap()
    };
    let predicted = named("busbound: Predicted with pin + prefetch=1");
    let work = |of: &dyn Fn(&serde_json::Value) -> bool| -> Vec<(String, f64)> {
        let work = events.iter().filter(|event| event["ph"] == "X" && of(event));
        work.map(|event| {
            let end = event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
            (event["name"].as_str().unwrap().to_owned(), end)
        })
        .collect()
    };
    let measured =
        work(&|event| matches!(event["cat"].as_str(), Some("kernel" | "gpu_memcpy" | "gpu_memset")));
    let would_be = work(&|event| event["pid"] == predicted);
    assert!(
        would_be.len() > 100 && would_be.len() <= measured.len(),
        "{} of {}",
        would_be.len(),
        measured.len()
    );
    let begin = work(&|event| event["name"] == "step").first().map(|(_, end)| *end).unwrap();
    let end = |work: &[(String, f64)]| work.iter().map(|(_, end)| *end).fold(0.0, f64::max) - begin;
    assert!(end(&would_be) < 0.4 * end(&measured), "{} and {}", end(&would_be), end(&measured));
    let args = ["whatif", &trace, "--apply", "pin", "--timeline", "both.html"];
    assert_eq!(text(&busbound(&args).current_dir(&directory).output().unwrap()).2, Some(0));
    let page = std::fs::read_to_string(directory.path().join("both.html")).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("<h1><code>pin</code> gives"),
        "{page:.2000}"
    );
    for (args, code, words) in [
        (vec!["whatif", &trace, "--apply", "pinned"], 2, "did you mean pin?"),
        (vec!["whatif", "no-such.json"], 3, "no-such.json"),
    ] {
        let (_, stderr, seen) = text(&busbound(&args).output().unwrap());
        assert!(seen == Some(code) && stderr.contains(words), "{args:?}: {seen:?} {stderr}");
    }
}

/// Without CUDA there is nothing to record; the program runs as it would without busbound.
#[test]
fn record_passes_output_exit_codes_and_signals_through() {
    let directory = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = busbound(args);
        text(&command.current_dir(&directory).env("XDG_CACHE_HOME", directory.path()).output().unwrap())
    };
    let (stdout, stderr, code) = run(&["record", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((stdout.as_str(), code), ("out\n", Some(7)));
    assert!(stderr.starts_with("err\n") && stderr.contains("nothing was recorded"), "{stderr}");
    let (_, stderr, code) = run(&["record", "--quiet", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((stderr.as_str(), code), ("", Some(137)));
    // A signal to busbound reaches the program.
    let script = "trap 'echo stopped; exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.05; done";
    let (stdout, _, code) = run(&["record", "--quiet", "--", "sh", "-c", script]);
    assert_eq!((stdout.as_str(), code), ("stopped\n", Some(5)));
    // The library can be read by this user only.
    let script = "ls -l \"$CUDA_INJECTION64_PATH\" | cut -c1-10; echo \"$BUSBOUND_RECORD_TO $BUSBOUND_RECORD_DURATION\"";
    let args = ["record", "--quiet", "-o", "x.bbt", "--duration", "2.5", "--", "sh", "-c", script];
    let (stdout, ..) = run(&args);
    let to = directory.path().canonicalize().unwrap().join("x.bbt");
    assert_eq!(stdout, format!("-rwx------\n{} 2.5\n", to.display()));
    std::fs::write(directory.path().join("run.bbt"), "mine").unwrap();
    let (_, stderr, code) = run(&["record", "--", "true"]);
    assert!(code == Some(2) && stderr.contains("exists already"), "{stderr}");
    let (_, stderr, code) = run(&["record", "--force", "--", "no-such-program"]);
    assert!(code == Some(3) && stderr.contains("no-such-program"), "{code:?} {stderr}");
}

#[test]
fn export_writes_tables_into_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let trace = fixture("off_block_pinned_c4.json.gz");
    let run = |args: &[&str]| text(&busbound(args).current_dir(&directory).output().unwrap());
    let said = "busbound: wrote events, copies, collectives, gaps and steps as Parquet to off_block_pinned_c4.tables\n";
    assert_eq!(run(&["export", &trace, "--to", "parquet"]), (String::new(), said.to_owned(), Some(0)));
    for table in ["events", "copies", "collectives", "gaps", "steps"] {
        let path = directory.path().join("off_block_pinned_c4.tables").join(format!("{table}.parquet"));
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
    }
    // A file is in the way.
    std::fs::write(directory.path().join("taken"), "").unwrap();
    let (_, stderr, code) = run(&["export", &trace, "--to", "parquet", "-o", "taken"]);
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("busbound: cannot write the answer: taken: "), "{stderr}");
}
