//! Odd values, foreign databases, reports, and exports that exceed the memory limit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use busbound_trace::{
    Bytes, EventKind, LossKind, MemoryOwner, OpenError, Place, ReadOptions, Repair, discover,
    is_nsight_report, open, read,
};

use super::{fixture, of_kind, read_file};
use crate::made::export;

/// Some converters give every column the type text, or write integers as floats.
#[test]
fn numbers_written_as_text_are_numbers() {
    let read_as = |column_type: &str, pad: &str| {
        let (_kept, path) = export(&format!(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start {column_type}, end {column_type}, deviceId {column_type}, streamId {column_type},
                bytes {column_type}, copyKind {column_type}, srcKind {column_type}, dstKind {column_type});
             INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ('{pad}1000', '1250{pad}', '1', '7', '{pad}4096{pad}', '1', '0', '2'),
                ('ten', '20', '1', '7', '4096', '1', '0', '2'), ('2000', '2100', '1', '7', 'many', '1', '0', '2');"
        ));
        let trace = read_file(&path);
        let losses: Vec<_> = trace.stats().losses.iter().map(|loss| (loss.what, loss.count)).collect();
        assert_eq!(losses, [(LossKind::UnusableRow, 1)], "{column_type}");
        assert_eq!(trace.stats().repairs, BTreeMap::from([(Repair::UnusableSize, 1)]), "{column_type}");
        let copies = trace.events().map(|copy| {
            (
                copy.name().to_owned(),
                copy.place(),
                copy.start().as_nanos(),
                copy.duration().get(),
                copy.transfer().unwrap().bytes,
            )
        });
        copies.collect::<Vec<_>>()
    };
    let (name, place) = ("Memcpy HtoD (Pageable -> Device)", Place::Stream { device: 1, stream: 7 });
    for (column_type, pad) in [("TEXT", ""), ("TEXT", " "), ("REAL", ""), ("INT", "")] {
        assert_eq!(
            read_as(column_type, pad),
            [
                (name.to_owned(), place, 1000, 250, Some(Bytes::new(4096))),
                (name.to_owned(), place, 2000, 100, None)
            ],
            "{column_type} {pad:?}"
        );
    }
}

#[test]
fn impossible_copy_sizes_are_counted() {
    let (_kept, path) = export(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, bytes INT, copyKind INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 10, 0, 7, 1 << 50, 1), (10, 20, 0, 7, (1 << 50) + 1, 1),
            (20, 30, 0, 7, -1, 1), (30, 40, 0, 7, NULL, 1), (40, 50, 0, 7, 0, 1);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, streamId INT, bytes INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (60, 70, 0, 7, 1 << 62);",
    );
    let trace = read_file(&path);
    let sizes: Vec<_> = trace.events().map(|event| event.transfer().unwrap().bytes.map(Bytes::get)).collect();
    assert_eq!(sizes, [Some(1 << 50), None, None, None, Some(0), None]);
    // A missing size is not a wrong one.
    assert_eq!(trace.stats().repairs, BTreeMap::from([(Repair::UnusableSize, 3)]));
}

#[test]
fn allocations_are_memory_samples() {
    let (_kept, path) = export(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1, 0, 7);
         CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, globalPid INT, deviceId INT, bytes INT, memKind INT,
            memoryOperationType INT);
         INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (30, 0, 0, 100, 2, 1), (10, 0, 0, 300, 2, 0), (20, 0, 0, 50, 1, 0);",
    );
    let trace = read_file(&path);
    let samples: Vec<_> = trace
        .memory()
        .iter()
        .map(|sample| (sample.at.as_nanos(), sample.owner, sample.change, sample.reserved))
        .collect();
    use MemoryOwner::{Device, Host};
    assert_eq!(samples, [(10, Device(0), 300, 300), (20, Host, 50, 50), (30, Device(0), -100, 200)]);
}

