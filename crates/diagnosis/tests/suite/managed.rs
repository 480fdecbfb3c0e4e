//! Are thrashing and page faults of managed memory found, and are requested migrations excluded?
//!
//! The run is synthetic (fixtures/nsight/made.py): five steps. Each has a kernel of 5 ms that is stalled by 96 page faults in
//! eight groups of 0.4 ms, eight migrations of 2 MiB to the GPU, and eight back when the host accesses the pages; 0.1 ms each.

use std::path::Path;

use busbound_diagnosis::{
    Diagnosis, Finding, FindingId, GapCause, LimitationId, Options, Source, diagnose, survey, what_if,
};
use busbound_machine::Machine;
use busbound_trace::{Direction, ReadOptions, Trace, open};
use rusqlite::Connection;

/// The synthetic run after these SQL statements.
fn trace(sql: &str) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sqlite");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight/managed.sqlite"), &path)
        .unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    open(&path, &ReadOptions::default()).unwrap()
}

fn run(sql: &str) -> Diagnosis {
    diagnose(&trace(sql), &Source::named("run.sqlite"), &Machine::default(), &Options::default())
}

fn finding(run: &Diagnosis, id: FindingId) -> Option<&Finding> {
    run.findings.iter().find(|finding| finding.id == id)
}

const MANAGED: [FindingId; 2] = [FindingId::ManagedFaults, FindingId::ManagedThrashing];

fn number(finding: &Finding, key: &str) -> f64 {
    (finding.evidence[key].as_f64().unwrap() * 1e6).round() / 1e6
}

#[test]
fn thrashing_is_found_with_its_cost() {
    let run = run("");
    let ids: Vec<_> = run.findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, MANAGED);
    let found = finding(&run, FindingId::ManagedThrashing).unwrap();
    // Five round trips, minus the first migration to the GPU.
    assert_eq!((number(found, "blocks"), number(found, "turns_per_block")), (8.0, 9.0));
    assert_eq!(number(found, "to_gpu_bytes_per_step"), f64::from(4 * 8 * (2 << 20)) / 5.0);
    assert_eq!(number(found, "to_host_bytes_per_step"), f64::from(8 * (2 << 20)));
    assert_eq!(number(found, "migration_ms_per_step"), 72.0 * 0.1 / 5.0);
    assert_eq!(number(found, "exposed_ms_per_step"), 0.8);
    assert_eq!(found.evidence["host_place"], "CPU page fault in update at update.cu:42");
    assert_eq!((found.saves_ms_per_step.low, found.saves_ms_per_step.high), (0.4, 1.44));
    assert!(found.fix.contains("SetReadMostly"), "{}", found.fix);
}

#[test]
fn kernels_that_overlap_with_faults_are_found() {
    let first = run("");
    let found = finding(&first, FindingId::ManagedFaults).unwrap();
    assert_eq!(number(found, "gpu_page_faults_per_step"), 96.0);
    assert_eq!(number(found, "kernel_ms_beside_faults_per_step"), 4.6);
    assert_eq!(number(found, "kernels_per_step"), 1.0);
    assert_eq!(number(found, "on_demand_ms_per_step"), 0.8);
    // The trace does not show how much of that time the kernels were stalled.
    assert!(found.evidence["excess_ms_per_step"].is_null());
    assert_eq!((found.saves_ms_per_step.low, found.saves_ms_per_step.high), (0.0, 4.6));
    assert!(first.limitations.iter().any(|limitation| limitation.id == LimitationId::ManagedInKernels));

    // The same kernel takes 2 ms without faults in the rest of each step, so the stall is known.
    let second = run(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
            SELECT start + 7700000, start + 9700000, deviceId, contextId, streamId, correlationId + 5, globalPid, demangledName,
                shortName, gridX, gridY, gridZ, blockX, blockY, blockZ FROM CUPTI_ACTIVITY_KIND_KERNEL;
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
            SELECT start + 7600000, end + 7600000, globalTid, correlationId + 5, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME
            WHERE nameId = 2;",
    );
    let found = finding(&second, FindingId::ManagedFaults).unwrap();
    assert_eq!(number(found, "excess_ms_per_step"), 3.0);
    let prefetched = number(found, "prefetched_ms_per_step");
    assert!((0.2..0.5).contains(&prefetched), "{prefetched}");
    assert!((found.saves_ms_per_step.low - (3.0 - prefetched)).abs() < 1e-3);
}

