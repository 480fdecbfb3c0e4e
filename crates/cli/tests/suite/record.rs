//! `busbound record --ring`, `--standby`, `--every` and `--pid` with a program on a fake CUPTI.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::{busbound, fixture, text};

/// The fake CUPTI and the program, built once.
fn parts() -> &'static Path {
    static PARTS: OnceLock<PathBuf> = OnceLock::new();
    PARTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record");
        std::fs::create_dir_all(&folder).unwrap();
        let sources = PathBuf::from(fixture("../crates/capture/tests/common"));
        let built = |words: &[&str], name: &str, source: &str| {
            let mut cc = Command::new("cc");
            cc.args(words).arg("-o").arg(folder.join(name)).arg(sources.join(source)).arg("-ldl");
            assert!(cc.status().unwrap().success());
        };
        built(&["-shared", "-fPIC"], "libcupti.so.13", "cupti.c");
        built(&[], "program", "program.c");
        folder
    })
}

/// A directory for the files of one test, which is also that of the sockets.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// busbound with this shell script as its program; `$program` loads the library like the CUDA driver does.
    fn record(&self, args: &[&str], script: &str) -> Command {
        let mut command = busbound(&["record"]);
        command.args(args).args(["--", "sh", "-c"]);
        command
            .arg(format!("program='{} '$CUDA_INJECTION64_PATH; {script}", parts().join("program").display()));
        self.prepare(&mut command);
        command.env("LD_LIBRARY_PATH", parts()).env("RATE", "1000").env_remove("CUDA_HOME");
        command
    }

    fn prepare(&self, command: &mut Command) {
        let folder = self.0.path();
        command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env("XDG_CACHE_HOME", folder);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    fn busbound(&self, args: &[&str]) -> (String, String, Option<i32>) {
        let mut command = busbound(args);
        self.prepare(&mut command);
        text(&command.output().unwrap())
    }

    fn ask(&self, process: u32, words: &[&str]) -> (String, String, Option<i32>) {
        let process = process.to_string();
        self.busbound(&[&["record", "--pid", process.as_str()], words].concat())
    }

    fn named(&self, part: &str) -> Vec<String> {
        let names = std::fs::read_dir(self.0.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.contains(part)).collect();
        names.sort();
        names
    }

    fn until(&self, what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it takes too long: {:?}", self.named(""));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn until_it_uses_cuda(&self) {
        let sockets = self.0.path().join(format!("busbound-{}", rustix::process::getuid().as_raw()));
        let is_there = || {
            std::fs::read_dir(&sockets).is_ok_and(|all| {
                all.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".sock"))
            })
        };
        self.until(is_there);
    }
}

fn end(child: Child) -> (String, String, Option<i32>) {
    text(&child.wait_with_output().unwrap())
}

