//! The library in a process: what ends up in the file, and what happens to the process. CUPTI itself needs a GPU; a
//! fake CUPTI delivers records that a real one wrote (fixtures/cupti).
#![cfg(target_os = "linux")]

mod common;

use busbound_capture::format::{FileCounts, Record, streams};
use common::{Recorded, Rig};

/// Copies, memsets and overhead records in the file, and whether it has its end.
fn recorded(rig: &Rig) -> ([usize; 3], bool) {
    let shown = Recorded::of(&rig.at("run.bbt"));
    ([shown.copies, shown.memsets, shown.overheads], shown.has_ended)
}

#[test]
fn buffers_are_written_to_the_file_and_the_program_exits_normally() {
    let rig = Rig::new();
    let output = rig.run("exit", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"done\n");
    assert_eq!(recorded(&rig), ([10, 2, 8], true));
}

#[test]
fn the_memory_of_copies_and_how_their_streams_were_created_are_recorded() {
    let rig = Rig::new();
    let output = rig.run("copies", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = Recorded::of(&rig.at("run.bbt"));
    let access =
        |correlation, stream, to, from| format!("{:?}", Record::Access { correlation, stream, to, from });
    let expected = [
        access(2, streams::NON_BLOCKING, 0x7000, 0x1000),
        access(3, streams::LEGACY, 0x7800, 0),
        format!("{:?}", Record::OtherWait { correlation: 4, stream: 13 }),
        // Its stream was destroyed: another one may have its address.
        access(6, streams::UNKNOWN, 0x7000, 0x1000),
    ];
    assert_eq!(shown.accesses, expected);
}

/// What crosses no bus is in the recording too: a file that is read twice, and how much of it came from a disk each time.
#[test]
fn what_the_process_reads_from_files_is_recorded() {
    const SIZE: usize = 48 << 20;
    let rig = Rig::new();
    let file = rig.at("weights");
    std::fs::write(&file, vec![7; SIZE]).unwrap();
    let mut program = rig.program("reads", &[]);
    let output = program.arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    // What the program itself counted, each time: 0 on a file system without a disk.
    let said = String::from_utf8(output.stdout).unwrap();
    let from_disk: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((from_disk.len(), from_disk[1]), (2, 0), "the second time, all of it is in the page cache");
    let files = Recorded::of(&rig.at("run.bbt")).files;
    let (first, last) = (files.first().unwrap(), files.last().unwrap());
    let span_ms = (last.0 - first.0) / 1_000_000;
    assert!((1_200..30_000).contains(&span_ms) && files.len() >= 8, "{span_ms} ms, {} times", files.len());
    assert!(files.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1.read <= pair[1].1.read));
    // Between two pauses is one reading of the file.
    let half = files.iter().find(|(_, counts)| counts.read - first.1.read > SIZE as u64).unwrap();
    let read = last.1.read - first.1.read;
    let others = read - 2 * SIZE as u64;
    assert!(others < 1 << 20, "{others} bytes more than the file twice: its own counts");
    let disk = |at: &FileCounts| at.disk - first.1.disk;
    let others = disk(&last.1).checked_sub(from_disk[0]).unwrap();
    assert!(others < 1 << 20, "{others} bytes more from the disk than the file once: pages of libraries");
    assert!(disk(&half.1) >= from_disk[0], "all of it the first time");
    let cpu = |counts: FileCounts| counts.user + counts.system;
    assert!(cpu(last.1) > cpu(first.1) && last.1.minor_faults > first.1.minor_faults, "{files:?}");
}

/// Regression: the child waited ten seconds for a thread that it does not have.
#[test]
fn a_forked_child_exits_immediately() {
    let rig = Rig::new();
    let output = rig.run("fork", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(recorded(&rig), ([10, 2, 8], true));
}

#[test]
fn a_killed_process_leaves_what_was_flushed() {
    use std::os::unix::process::ExitStatusExt;
    let rig = Rig::new();
    assert_eq!(rig.run("kill", &[]).status.signal(), Some(9));
    assert_eq!(recorded(&rig), ([10, 2, 8], false));
}

#[test]
fn with_another_profiler_the_program_continues_and_no_file_is_left() {
    let rig = Rig::new();
    let output = rig.run("exit", &[("TAKEN", "1")]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("another profiler already uses CUPTI in this process; nothing is recorded"),
        "{said}"
    );
    assert!(!rig.at("run.bbt").exists());
}

#[test]
fn without_cupti_the_message_lists_the_searched_folders() {
    let rig = Rig::new();
    let output = rig.run("exit", &[("LD_LIBRARY_PATH", "")]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("libcupti not found: none is loaded"), "{said}");
    assert!(!rig.at("run.bbt").exists());
}

#[test]
fn if_no_file_can_be_written_cupti_is_released() {
    let rig = Rig::new();
    let output = rig.run("exit", &[("BUSBOUND_RECORD_TO", "/nowhere/run.bbt")]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("unsubscribed\n") && said.contains("cannot write /nowhere/run.bbt"), "{said}");
}