#[test]
fn migrations_without_recorded_faults_still_show_when_pages_migrated() {
    let run = run("DROP TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS; DROP TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS;
         UPDATE META_DATA_CAPTURE SET value = 'false' WHERE name LIKE '%PAGE_FAULTS';");
    let found = finding(&run, FindingId::ManagedFaults).unwrap();
    assert_eq!(number(found, "kernel_ms_beside_faults_per_step"), 0.8);
    let lacking =
        run.limitations.iter().find(|limitation| limitation.id == LimitationId::PageFaults).unwrap();
    assert!(
        lacking.text.starts_with("managed memory migrated, but page faults were not recorded"),
        "{}",
        lacking.text
    );
}

#[test]
fn without_addresses_thrashing_is_not_reported() {
    let run = run("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN virtualAddress");
    assert!(finding(&run, FindingId::ManagedThrashing).is_none());
    assert!(finding(&run, FindingId::ManagedFaults).is_some());
}

#[test]
fn requested_migrations_are_neither_faults_nor_thrashing() {
    let run = run("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET migrationCause = 1;
         DELETE FROM CUDA_UM_GPU_PAGE_FAULT_EVENTS; DELETE FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS;");
    assert!(run.findings.iter().all(|finding| !MANAGED.contains(&finding.id)), "{:?}", run.findings);
}

#[test]
fn pages_evicted_from_a_full_gpu_have_another_fix() {
    let run = run(
        "INSERT INTO ENUM_CUDA_UNIF_MEM_MIGRATION VALUES (4, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION', 'Eviction');
         UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET migrationCause = 4 WHERE copyKind = 12;
         DELETE FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS;",
    );
    let found = finding(&run, FindingId::ManagedThrashing).unwrap();
    assert_eq!(number(found, "evicted_bytes_per_step"), f64::from(8 * (2 << 20)));
    assert!(found.fix.starts_with("Use less GPU memory at a time"), "{}", found.fix);
}

#[test]
fn memory_that_migrates_once_is_not_a_finding() {
    let run = run(
        "DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE start > 9000000; DELETE FROM CUDA_UM_GPU_PAGE_FAULT_EVENTS WHERE start > 9000000;",
    );
    assert!(finding(&run, FindingId::ManagedThrashing).is_none());
}

#[test]
fn remedies_for_an_nsight_trace_are_nsight_options() {
    let sql = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, streamId INT, graphId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (60000000, 60100000, 0, 7, 3);";
    let survey = survey(&trace(sql), &Source::named("run.sqlite"));
    let remedies: Vec<_> = survey.missing.iter().map(|missing| (missing.id, missing.remedy)).collect();
    assert!(remedies.iter().all(|(_, remedy)| !remedy.contains("profile(")), "{remedies:?}");
    let of = |id| remedies.iter().find(|(missing, _)| *missing == id).unwrap().1;
    assert_eq!(of(LimitationId::Memory), "nsys profile --cuda-memory-usage=true …");
    assert_eq!(
        of(LimitationId::GraphNodes),
        "nsys profile --cuda-graph-trace=node …; it slows down graph launches"
    );
}

#[test]
fn truncated_data_is_not_reported_as_unrecorded() {
    let whole = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight/off.sqlite"))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.sqlite");
    std::fs::write(&path, &whole[..100_000]).unwrap();
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let survey = survey(&trace, &Source::named("cut.sqlite"));
    let missing = survey.missing.iter().find(|missing| missing.id == LimitationId::GpuActivity).unwrap();
    assert_eq!(missing.what, "no GPU activity in the part that could be read");
    assert_eq!(missing.remedy, "export the report again");
}

/// A real run (fixtures/nsight/thrashing.c, on an H200). Four times, the host writes 4 MB, a kernel changes them and the host
/// reads them; another kernel works on memory that only the GPU accesses. Blocks migrate in parts, as their pages are accessed.
/// Expected numbers were computed from the file with Python's sqlite3.
#[test]
fn a_real_run_with_managed_memory_waits_for_its_pages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight/thrashing.sqlite");
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let run = diagnose(&trace, &Source::named("thrashing"), &Machine::default(), &Options::default());
    assert_eq!(
        run.verdict.statement,
        "Transfer-bound: 57% of the 10.3 ms trace waits for transfers over the bus (53% in kernels that wait for pages of managed memory)."
    );
    let moved: Vec<_> = run.copies.iter().map(|group| (group.direction, group.count, group.bytes)).collect();
    assert_eq!(
        moved,
        [(Direction::HostToDevice, 586, 16_777_216), (Direction::DeviceToHost, 96, 16_777_216)]
    );
    let faults = finding(&run, FindingId::ManagedFaults).unwrap();
    // The three kernels without a fault take 3.424 µs each, the five with faults 5.455 ms in total.
    assert_eq!(
        (number(faults, "gpu_page_faults_per_step"), number(faults, "kernels_per_step")),
        (171.0, 5.0)
    );
    assert_eq!(number(faults, "excess_ms_per_step"), 5.434_819);
    let thrashing = finding(&run, FindingId::ManagedThrashing).unwrap();
    assert_eq!((number(thrashing, "blocks"), number(thrashing, "turns_per_block")), (2.0, 7.0));
    assert_eq!(number(thrashing, "to_gpu_bytes_per_step"), 12_582_912.0);
    assert_eq!(number(thrashing, "to_host_bytes_per_step"), 16_777_216.0);
    assert_eq!(number(thrashing, "migration_ms_per_step"), 1.764_007);
    assert_eq!(number(thrashing, "host_page_faults_per_step"), 60.0);
    // No what-if change moves pages. The answer promises nothing and has a note about that.
    let predicted = what_if(&trace, "thrashing", &Machine::default(), &Options::default(), &[]).unwrap();
    assert!(predicted.statement.contains("may make no difference"), "{}", predicted.statement);
    assert!(
        predicted.notes.iter().any(|note| note.starts_with("Migrations of managed memory")),
        "{predicted:?}"
    );
    // The host accesses pages one by one after a sync. The program does not launch migrations.
    assert_eq!((run.idle[0].cause, run.idle[0].count), (GapCause::Host, 51));
}
