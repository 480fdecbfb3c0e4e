//! Copies that race are reported with both places, and none of the real recordings is accused of one.

use std::path::{Path, PathBuf};

use busbound_diagnosis::{Diagnosis, FindingId, Options, Severity, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{Access, MemoryKind, StreamKind, SyncKind, Synchronization, TraceBuilder, Transfer};

use crate::common::{diagnosis_of, root};

const MS: i64 = 1_000_000;
const MIB: u64 = 1 << 20;
const GPU: u64 = 0x7f00_0000_0000;

/// Ten steps of 20 ms: a copy of 4 MiB to the GPU on a stream of its own, kernels on the default stream, and a memset of the copy's
/// last quarter there; in between, with `is_ordered`, a wait for the copy.
fn training(is_ordered: bool) -> Diagnosis {
    let mut trace = TraceBuilder::default();
    let host = trace.thread(1, 1);
    let (compute, copies) = (trace.stream(0, 7), trace.stream(0, 13));
    let mut accesses = Vec::new();
    for step in 0..10 {
        let (at, id) = (step * 20 * MS, step as u64 * 10);
        trace.annotation(host, &format!("ProfilerStep#{step}"), at..at + 20 * MS);
        trace.annotation(host, "prefetch", at + 10_000..at + 40_000);
        trace.runtime_call(host, "cudaMemcpyAsync", at + 20_000..at + 30_000).correlation(id + 1);
        let h2d = Transfer::host_to_device(MemoryKind::Pinned, 4 * MIB);
        trace.copy(copies, h2d, at + 40_000..at + MS).correlation(id + 1);
        accesses.push((id + 1, Access { to: GPU, from: Some(4096), stream: StreamKind::NonBlocking }));
        trace.runtime_call(host, "cudaEventRecord", at + 50_000..at + 55_000).correlation(id + 2);
        if is_ordered {
            let wait = Synchronization {
                waits_on_stream: Some(13),
                waits_on_record: Some(id + 2),
                ..Synchronization::of(SyncKind::StreamWaitEvent)
            };
            trace.runtime_call(host, "cudaStreamWaitEvent", at + 60_000..at + 65_000).correlation(id + 3);
            trace.synchronization(compute, wait, at + 60_000..at + 65_000).correlation(id + 3);
        }
        trace.runtime_call(host, "cudaMemsetAsync", at + 70_000..at + 75_000).correlation(id + 4);
        let memset = Some(busbound_trace::Bytes::new(MIB));
        trace
            .memset(compute, MemoryKind::Device, memset, at + MS + 10_000..at + MS + 20_000)
            .correlation(id + 4);
        accesses.push((id + 4, Access { to: GPU + 3 * MIB, from: None, stream: StreamKind::Legacy }));
        trace.runtime_call(host, "cudaLaunchKernel", at + 80_000..at + 90_000).correlation(id + 5);
        trace.kernel(compute, "gemm", at + MS + 30_000..at + 19 * MS).correlation(id + 5);
    }
    trace.accesses(accesses, Vec::new());
    let trace = trace.finish();
    diagnose(&trace, &Source::named("loop"), &Machine::default(), &Options::default())
}

#[test]
fn a_race_is_reported_with_both_places() {
    let diagnosis = training(false);
    let found = diagnosis.findings.iter().find(|finding| finding.id == FindingId::CopyRace).unwrap();
    assert_eq!((found.severity, found.saves_ms_per_step.high), (Severity::High, 0.0));
    let pairs = found.evidence["pairs"].as_u64().unwrap();
    assert_eq!(pairs as f64, diagnosis.step_count(), "one in each step");
    let said = &found.seen;
    assert!(
        said.starts_with("cudaMemcpyAsync on stream 13 at 20.0 µs under `prefetch` writes 4.19 MB; "),
        "{said}"
    );
    assert!(
        said.contains("cudaMemsetAsync on stream 7 at 70.0 µs under `ProfilerStep#")
            && said.contains(
                "writes the same memory (1.05 MB of it from byte 3,145,728 on), before that is done"
            ),
        "{said}"
    );
    assert_eq!(found.evidence["both_bytes"], MIB);
    assert_eq!(
        (&found.evidence["first_offset_bytes"], &found.evidence["second_offset_bytes"]),
        (&(3 * MIB).into(), &0.into())
    );
    assert!(
        !said.contains("7f00") && !serde_json::to_string(&diagnosis).unwrap().contains(&GPU.to_string()),
        "no addresses"
    );
}

#[test]
fn with_an_event_between_the_streams_there_is_none() {
    let ordered = training(true);
    assert!(ordered.findings.iter().all(|finding| finding.id != FindingId::CopyRace));
}

/// From a file that was made: a D2H copy reads the second half of a buffer that a copy on another stream still fills.
#[test]
fn a_race_in_a_recording_is_reported() {
    let diagnosis = diagnosis_of(&root().join("fixtures/coverage/race.bbt"));
    let found = diagnosis.findings.iter().find(|finding| finding.id == FindingId::CopyRace).unwrap();
    let said = "cudaMemcpyAsync on stream 13 at 20.0 µs under `prefetch` writes 67.1 MB; cudaMemcpyAsync on stream 7 at 60.0 µs under `read_back` reads \
                the same memory (33.6 MB of it from byte 33,554,432 on), before that is done, and nothing orders the two.";
    assert!(found.seen.starts_with(said), "{}", found.seen);
    assert_eq!(found.evidence["second_offset_bytes"], 0);
}

/// Programs on a real GPU that order their copies in different ways, or not at all (fixtures/recorded/races.py).
#[test]
fn of_real_programs_those_that_race_are_reported_and_no_other() {
    let folder = root().join("fixtures/recorded/races");
    let mut seen = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let diagnosis = diagnosis_of(&path);
        let has_race = diagnosis.findings.iter().any(|finding| finding.id == FindingId::CopyRace);
        assert_eq!(has_race, is_racy(&path), "{}", path.display());
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// Whether a recording has a race, by its name.
fn is_racy(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "race.bbt" || name.starts_with("racy_")
}

fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            recordings(&entry, found);
        } else if entry.extension().is_some_and(|end| end == "bbt") && !is_racy(&entry) {
            found.push(entry);
        }
    }
}

#[test]
fn no_real_recording_is_accused_of_a_race() {
    let mut all = Vec::new();
    recordings(&root().join("fixtures"), &mut all);
    assert!(all.len() >= 20, "{all:?}");
    for path in all {
        let diagnosis = diagnosis_of(&path);
        let has_race = diagnosis.findings.iter().any(|finding| finding.id == FindingId::CopyRace);
        assert!(!has_race, "{}", path.display());
    }
}