#[test]
fn events_that_nsight_did_not_collect_are_a_loss() {
    let (_kept, path) = export(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 1, 0, 7), (NULL, 9, 0, 7), (3, NULL, 0, 7);
         CREATE TABLE DIAGNOSTIC_EVENT (timestamp INT, source INT, severity INT, text TEXT);
         INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 1, 'Profiling has started.'),
            (1, 1, 2, 'Not all CUDA events might have been collected.'), (2, 1, 3, 'An error.');",
    );
    let trace = read_file(&path);
    let stats = trace.stats();
    let losses: Vec<_> =
        stats.losses.iter().map(|loss| (loss.what, loss.table.as_deref(), loss.count)).collect();
    assert_eq!(
        losses,
        [(LossKind::NotCollected, None, 1), (LossKind::UnusableRow, Some("CUPTI_ACTIVITY_KIND_KERNEL"), 1)]
    );
    assert_eq!(stats.repairs, BTreeMap::from([(Repair::NegativeDuration, 1), (Repair::MissingDuration, 1)]));
    assert_eq!(
        trace.origin().profiler_messages,
        ["Not all CUDA events might have been collected.", "An error."]
    );
}

#[test]
fn a_database_that_is_not_an_export_is_an_error() {
    let (_kept, path) = export("CREATE TABLE users (id INT); CREATE TABLE sessions (id INT);");
    let error = open(&path, &ReadOptions::default()).unwrap_err();
    assert!(
        matches!(&error, OpenError::OtherDatabase { tables, .. } if tables == "sessions, users"),
        "{error}"
    );
    // Also what old versions write of a program that does not use CUDA: "not an Nsight Systems export".
    for tables in [
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT);",
        "CREATE TABLE StringIds (id INT, value TEXT); CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);",
    ] {
        let (_kept, path) = export(tables);
        assert!(
            matches!(open(&path, &ReadOptions::default()), Err(OpenError::EmptyExport { .. })),
            "{tables}"
        );
    }
}

#[test]
fn databases_are_only_read_from_plain_files() {
    let bytes = fs::read(fixture("off.sqlite")).unwrap();
    let error = read(&bytes[..], Path::new("-"), &ReadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "- is an SQLite database that comes from a stream, but databases can only be read from a plain file: save it to a file and pass that"
    );
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut zipped, &bytes).unwrap();
    let zipped = zipped.finish().unwrap();
    let error = read(&zipped[..], Path::new("off.sqlite.gz"), &ReadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "off.sqlite.gz is an SQLite database that is compressed, but databases can only be read from a plain file: gunzip it first"
    );
}

#[test]
fn a_report_names_the_command_that_exports_it() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("x.nsys-rep");
    fs::write(&report, b"\x01\x02 not public").unwrap();
    assert!(is_nsight_report(&report));
    let error = open(&report, &ReadOptions::default()).unwrap_err().to_string();
    let database = folder.path().join("x.sqlite");
    let command = format!("nsys export --type sqlite -o {} {}", database.display(), report.display());
    // Windows paths are quoted, because of their backslashes.
    assert!(error.replace('\'', "").ends_with(&command), "{error}");

    fs::copy(fixture("off.sqlite"), &report).unwrap();
    assert!(!is_nsight_report(&report));
    assert_eq!(read_file(&report).len(), 2573);
}

#[test]
fn a_directory_lists_exports_and_reports_but_no_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.nsys-rep", "a.sqlite", "b.nsys-rep", "c.json", "d.txt"] {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let found = discover(folder.path()).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.sqlite", "b.nsys-rep", "c.json"]);
}

#[test]
fn the_memory_limit_stops_reading_and_is_reported() {
    let trace = open(&fixture("off.sqlite"), &ReadOptions::default().memory_bound(110_000)).unwrap();
    assert!(trace.stats().losses.iter().any(|loss| loss.what == LossKind::MemoryBound));
    // Device work is read first.
    assert_eq!(of_kind(&trace, EventKind::Kernel).len(), 101);
    assert!(trace.len() < 2573);
}

#[test]
fn a_memory_limit_below_the_first_event_is_not_blamed_on_the_file() {
    let error = open(&fixture("off.sqlite"), &ReadOptions::default().memory_bound(1)).unwrap_err();
    let OpenError::MemoryTooSmall { takes: Some(takes), .. } = error else { panic!("{error}") };
    assert!(
        error.to_string().ends_with(
            "off.sqlite does not fit into --memory: reading stops before its first event; \
             raise --memory (the whole file needs about 1 MB)"
        ),
        "{error}"
    );
    // The suggested limit is enough.
    let trace = open(&fixture("off.sqlite"), &ReadOptions::default().memory_bound(takes)).unwrap();
    assert!(trace.stats().is_complete());
}
