//! Exports that lack work of the device: nothing certain is told of the rest.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;
use std::path::{Path, PathBuf};

use busbound_diagnosis::{Bound, Diagnosis, Options, Severity, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, open};
use rusqlite::Connection;
use tempfile::TempDir;

/// Six steps of a 1 ms copy and a 20 ms kernel, changed by a statement.
fn export(change: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.sqlite");
    let database = Connection::open(&path).unwrap();
    let sql = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES (1, 'gemm');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,
            correlationId INT, globalPid INT, demangledName INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT,
            correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);
        WITH RECURSIVE step(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM step WHERE i < 5)
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY
            SELECT i * 21000000, i * 21000000 + 1000000, 0, 1, 7, i * 2, 16777216, 10000000, 1, 0, 2 FROM step;
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
            SELECT end, end + 20000000, 0, 1, 7, correlationId + 1, globalPid, 1 FROM CUPTI_ACTIVITY_KIND_MEMCPY;";
    database.execute_batch(sql).unwrap();
    database.execute_batch(change).unwrap();
    (folder, path)
}

fn diagnosis_of(path: &Path) -> Diagnosis {
    let trace = open(path, &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named("made.sqlite"), &Machine::default(), &Options::default())
}

#[test]
fn lost_kernels_do_not_make_a_run_transfer_bound() {
    let (_folder, path) = export("");
    assert_eq!(diagnosis_of(&path).verdict.bound, Bound::Compute);
    let (page, size): (usize, usize) = {
        let database = Connection::open(&path).unwrap();
        let root = "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'";
        let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        (number(root).try_into().unwrap(), number("PRAGMA page_size").try_into().unwrap())
    };
    let mut bytes = fs::read(&path).unwrap();
    bytes[(page - 1) * size..page * size].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let run = diagnosis_of(&path);
    assert_eq!(
        (run.verdict.bound, run.verdict.statement.as_str()),
        (
            Bound::Unknown,
            "Not told: kernel rows of this file could not be read; figures are for the rest alone."
        )
    );
    assert!(run.findings.iter().all(|finding| finding.severity == Severity::Low));
    assert!(run.limitations.iter().all(|limitation| limitation.id != "no_kernels"));
}

#[test]
fn kernels_without_an_end_are_told() {
    for end in ["NULL", "start - 1"] {
        let change = format!("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = {end} WHERE rowid % 2 = 0");
        let (_folder, path) = export(&change);
        let run = diagnosis_of(&path);
        assert_eq!(
            run.verdict.statement,
            "Not told: 3 of 6 kernels have no usable end; figures are for the rest alone."
        );
        let told = run.limitations.iter().find(|limitation| limitation.id == "no_end").unwrap();
        assert_eq!(told.text, "3 of 6 kernels have no usable end; their time is in no figure.");
    }
}

#[test]
fn sizes_that_no_copy_has_count_as_missing() {
    let (_folder, path) = export("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 1 << 62");
    let run = diagnosis_of(&path);
    let copies: Vec<_> = run.copies.iter().map(|group| (group.bytes, group.without_bytes)).collect();
    assert_eq!(copies, [(0, 6)]);
}

#[test]
fn processes_whose_gpu_nobody_names_are_told() {
    let (_folder, path) =
        export("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = 2 << 24 WHERE rowid % 2 = 0");
    let run = diagnosis_of(&path);
    let told = run.limitations.iter().find(|limitation| limitation.id == "gpu_of_process").unwrap();
    assert_eq!(
        told.text,
        "several processes use device 0, and no table says which GPU each of them means; that prevents telling their GPUs \
         apart: with CUDA_VISIBLE_DEVICES they may be several, and figures of one GPU then mix them."
    );
    let (_folder, path) = export("");
    assert!(diagnosis_of(&path).limitations.iter().all(|limitation| limitation.id != "gpu_of_process"));
}

#[test]
fn rows_in_a_journal_are_told_with_their_remedy() {
    let (_folder, path) = export("");
    fs::write(path.with_file_name("made.sqlite-wal"), [0; 5000]).unwrap();
    let run = diagnosis_of(&path);
    let told = run.limitations.iter().find(|limitation| limitation.id == "lost").unwrap();
    assert_eq!(
        told.text,
        "the newest rows may be missing: they lie in the journal beside it, FILE-wal, which is not read (sqlite3 FILE \
         'PRAGMA wal_checkpoint(TRUNCATE)' brings them in, or export again); what was lost is in no figure."
    );
}
