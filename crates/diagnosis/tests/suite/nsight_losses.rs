//! Is the verdict inconclusive if an export lacks GPU work?

use std::fs;
use std::path::{Path, PathBuf};

use busbound_diagnosis::{Bound, Diagnosis, LimitationId, Options, Severity, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{EventKind, ReadOptions, open};
use rusqlite::Connection;
use tempfile::TempDir;

/// Six steps of a 1 ms copy and a 20 ms kernel, modified by an SQL statement.
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

const PAGE: usize = 4096;

/// The offset of the first page of the kernel table.
fn root_of_kernels(path: &Path) -> usize {
    let database = Connection::open(path).unwrap();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'";
    let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("PRAGMA page_size"), 4096);
    (usize::try_from(number(root)).unwrap() - 1) * PAGE
}

fn change(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// The offset of the child page that a cell of an interior page points to.
fn child(bytes: &[u8], page: usize, cell: usize) -> usize {
    assert_eq!(bytes[page], 5, "an interior page of a table");
    let at = page + 12 + 2 * cell;
    let at = page + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    (u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize - 1) * PAGE
}

/// Splits every kernel into `count` kernels.
fn split(count: u32) -> String {
    format!(
        "CREATE TABLE whole AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL;
         DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;
         WITH RECURSIVE piece(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM piece WHERE i < {count} - 1)
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
            SELECT start + i * (20000000 / {count}), start + (i + 1) * (20000000 / {count}), 0, 1, 7,
                correlationId, globalPid, 1 FROM whole, piece ORDER BY 1;
         DROP TABLE whole;"
    )
}

#[test]
fn few_lost_rows_keep_the_verdict_and_are_reported() {
    for (pieces, is_conclusive) in [(4000, true), (200, false)] {
        let (_folder, path) = export(&split(pieces));
        let root = root_of_kernels(&path);
        change(&path, |bytes| {
            let leaf = child(bytes, root, 3);
            bytes[leaf..leaf + PAGE].fill(0xa5);
        });
        let trace = open(&path, &ReadOptions::default()).unwrap();
        let rows = u64::from(6 * pieces);
        let kernels = trace.events().filter(|event| event.kind() == EventKind::Kernel).count() as u64;
        // A page has about a hundred rows; skipping it may lose as many again.
        assert!((1..300).contains(&(rows - kernels)), "{kernels}");
        let run = diagnosis_of(&path);
        let verdict = if is_conclusive { Bound::Compute } else { Bound::Unknown };
        assert_eq!(run.verdict.bound, verdict, "{}", run.verdict.statement);
        let lost = run.limitations.iter().find(|limitation| limitation.id == LimitationId::LostRows).unwrap();
        let thousands =
            |n: u64| if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) };
        assert_eq!(
            lost.text,
            format!(
                "At most {} of {} kernel rows could not be read; no figure includes their time.",
                rows - kernels,
                thousands(rows)
            )
        );
    }
}

/// One row ID is damaged: all rows up to it are skipped, without a visible gap.
#[test]
fn a_row_that_skips_others_makes_the_verdict_inconclusive() {
    let (_folder, path) = export(&split(2000));
    let root = root_of_kernels(&path);
    change(&path, |bytes| {
        let leaf = child(bytes, root, 20);
        assert_eq!(bytes[leaf], 13, "a leaf of a table");
        // Its first cell: the length, then the row ID, which has two bytes, like 11,000.
        let cell = leaf + usize::from(u16::from_be_bytes([bytes[leaf + 8], bytes[leaf + 9]]));
        let number = u32::from(bytes[cell + 1] & 0x7f) << 7 | u32::from(bytes[cell + 2]);
        assert!((1000..6000).contains(&number) && bytes[cell + 1] >= 0x80, "{number}");
        bytes[cell + 1..cell + 3].copy_from_slice(&[0x80 | (11_000u32 >> 7) as u8, (11_000u32 & 0x7f) as u8]);
    });
    let run = diagnosis_of(&path);
    assert_eq!(
        run.verdict.statement,
        "Inconclusive: kernel rows of this file could not be read; figures cover only the rest. For a verdict: use the file that the profiler wrote, or \
         record again."
    );
}

