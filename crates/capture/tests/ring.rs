//! The flight recorder: bounded memory, dumps, attaching, and programs that crash. With the fake CUPTI of the other tests.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot build its parts has failed")]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use busbound_capture::inject::control::{Command, ask, socket};
use common::{Recorded, Rig};

/// A program that runs with the library in it.
struct Running {
    rig: Rig,
    child: Child,
}

impl Running {
    fn new(seconds: &str, environment: &[(&str, &str)], words: &[&str]) -> Self {
        let rig = Rig::new();
        let control = rig.at("");
        let mut program = rig.program("run", environment);
        program.arg(seconds).args(words).env("BUSBOUND_RECORD_CONTROL", control);
        let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let running = Self { rig, child };
        let begun = Instant::now();
        while !running.socket().exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    }

    fn socket(&self) -> PathBuf {
        socket(&self.rig.at(""), self.child.id())
    }

    fn ask(&self, command: Command) -> Result<String, String> {
        ask(&self.socket(), command).unwrap()
    }

    fn resident_mb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// Waits for its end: exit code, and what it wrote to standard error.
    fn end(self) -> (Rig, Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        (self.rig, output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

fn files(rig: &Rig) -> Vec<PathBuf> {
    let all = std::fs::read_dir(rig.at("")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = all
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run.")))
        .collect();
    files.sort();
    files
}

fn path_in(answer: &str) -> &Path {
    Path::new(answer.strip_prefix("wrote ").unwrap())
}

fn sleep(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn a_dump_has_the_last_part_with_all_names() {
    let running = Running::new("4", &[("BUSBOUND_RECORD_RING", "1"), ("RATE", "1000"), ("NAMES", "50")], &[]);
    sleep(3000);
    let first = running.ask(Command::Dump).unwrap();
    let second = running.ask(Command::Dump).unwrap();
    assert_ne!(first, second);
    let (rig, code, said) = running.end();
    assert_eq!((code, said.as_str()), (Some(3), ""));
    assert_eq!(files(&rig).len(), 3, "two that were asked for, one at the end: {:?}", files(&rig));
    for path in files(&rig) {
        let shown = Recorded::of(&path);
        let kernels: usize = shown.kernels.values().sum();
        assert!((50..2_900).contains(&kernels), "{} has {kernels} kernels", path.display());
        assert_eq!(shown.kernels.len(), 50);
        assert!(shown.kernels.keys().all(|name| name.starts_with("gemm_")), "{:?}", shown.kernels.keys());
        assert!(shown.has_ended && shown.has_clock && shown.facts.contains(&"cupti".to_owned()));
        assert!(shown.facts.contains(&"cpus".to_owned()), "{:?}", shown.facts);
        let [note] = shown.notes.as_slice() else { panic!("{:?}", shown.notes) };
        assert!(note.starts_with("Dumped because ") && note.contains("; it has the last 1."), "{note}");
        assert_eq!(shown.kernels_off_ms, 0);
    }
    assert!(Recorded::of(path_in(&first)).notes[0].contains("it was asked for"));
}

#[test]
fn a_flood_of_kernels_is_sampled_and_stays_within_64_mb() {
    let begun = Instant::now();
    let environment = [("BUSBOUND_RECORD_RING", "60"), ("RATE", "400000"), ("NAMES", "100000")];
    let running = Running::new("6", &environment, &[]);
    let (before, mut most) = (running.resident_mb(), 0);
    while begun.elapsed() < Duration::from_secs(5) {
        most = most.max(running.resident_mb());
        sleep(50);
    }
    assert!(most - before < 64, "{before} to {most} MB");
    let shown = Recorded::of(path_in(&running.ask(Command::Dump).unwrap()));
    assert!(shown.kernels_off_ms > 2_000, "{}", shown.kernels_off_ms);
    assert!(!shown.kernels.contains_key(""), "a kernel without its name");
    assert!(
        shown.notes.iter().any(|note| note.contains("recorded for 100 ms of each ")),
        "{:?}",
        shown.notes
    );
    running.end();
}

#[test]
fn recording_starts_and_stops_in_a_process_on_standby() {
    let running = Running::new("4", &[("BUSBOUND_RECORD_STANDBY", "1"), ("RATE", "1000")], &[]);
    sleep(500);
    assert_eq!(running.ask(Command::Stop), Err("it is not recording".to_owned()));
    assert!(running.ask(Command::Dump).unwrap_err().contains("it keeps no ring"));
    assert_eq!(running.ask(Command::Start(None)), Ok("started to record".to_owned()));
    assert_eq!(running.ask(Command::Start(None)), Err("it is recording already".to_owned()));
    sleep(1000);
    let wrote = running.ask(Command::Stop).unwrap();
    let half = Some(Duration::from_millis(500));
    assert_eq!(running.ask(Command::Start(half)), Ok("started to record, for 0.5 s".to_owned()));
    let (rig, code, said) = running.end();
    // CUPTI is released when recording stops: other profilers can use it.
    assert_eq!((code, said.as_str()), (Some(3), "unsubscribed\nunsubscribed\n"));
    let files = files(&rig);
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(files[0], path_in(&wrote));
    for (path, ms) in files.iter().zip([1000, 500]) {
        let shown = Recorded::of(path);
        let kernels = shown.kernels["gemm"];
        assert!((1..ms + 1_500).contains(&kernels), "{kernels} in {ms} ms");
        assert!(shown.has_ended && shown.facts.contains(&"process".to_owned()));
    }
}

#[test]
fn a_ring_that_was_stopped_for_a_while_says_so() {
    let running = Running::new("4", &[("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000")], &[]);
    sleep(700);
    assert_eq!(running.ask(Command::Stop), Ok("stopped; what the ring holds can still be dumped".to_owned()));
    sleep(1000);
    let stopped = Recorded::of(path_in(&running.ask(Command::Dump).unwrap()));
    assert_eq!(stopped.kernels_off_ms, 0, "it ends where it was stopped");
    assert_eq!(running.ask(Command::Start(None)), Ok("started to record".to_owned()));
    sleep(500);
    let shown = Recorded::of(path_in(&running.ask(Command::Dump).unwrap()));
    assert!((950..10_000).contains(&shown.kernels_off_ms), "{}", shown.kernels_off_ms);
    assert!(shown.kernels["gemm"] > stopped.kernels["gemm"]);
    running.end();
}

/// Recording that started late had no calls and no GPU on a real machine.
#[test]
fn a_recorder_that_starts_late_asks_for_all_calls_and_for_the_gpus() {
    let environment = [("BUSBOUND_RECORD_STANDBY", "1"), ("RATE", "1000"), ("SAYS_CALLS", "1")];
    let running = Running::new("2", &environment, &[]);
    running.ask(Command::Start(None)).unwrap();
    sleep(500);
    let shown = Recorded::of(path_in(&running.ask(Command::Stop).unwrap()));
    assert_eq!(shown.gpus, [(0, "GPU of device 40".to_owned(), 1 << 37)]);
    let (_, _, said) = running.end();
    assert_eq!(said, "all calls of kind 4\nall calls of kind 5\nunsubscribed\n");
    // Calls can be selected in a process that does not use CUDA yet.
    let environment = [("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000"), ("SAYS_CALLS", "1")];
    assert_eq!(Running::new("1", &environment, &[]).end().2, "");
}

#[test]
fn the_driver_and_the_limits_of_the_gpus_are_recorded() {
    let environment = [("BUSBOUND_RECORD_STANDBY", "1"), ("RATE", "1000"), ("WITH_NVML", "1")];
    let running = Running::new("2", &environment, &[]);
    running.ask(Command::Start(None)).unwrap();
    sleep(500);
    let shown = Recorded::of(path_in(&running.ask(Command::Stop).unwrap()));
    running.end();
    let value = |key: &str| shown.values.get(key).map(String::as_str);
    assert_eq!(value("version driver"), Some("999.1"));
    assert_eq!(value("clock limit of gpu 0"), Some("1980"));
    assert_eq!(value("power limit of gpu 0"), Some("699999"));
}

#[test]
fn on_standby_another_profiler_is_named_when_recording_is_to_start() {
    let running = Running::new("2", &[("BUSBOUND_RECORD_STANDBY", "1"), ("TAKEN", "1")], &[]);
    let why = running.ask(Command::Start(None)).unwrap_err();
    assert!(why.contains("another profiler already uses CUPTI"), "{why}");
    let (rig, code, said) = running.end();
    assert_eq!((code, said.as_str(), files(&rig).len()), (Some(3), "", 0));
}

#[test]
fn a_process_on_standby_is_left_alone() {
    let (rig, code, said) = Running::new("1", &[("BUSBOUND_RECORD_STANDBY", "1")], &[]).end();
    assert_eq!((code, said.as_str(), files(&rig).len()), (Some(3), "", 0));
    assert!(!rig.at("").join("sock").exists());
}

#[test]
fn a_process_that_crashes_leaves_a_dump_and_ends_by_its_signal() {
    for (how, signal, name) in [("segv", 11, "SIGSEGV"), ("abort", 6, "SIGABRT"), ("term", 15, "SIGTERM")] {
        let rig = Rig::new();
        let begun = Instant::now();
        let output = rig.run(how, &[("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000")]);
        assert_eq!(output.status.signal(), Some(signal), "{how}");
        assert!(begun.elapsed() < Duration::from_secs(20));
        let files = files(&rig);
        let [file] = files.as_slice() else { panic!("{how}: {files:?}") };
        let shown = Recorded::of(file);
        assert!(
            shown.kernels["gemm"] >= 1_000,
            "{how}: what had not been delivered is there: {:?}",
            shown.kernels
        );
        assert!(shown.notes[0].contains(&format!("the process received {name}")), "{:?}", shown.notes);
        assert!(shown.has_ended);
    }
}

/// A GPU that hangs, and a thread that crashes inside CUPTI and holds its locks.
#[test]
fn a_cupti_that_never_returns_costs_the_last_part_and_not_the_dump() {
    let environment = [("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000"), ("HANGS", "1")];
    let rig = Rig::new();
    let begun = Instant::now();
    assert_eq!(rig.run("segv", &environment).status.signal(), Some(11));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let files = files(&rig);
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert!(Recorded::of(file).kernels["gemm"] >= 100, "those before it hung");

    let running = Running::new("4", &environment, &[]);
    sleep(2500);
    let shown = Recorded::of(path_in(&running.ask(Command::Dump).unwrap()));
    assert!(shown.kernels["gemm"] >= 100 && shown.has_ended);
    let (_, code, _) = running.end();
    assert_eq!(code, Some(3), "the program ends all the same");
}

#[test]
fn a_stack_overflow_ends_as_without_the_library() {
    let rig = Rig::new();
    assert_eq!(
        rig.run("overflow", &[("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000")]).status.signal(),
        Some(11)
    );
}

#[test]
fn a_signal_asks_for_a_dump_unless_the_program_handles_it() {
    let environment = [("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000"), ("BUSBOUND_RECORD_SIGNAL", "12")];
    let running = Running::new("2", &environment, &[]);
    sleep(500);
    send(12, &running.child);
    let (rig, code, said) = running.end();
    assert_eq!(code, Some(3));
    assert!(said.contains("because a signal asked for it"), "{said}");
    assert_eq!(files(&rig).len(), 2);

    let running = Running::new("2", &environment, &["handles", "12"]);
    sleep(500);
    send(12, &running.child);
    let (rig, code, said) = running.end();
    assert_eq!(code, Some(3));
    assert!(said.contains("the program handles signal 12 itself"), "{said}");
    assert_eq!(files(&rig).len(), 1, "the one at the end");
}

fn send(signal: i32, child: &Child) {
    let kill =
        std::process::Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

/// A signal that reaches a thread of the library does not interrupt what the program waits for.
#[test]
fn the_librarys_threads_take_no_signals_of_the_program() {
    let running = Running::new("2", &[("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000")], &[]);
    sleep(200);
    let mut seen = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", running.child.id())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        let blocked = u64::from_str_radix(&field("SigBlk:"), 16).unwrap();
        let is_ours = field("Name:").starts_with("busbound");
        seen += usize::from(is_ours);
        for signal in [1, 2, 10, 12, 15] {
            assert_eq!(blocked >> (signal - 1) & 1 == 1, is_ours, "signal {signal} in {}", field("Name:"));
        }
    }
    assert_eq!(seen, 2);
    running.end();
}

#[test]
fn the_watchdog_dumps_when_nothing_completes() {
    // The buffer that the fake CUPTI delivers once is the last work.
    let environment = [("BUSBOUND_RECORD_RING", "60"), ("BUSBOUND_RECORD_WATCHDOG", "1")];
    let (rig, code, said) = Running::new("3", &environment, &[]).end();
    assert_eq!(code, Some(3));
    assert!(said.contains("because no device work completed for 1 s"), "{said}");
    let files = files(&rig);
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(Recorded::of(&files[0]).copies, 10);
}

#[test]
fn windows_repeat_at_the_same_times_in_every_process() {
    let environment = [("BUSBOUND_RECORD_EVERY", "2"), ("BUSBOUND_RECORD_DURATION", "0.5"), ("RATE", "1000")];
    let (rig, code, _) = Running::new("5", &environment, &[]).end();
    assert_eq!(code, Some(3));
    let files = files(&rig);
    assert!((1..=4).contains(&files.len()), "{files:?}");
    for path in &files {
        let shown = Recorded::of(path);
        // Of 5,000 kernels in all; how many exactly depends on how busy the machine is.
        assert!(shown.has_ended && (1..2_000).contains(&shown.kernels["gemm"]), "{:?}", shown.kernels);
    }
}

#[test]
fn a_full_disk_ends_the_dump_but_not_the_program_and_leaves_nothing_partial() {
    let rig = Rig::new();
    let mut shell = std::process::Command::new("sh");
    let program = rig.program("run", &[]);
    // Files of more than 40 blocks of 512 bytes cannot be written; the signal that this sends is ignored, as Python does.
    shell
        .args(["-c", "ulimit -f 40; trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(program.get_program())
        .args(program.get_args());
    shell.arg("2").envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    shell.env("BUSBOUND_RECORD_RING", "60").env("RATE", "3000");
    let output = shell.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"done\n".as_slice()), "{said}");
    assert!(said.contains("cannot write ") && said.contains("File too large"), "{said}");
    assert_eq!(files(&rig), Vec::<PathBuf>::new());
}

#[test]
fn garbage_on_the_socket_does_not_stop_the_recorder() {
    use std::io::{Read, Write};
    let running = Running::new("3", &[("BUSBOUND_RECORD_RING", "60"), ("RATE", "1000")], &[]);
    let connect = || std::os::unix::net::UnixStream::connect(running.socket()).unwrap();
    let silent = connect();
    let mut rude = connect();
    rude.write_all(&[0xff; 4096]).unwrap();
    let mut answer = String::new();
    let _ = rude.read_to_string(&mut answer);
    let many: Vec<_> = (0..20).map(|_| connect()).collect();
    drop((silent, many));
    assert!(running.ask(Command::Dump).is_ok());
    assert_eq!(running.end().1, Some(3));
}
