//! Nsight Systems reports, which nsys exports if it is installed. Here nsys is a script that copies a database.

#![cfg(unix)]
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight").join(name)
}

/// A directory with a report, temporary files, and maybe an nsys.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new(nsys: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["bin", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("run.nsys-rep"), b"\x01\x02\x03 nobody else reads this").unwrap();
        if let Some(script) = nsys {
            let path = folder.path().join("bin/nsys");
            fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder }
    }

    fn busbound(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbound"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("PATH", self.folder.path().join("bin"))
            .env("TMPDIR", self.folder.path().join("tmp"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> (String, String, Option<i32>) {
        let Output { stdout, stderr, status } = self.busbound(args).output().unwrap();
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code())
    }

    fn left_behind(&self) -> usize {
        fs::read_dir(self.folder.path().join("tmp")).unwrap().count()
    }
}

/// Accepts only the documented call.
fn copying() -> String {
    let database = fixture("off.sqlite").canonicalize().unwrap();
    format!(
        "[ \"$1 $2 $3 $4\" = 'export --type sqlite -o' ] && [ -f \"$6\" ] && [ $# = 6 ] || exit 9\ncp '{}' \"$5\"",
        database.display()
    )
}

#[test]
fn a_report_is_exported_and_read_and_nothing_is_left() {
    let desk = Desk::new(Some(&copying()));
    let (answer, remarks, code) = desk.run(&["survey", "run.nsys-rep", "--format", "json"]);
    assert_eq!(
        (remarks.as_str(), code),
        ("busbound: run.nsys-rep: exporting this Nsight Systems report with nsys\n", Some(0))
    );
    let database = fixture("off.sqlite").display().to_string();
    let (direct, ..) = desk.run(&["survey", &database, "--format", "json"]);
    assert_eq!(answer, direct.replace(&database, "run.nsys-rep"));
    assert_eq!(desk.left_behind(), 0);

    let (_, remarks, _) = desk.run(&["survey", "run.nsys-rep", "--quiet"]);
    assert_eq!(remarks, "");
}

#[test]
fn without_nsys_the_command_is_shown() {
    let desk = Desk::new(None);
    let (answer, remarks, code) = desk.run(&["diagnose", "run.nsys-rep"]);
    assert_eq!((answer.as_str(), code), ("", Some(3)));
    assert_eq!(
        remarks,
        "busbound: run.nsys-rep is an Nsight Systems report, which only nsys can read; export it: \
         nsys export --type sqlite -o run.sqlite run.nsys-rep\n"
    );
    assert_eq!(desk.left_behind(), 0);
}

#[test]
fn errors_of_nsys_are_shown() {
    let desk = Desk::new(Some("echo 'Processing'; echo 'The report is damaged.' >&2; exit 1"));
    let (_, remarks, code) = desk.run(&["survey", "run.nsys-rep", "--quiet"]);
    assert_eq!(
        (remarks.as_str(), code),
        ("busbound: run.nsys-rep: nsys could not export it: The report is damaged.\n", Some(3))
    );
    assert_eq!(desk.left_behind(), 0);
}

#[test]
fn an_interrupt_stops_nsys_and_leaves_nothing_behind() {
    let desk = Desk::new(Some("echo $$ > pid.new; mv pid.new pid; exec sleep 600"));
    let mut child = desk.busbound(&["survey", "run.nsys-rep"]).stderr(Stdio::null()).spawn().unwrap();
    let written = desk.folder.path().join("pid");
    let patience = Instant::now() + Duration::from_secs(60);
    while !written.exists() {
        assert!(Instant::now() < patience, "the script never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Before it listens, a signal ends it immediately.
    std::thread::sleep(Duration::from_millis(300));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!(desk.left_behind(), 0);
    let nsys = fs::read_to_string(&written).unwrap();
    // A stopped process stays in /proc until its parent has taken its status.
    let process = Path::new("/proc").join(nsys.trim());
    let is_gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        !process.exists()
    });
    assert!(is_gone, "{} still runs", process.display());
}

#[test]
fn a_report_and_its_export_in_one_directory_are_read_once() {
    let desk = Desk::new(Some(&copying()));
    fs::copy(fixture("off.sqlite"), desk.folder.path().join("run.sqlite")).unwrap();
    fs::write(desk.folder.path().join("other.nsys-rep"), b"\x01").unwrap();
    let (answer, remarks, code) = desk.run(&["survey", ".", "--format", "json"]);
    assert_eq!((remarks.lines().count(), code), (1, Some(0)));
    let read: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let paths: Vec<_> = read["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|survey| survey["source"]["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["./other.nsys-rep", "./run.sqlite"]);
}

#[test]
fn reports_exported_in_parallel_are_all_read() {
    // Some exports end while others are running.
    let script = format!("case \"$6\" in *0*|*2*) sleep 0.1 ;; *) sleep 0.4 ;; esac\n{}", copying());
    let desk = Desk::new(Some(&script));
    fs::remove_file(desk.folder.path().join("run.nsys-rep")).unwrap();
    let reports = desk.folder.path().join("reports");
    fs::create_dir(&reports).unwrap();
    for rank in 0..4 {
        fs::write(reports.join(format!("rank{rank}.nsys-rep")), b"\x01").unwrap();
    }
    let (answer, remarks, code) =
        desk.run(&["diagnose", "reports", "--jobs", "4", "--format", "json", "--quiet"]);
    assert_eq!((remarks.as_str(), code), ("", Some(0)));
    let read: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(read["runs"].as_array().unwrap().len(), 4);
    assert_eq!(desk.left_behind(), 0);
}