#[test]
fn lost_kernels_do_not_make_a_run_transfer_bound() {
    let (_folder, path) = export("");
    assert_eq!(diagnosis_of(&path).verdict.bound, Bound::Compute);
    let page = root_of_kernels(&path);
    change(&path, |bytes| bytes[page..page + PAGE].fill(0xa5));
    let run = diagnosis_of(&path);
    assert_eq!(
        (run.verdict.bound, run.verdict.statement.as_str()),
        (
            Bound::Unknown,
            "Inconclusive: kernel rows of this file could not be read; figures cover only the rest. For a verdict: use the file that the profiler wrote, or \
         record again."
        )
    );
    assert!(run.findings.iter().all(|finding| finding.severity == Severity::Low));
    assert!(run.limitations.iter().all(|limitation| limitation.id != LimitationId::NoKernels));
}

#[test]
fn kernels_without_an_end_are_reported() {
    for end in ["NULL", "start - 1"] {
        let change = format!("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = {end} WHERE rowid % 2 = 0");
        let (_folder, path) = export(&change);
        let run = diagnosis_of(&path);
        assert_eq!(
            run.verdict.statement,
            "Inconclusive: 3 of 6 kernels have no usable end; figures cover only the rest. For a verdict: use the file that the profiler wrote, or \
         record again."
        );
        let no_end = run.limitations.iter().find(|limitation| limitation.id == LimitationId::NoEnd).unwrap();
        assert_eq!(no_end.text, "3 of 6 kernels have no usable end; no figure includes their time.");
    }
}

#[test]
fn impossible_copy_sizes_count_as_missing() {
    let (_folder, path) = export("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 1 << 62");
    let run = diagnosis_of(&path);
    let copies: Vec<_> = run.copies.iter().map(|group| (group.bytes, group.without_bytes)).collect();
    assert_eq!(copies, [(0, 6)]);
}

#[test]
fn processes_with_an_unknown_gpu_are_reported() {
    let (_folder, path) =
        export("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = 2 << 24 WHERE rowid % 2 = 0");
    let run = diagnosis_of(&path);
    let unknown =
        run.limitations.iter().find(|limitation| limitation.id == LimitationId::GpuOfProcess).unwrap();
    assert_eq!(
        unknown.text,
        "several processes use device 0, and no table says which GPU each process used; this prevents separating their GPUs: \
         with CUDA_VISIBLE_DEVICES these may be different GPUs, and the figures of one GPU then mix them."
    );
    let (_folder, path) = export("");
    assert!(
        diagnosis_of(&path).limitations.iter().all(|limitation| limitation.id != LimitationId::GpuOfProcess)
    );
}

#[test]
fn rows_in_a_journal_are_reported_with_a_remedy() {
    let (_folder, path) = export("");
    fs::write(path.with_file_name("made.sqlite-wal"), [0; 5000]).unwrap();
    let run = diagnosis_of(&path);
    let lost = run.limitations.iter().find(|limitation| limitation.id == LimitationId::Lost).unwrap();
    assert_eq!(
        lost.text,
        "the newest rows may be missing: they are still in the write-ahead log next to it, FILE-wal, which is not read \
         (sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)' merges them, or export again); no figure includes the lost part."
    );
}

/// An export without its table of kernels: "the profiler dropped records". What the host and the copies did is still there.
#[test]
fn an_export_without_a_kernel_table_is_judged_from_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("off.sqlite");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight/off.sqlite"), &path).unwrap();
    Connection::open(&path).unwrap().execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", []).unwrap();
    let run = crate::common::diagnosis_of(&path);
    assert_eq!(run.verdict.bound, Bound::Unknown, "{}", run.verdict.statement);
    let said = "101 of 101 kernel launches have no kernel in the trace: kernels were not recorded, or the file lost them";
    assert!(run.verdict.statement.contains(said), "{}", run.verdict.statement);
    // A shorter recording would not have them either.
    assert!(run.verdict.statement.contains("export all tables: nsys export"), "{}", run.verdict.statement);
    assert!(run.copies.iter().any(|copy| copy.blocking.ms > 0.0), "{:?}", run.copies);
}