#[test]
fn a_ring_is_dumped_on_request_and_diagnosed() {
    let place = Place::new();
    let child = place.record(&["--ring", "60s"], "$program run 4").spawn().unwrap();
    place.until_it_uses_cuda();
    std::thread::sleep(Duration::from_millis(1500));
    let (stdout, stderr, code) = place.ask(child.id(), &["--dump"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(stdout.contains(": wrote ") && stdout.ends_with(".dump-1.bbt\n"), "{stdout}");
    let (stdout, stderr, code) = end(child);
    assert_eq!((stdout.as_str(), code), ("done\n", Some(3)));
    assert!(stderr.starts_with("busbound: wrote 2 recordings; next: busbound run."), "{stderr}");
    let dumps = place.named(".dump-");
    assert_eq!(dumps.len(), 2);
    let (survey, stderr, code) = place.busbound(&["survey", &dumps[0]]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(survey.contains("Dumped because it was asked for; it has the last "), "{survey}");
    let (json, _, code) = place.busbound(&["diagnose", &dumps[0], "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["source"]["lost"].as_array().map(Vec::len)), (Some(0), Some(0)));
}

/// Two processes whose PyTorch differs: each has loaded a library that is where PyTorch's are, next to the file with the version.
#[test]
fn a_recording_has_the_version_of_pytorch() {
    let place = Place::new();
    let mut said = String::new();
    for (rank, version) in [("0", "2.11.0+cu130"), ("1", "2.10.0")] {
        let package = place.0.path().join(format!("env {rank}/torch"));
        std::fs::create_dir_all(package.join("lib")).unwrap();
        let text = format!("from typing import Optional\n\n__version__ = '{version}'\ndebug = False\n");
        std::fs::write(package.join("version.py"), text).unwrap();
        let library = package.join("lib/libc10.so");
        let built = Command::new("cc").args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(&library).status();
        assert!(built.unwrap().success());
        // The loader separates its list by spaces, too.
        std::os::unix::fs::symlink(&package, place.0.path().join(format!("torch{rank}"))).unwrap();
        let script =
            format!("RANK={rank} WORLD_SIZE=2 LD_PRELOAD=$PWD/torch{rank}/lib/libc10.so $program run 1");
        let (_, stderr, _) = end(place.record(&["-o", &format!("rank{rank}.bbt")], &script).spawn().unwrap());
        assert!(stderr.contains(&format!("rank{rank}")), "{stderr}");
        said.push_str(&stderr);
    }
    let (stdout, stderr, code) = place.busbound(&["diagnose", "rank0.bbt", "rank1.bbt", "-v"]);
    assert_eq!(code, Some(0), "{stderr}");
    let shown = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("rank 1: torch=2.10.0, rank 0 2.11.0+cu130"), "{stdout}\n{stderr}\n{said}");
}

/// With sampled kernels, idle time is not visible: there must be no verdict about it.
#[test]
fn sampled_kernels_make_the_answer_inconclusive() {
    let place = Place::new();
    let ended =
        place.record(&["--ring", "60s", "--quiet"], "$program run 3").env("RATE", "9000").output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    let dumps = place.named(".dump-");
    let (json, _, code) = place.busbound(&["diagnose", &dumps[0], "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["verdict"]["bound"].as_str()), (Some(0), Some("unknown")));
    let because = json["verdict"]["because"].as_str().unwrap();
    assert!(
        because.contains("ernels were recorded for ") && because.contains("% of the time only"),
        "{because}"
    );
}

#[test]
fn recording_starts_and_stops_in_processes_on_standby() {
    let place = Place::new();
    let child = place.record(&["--standby"], "$program run 4 & $program run 4; wait").spawn().unwrap();
    place.until_it_uses_cuda();
    std::thread::sleep(Duration::from_millis(300));
    let (stdout, stderr, code) = place.ask(child.id(), &["--start"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert_eq!(stdout.matches("started to record").count(), 2, "{stdout}");
    std::thread::sleep(Duration::from_millis(500));
    let (stdout, _, code) = place.ask(child.id(), &["--stop"]);
    assert_eq!((stdout.matches(": wrote ").count(), code), (2, Some(0)), "{stdout}");
    let (_, stderr, code) = place.ask(child.id(), &["--stop"]);
    assert!(code == Some(2) && stderr.contains("it is not recording"), "{stderr}");
    assert_eq!(end(child).2, Some(0));
    assert_eq!(place.named(".window-1.bbt").len(), 2);
}

#[test]
fn a_process_that_was_not_prepared_cannot_be_recorded() {
    let place = Place::new();
    let mut other = Command::new("sleep").arg("10").spawn().unwrap();
    let (stdout, stderr, code) = place.ask(other.id(), &["--start"]);
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    assert!(stderr.contains("cannot be recorded: it was not started by busbound record"), "{stderr}");
    assert!(stderr.contains("Start it again: busbound record --standby -- CMD"), "{stderr}");
    other.kill().unwrap();
    other.wait().unwrap();
    let (_, stderr, code) = place.ask(other.id(), &["--dump"]);
    assert!(code == Some(3) && stderr.contains("there is no process"), "{stderr}");

    let mut child = place.record(&["--standby", "--quiet"], "sleep 10").spawn().unwrap();
    let environment = format!("/proc/{}/task/{}/children", child.id(), child.id());
    place.until(|| std::fs::read_to_string(&environment).is_ok_and(|children| !children.is_empty()));
    place.until(|| {
        let (_, stderr, code) = place.ask(child.id(), &["--start"]);
        code == Some(3) && stderr.contains("neither it nor a process that it started uses CUDA yet")
    });
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    child.wait().unwrap();
}

#[test]
fn if_busbound_is_killed_the_program_and_its_recording_go_on() {
    let place = Place::new();
    let mut child = place.record(&["--ring", "60s"], "$program run 3; touch finished").spawn().unwrap();
    place.until_it_uses_cuda();
    child.kill().unwrap();
    child.wait().unwrap();
    place.until(|| place.named("finished").len() == 1);
    assert_eq!(place.named(".dump-1.bbt").len(), 1);
}

#[test]
fn of_two_recorders_the_inner_one_records() {
    let place = Place::new();
    let inner =
        format!("{} record --ring 60s -o inner.bbt -- $program run 2", env!("CARGO_BIN_EXE_busbound"));
    let (stdout, stderr, code) = text(&place.record(&["-o", "outer.bbt"], &inner).output().unwrap());
    assert_eq!((stdout.as_str(), code), ("done\n", Some(3)));
    assert!(stderr.contains("wrote one recording") && stderr.contains("nothing was recorded"), "{stderr}");
    assert_eq!((place.named("inner.").len(), place.named("outer").len()), (1, 0));
}

#[test]
fn many_processes_have_a_dump_each() {
    let place = Place::new();
    let script = "for i in $(seq 60); do $program run 2 & done; wait";
    let (stdout, _, code) = text(&place.record(&["--ring", "60s"], script).output().unwrap());
    assert_eq!((stdout.matches("done").count(), code), (60, Some(0)));
    assert_eq!((place.named(".dump-1.bbt").len(), place.named(".part").len()), (60, 0));
}

/// Without the driver's figures there is still a recording, and the program does not notice.
#[test]
fn a_gpu_that_is_lost_during_a_recording_costs_only_its_counters() {
    let place = Place::new();
    let script = "(sleep 1; echo 15 > lost) & $program run 3; code=$?; wait; exit $code";
    let mut command = place.record(&["-o", "run.bbt"], script);
    let path = format!("{}:{}", parts().display(), crate::gpu_lost::driver().display());
    command
        .env("LD_LIBRARY_PATH", path)
        .env("DEVICE", "NVIDIA H200")
        .env("LOST_0", place.0.path().join("lost"));
    let (stdout, stderr, code) = text(&command.output().unwrap());
    assert_eq!((stdout.as_str(), code), ("done\n", Some(3)), "{stderr}");
    let (json, _, code) = place.busbound(&["diagnose", "run.bbt", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["source"]["complete"]), (Some(0), &true.into()));
    // What was known before, and kernels from after it.
    assert_eq!(json["machine"]["gpus"][0]["link"]["source"], "recorded");
    assert!(json["devices"][0]["time"]["span_ms"].as_f64().unwrap() > 2000.0, "{json}");
}

#[test]
fn every_window_becomes_a_summary() {
    let place = Place::new();
    let args = ["--every", "2s", "--for", "500ms", "-o", "summaries"];
    let (_, stderr, code) = text(&place.record(&args, "$program run 5").output().unwrap());
    assert_eq!(code, Some(3));
    assert!(stderr.contains("summaries to ") && stderr.contains("next: busbound merge "), "{stderr}");
    let files: Vec<PathBuf> = std::fs::read_dir(place.0.path().join("summaries"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!((2..=3).contains(&files.len()), "{files:?}");
    for file in files {
        assert!(file.display().to_string().ends_with(".rank.json"), "{}", file.display());
        assert!(file.metadata().unwrap().len() < 8 << 10);
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert!(json["recorded_ms"].as_i64().unwrap() > 1_600_000_000_000);
        assert_eq!(json["every_ms"], 2000);
    }
    // They are what `top` shows: one process, and its last window.
    let (json, _, code) = place.busbound(&["top", "--summaries", "summaries", "--once", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let windows = json["windows"].as_array().unwrap();
    assert_eq!((windows.len(), code), (1, Some(0)), "{json}");
    assert_eq!((&windows[0]["every_s"], &windows[0]["process"]["number"]), (&2.0.into(), &1.into()));
    // Without steps there is nothing that became longer.
    assert_eq!((&windows[0]["unit"], &windows[0]["change"]["span_change"]), (&"trace".into(), &().into()));
    // Merged, it is one process, too.
    let (stdout, stderr, code) = place.busbound(&["merge", "summaries"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(stdout.starts_with("1 rank: ") && stdout.contains("the last one is shown"), "{stdout}");
}

#[test]
fn the_windows_of_two_ranks_are_one_comparison() {
    let place = Place::new();
    let script = "RANK=0 WORLD_SIZE=2 $program run 7 & RANK=1 WORLD_SIZE=2 $program run 7; wait";
    let args = ["--every", "2s", "--for", "300ms", "-o", "summaries"];
    let (_, stderr, code) = text(&place.record(&args, script).output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let (json, stderr, code) = place.busbound(&["merge", "summaries", "--json"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["not_one_run"], &json["world_size"]), (&().into(), &2.into()));
    let ranks = json["ranks"].as_array().unwrap();
    assert_eq!((&ranks[0]["rank"]["rank"], &ranks[1]["rank"]["rank"]), (&0.into(), &1.into()));
    let begun = |at: usize| ranks[at]["recorded_ms"].as_i64().unwrap();
    assert!(ranks.len() == 2 && (begun(0) - begun(1)).abs() < 1000, "{json}");
    assert!(json["others"].as_array().unwrap().len() >= 2, "{json}");
}
