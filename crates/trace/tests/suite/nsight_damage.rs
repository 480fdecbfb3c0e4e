//! Exports that were cut, damaged, or stripped of tables and columns: the rest is read, and nothing panics.

use std::fs;
use std::path::{Path, PathBuf};

use busbound_trace::{EventKind, Loss, LossKind, OpenError, ReadOptions, Trace, open};
use proptest::prelude::*;
use rusqlite::Connection;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight").join(name)
}

/// Writes the bytes to a file and reads it.
fn read(bytes: &[u8]) -> Result<Trace, OpenError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.sqlite");
    fs::write(&path, bytes).unwrap();
    open(&path, &ReadOptions::default())
}

fn count(trace: &Trace, kind: EventKind) -> usize {
    trace.events().filter(|event| event.kind() == kind).count()
}

#[test]
fn a_file_cut_short_gives_the_tables_that_are_left() {
    let whole = fs::read(fixture("off.sqlite")).unwrap();
    let trace = read(&whole[..whole.len() / 2]).unwrap();
    let stats = trace.stats();
    assert!(!stats.is_complete() && !trace.is_empty());
    assert_eq!((stats.losses[0].what, stats.losses[0].first_offset), (LossKind::DatabaseCut, 99_840));
    assert_eq!(stats.losses[0].bytes, 99_840);
    let of_tables = |loss: &Loss| loss.what == LossKind::DamagedTable && loss.table.is_some();
    assert!(stats.losses[1..].iter().any(of_tables), "{:?}", stats.losses);
}

#[test]
fn a_file_cut_short_names_the_tables_it_lost() {
    let whole = fs::read(fixture("off.sqlite")).unwrap();
    let trace = read(&whole[..whole.len() * 7 / 10]).unwrap();
    let stats = trace.stats();
    let mut damaged: Vec<_> = stats.losses.iter().filter_map(|loss| loss.table.as_deref()).collect();
    damaged.sort_unstable();
    // All tables with pages there, by SQLite's dbstat, except ENUM_NSYS_EVENT_CLASS, which is not read.
    assert_eq!(
        damaged,
        [
            "CUPTI_ACTIVITY_KIND_KERNEL",
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            "CUPTI_ACTIVITY_KIND_MEMSET",
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            "ENUM_NSYS_EVENT_TYPE",
            "META_DATA_CAPTURE",
        ]
    );
    assert!(stats.losses[1..].iter().all(|loss| loss.what == LossKind::DamagedTable));
    let lost: Vec<_> = stats.lost_work.damaged.keys().copied().collect();
    assert_eq!(lost, [EventKind::Kernel, EventKind::Copy, EventKind::Memset]);
}

#[test]
fn an_overwritten_page_loses_the_rows_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("overwritten.sqlite");
    fs::copy(fixture("off.sqlite"), &path).unwrap();
    let page: i64 = {
        let database = quick(&path);
        // A leaf page among the calls: overwrite the 20th child of the root, by its page number.
        let query = "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_RUNTIME'";
        database.query_row(query, [], |row| row.get(0)).unwrap()
    };
    let mut bytes = fs::read(&path).unwrap();
    let root = (usize::try_from(page).unwrap() - 1) * 1024;
    assert_eq!(bytes[root], 5, "the root must be an interior page of a table");
    let cell = usize::from(u16::from_be_bytes([bytes[root + 12 + 40], bytes[root + 13 + 40]]));
    let child = u32::from_be_bytes(bytes[root + cell..root + cell + 4].try_into().unwrap());
    let leaf = (child as usize - 1) * 1024;
    bytes[leaf..leaf + 1024].fill(0xa5);
    let trace = read(&bytes).unwrap();
    let calls = count(&trace, EventKind::RuntimeCall) + count(&trace, EventKind::DriverCall);
    // A page has about thirty rows; skipping it may lose as many again.
    assert!((2131 - 80..2131).contains(&calls), "{calls}");
    let damaged: Vec<_> =
        trace.stats().losses.iter().map(|loss| (loss.what, loss.table.as_deref())).collect();
    assert_eq!(damaged, [(LossKind::DamagedTable, Some("CUPTI_ACTIVITY_KIND_RUNTIME"))]);
    assert_eq!(count(&trace, EventKind::Kernel), 101);
}

#[test]
fn no_cut_panics() {
    let whole = fs::read(fixture("managed.sqlite")).unwrap();
    for end in (0..whole.len()).step_by(509).chain(0..120) {
        // Either an error message or a trace.
        if let Ok(trace) = read(&whole[..end]) {
            assert!(!trace.stats().is_complete() || trace.len() == 210, "cut at {end}");
        }
    }
}

/// Every table with its columns.
fn schema(database: &Connection) -> Vec<(String, Vec<String>)> {
    let mut statement =
        database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let columns = |table: &String| {
        let mut list = Vec::new();
        database
            .pragma(None, "table_info", table, |row| {
                list.push(row.get("name")?);
                Ok(())
            })
            .unwrap();
        list
    };
    tables.iter().map(|table| (table.clone(), columns(table))).collect()
}

/// A database that nobody needs after a power failure.
fn quick(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF").unwrap();
    database
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..Default::default() })]

    /// Versions differ in their tables and columns: any of them may be missing.
    #[test]
    fn any_table_or_column_may_be_missing(
        file in prop::sample::select(vec!["off.sqlite", "managed.sqlite"]),
        tables in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        columns in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stripped.sqlite");
        fs::copy(fixture(file), &path).unwrap();
        let database = quick(&path);
        let all = schema(&database);
        for (table, column) in columns {
            let (table, names) = table.get(&all);
            // Some columns cannot be dropped: the last one, and those of a key.
            let _ = database.execute_batch(&format!("ALTER TABLE \"{table}\" DROP COLUMN \"{}\"", column.get(names)));
        }
        for table in tables {
            let _ = database.execute_batch(&format!("DROP TABLE \"{}\"", table.get(&all).0));
        }
        drop(database);
        if let Ok(trace) = open(&path, &ReadOptions::default()) {
            prop_assert!(!trace.is_empty());
            for event in trace.events() {
                prop_assert!(event.duration().get() >= 0);
            }
        }
    }

    /// Bytes overwritten anywhere, including the header.
    #[test]
    fn no_damage_panics(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let mut bytes = fs::read(fixture("managed.sqlite")).unwrap();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
    }

    /// Values of any type and size instead of numbers and texts.
    #[test]
    fn no_value_panics(
        table in any::<prop::sample::Index>(),
        column in any::<prop::sample::Index>(),
        value in prop_oneof![
            any::<i64>().prop_map(rusqlite::types::Value::Integer),
            any::<f64>().prop_map(rusqlite::types::Value::Real),
            ".{0,20}".prop_map(rusqlite::types::Value::Text),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(rusqlite::types::Value::Blob),
            Just(rusqlite::types::Value::Null),
        ],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values.sqlite");
        fs::copy(fixture("managed.sqlite"), &path).unwrap();
        let database = quick(&path);
        let all = schema(&database);
        let (table, columns) = table.get(&all);
        let _ = database.execute(&format!("UPDATE \"{table}\" SET \"{}\" = ?", column.get(columns)), [value]);
        drop(database);
        let _ = open(&path, &ReadOptions::default());
    }
}

/// Found by fuzzing: pages with cells beyond their end.
#[test]
fn damage_reads_the_same_every_time() {
    let first = open(&fixture("damaged.sqlite"), &ReadOptions::default()).unwrap();
    let events =
        |trace: &Trace| trace.events().map(|event| (event.start(), event.duration())).collect::<Vec<_>>();
    for _ in 0..50 {
        let again = open(&fixture("damaged.sqlite"), &ReadOptions::default()).unwrap();
        assert_eq!(again.stats(), first.stats());
        assert_eq!(events(&again), events(&first));
    }
}

/// A database whose writer has not finished, as it is on disk: partly still in the write-ahead log.
fn unfinished(name: &str, before: &str, after: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written.sqlite");
    let writer = Connection::open(&written).unwrap();
    writer
        .execute_batch(&format!("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; {before}"))
        .unwrap();
    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    writer.execute_batch(after).unwrap();
    let left = folder.path().join(name);
    let journal = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    fs::copy(&written, &left).unwrap();
    fs::copy(journal(&written), journal(&left)).unwrap();
    (folder, left)
}

#[test]
fn rows_in_the_write_ahead_log_are_reported_as_missing() {
    const TABLE: &str =
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT);";
    const ROW: &str = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 10, 0, 7);";
    let losses = |path: &Path| {
        let trace = open(path, &ReadOptions::default()).unwrap();
        assert_eq!(trace.len(), 1);
        trace.stats().losses.iter().map(|loss| loss.what).collect::<Vec<_>>()
    };
    let (_kept, path) = unfinished("run.sqlite", &format!("{TABLE}{ROW}"), ROW);
    assert_eq!(losses(&path), [LossKind::RowsInJournal]);
    #[cfg(unix)]
    {
        let link = path.with_file_name("link.sqlite");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(losses(&link), [LossKind::RowsInJournal]);
    }
    // Everything is in the database, and the log is truncated.
    let (_kept, path) = unfinished("run.sqlite", &format!("{TABLE}{ROW}"), "");
    assert_eq!(losses(&path), []);

    for before in ["", TABLE, "CREATE TABLE other (id INT);"] {
        let after = if before == TABLE { ROW.to_owned() } else { format!("{TABLE}{ROW}") };
        let (_kept, path) = unfinished("my run.sqlite", before, &after);
        let error = open(&path, &ReadOptions::default()).err().unwrap().to_string();
        let remedy = format!("sqlite3 '{}' 'PRAGMA wal_checkpoint(TRUNCATE)'", path.display());
        assert!(
            error.contains("its rows are still in the write-ahead log next to it") && error.contains(&remedy),
            "{error}"
        );
    }
}

/// 100,000 calls, which several threads read; then `change` is applied, and one page in the middle is overwritten if wanted.
fn many_calls(path: &Path, change: &str, overwrites: bool) {
    let database = Connection::open(path).unwrap();
    let calls = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020');
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 10 * i, 10 * i + 5, 281486150337178 + i % 3, i, 1 + i % 2 FROM n;";
    database.execute_batch(&format!("{calls}{change}")).unwrap();
    let size: u32 = database.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let size = size as usize;
    drop(database);
    if overwrites {
        let mut bytes = fs::read(path).unwrap();
        let from = bytes.len() / size / 2 * size;
        bytes[from..from + size].fill(0xff);
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn several_threads_read_what_one_reads() {
    let row =
        |number: i64| format!("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET rowid = {number} WHERE rowid = 60000;");
    let without = "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE rowid BETWEEN 50001 AND 50010;";
    let text = "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = '7' WHERE rowid % 5 = 0;";
    for (change, overwrites, calls) in [
        ("", false, 100_000..=100_000),
        (without, false, 99_990..=99_990),
        (row(-5).as_str(), false, 100_000..=100_000),
        (row(7_000_000).as_str(), false, 100_000..=100_000),
        (text, false, 100_000..=100_000),
        // A page has a hundred rows or more; a lost part of the tree has more.
        ("", true, 90_000..=99_900),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.sqlite");
        many_calls(&path, change, overwrites);
        let on = |threads| {
            let trace = open(&path, &ReadOptions::default().threads(threads)).unwrap();
            let events = trace.events().map(|event| format!("{event:?} {:?}", event.correlation()));
            (events.collect::<Vec<_>>(), format!("{:?}", trace.stats()))
        };
        let one = on(1);
        assert!(calls.contains(&one.0.len()), "{change}: {} calls", one.0.len());
        for threads in [2, 3, 16] {
            assert!(on(threads) == one, "{change} on {threads} threads");
        }
    }
}

/// SQLite itself reads a table with a key; one without is read from its pages.
#[test]
fn rows_read_from_pages_are_those_that_sqlite_reads() {
    let ranges = |key: &str, page_size: u32| {
        format!(
            "PRAGMA page_size = {page_size};
            CREATE TABLE NVTX_EVENTS (start {key}, end, eventType INT, rangeId INT, text TEXT, globalTid INT, textId INT, extra TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
            INSERT INTO NVTX_EVENTS SELECT
                CASE WHEN i % 7 = 0 THEN 1000.0 * i WHEN i % 11 = 0 THEN -i WHEN i % 13 = 0 THEN 1234567890123 + i ELSE 300 * i END,
                CASE WHEN i % 17 = 0 THEN NULL WHEN i % 19 = 0 THEN '4000000000000' ELSE 2000000000000 + i END,
                CASE WHEN i % 23 = 0 THEN 34 ELSE 59 END, i % 3,
                CASE WHEN i % 997 = 0 THEN printf('%.*c', 40 * (i / 997), 'x') WHEN i % 5 = 0 THEN NULL ELSE 'aten::mm' || i % 100 END,
                281486150337178 + i % 3, NULL, 'é' FROM n;"
        )
    };
    for page_size in [512, 4096, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let [pages, queried] = ["INT", "INT PRIMARY KEY"].map(|key| {
            let path = folder.path().join(format!("{}.sqlite", key.len()));
            Connection::open(&path).unwrap().execute_batch(&ranges(key, page_size)).unwrap();
            let trace = open(&path, &ReadOptions::default()).unwrap();
            let events = trace.events().map(|event| format!("{event:?} {}", event.name()));
            (events.collect::<Vec<_>>(), trace.stats().losses.clone())
        });
        assert!(pages.0.len() > 35_000, "{}", pages.0.len());
        assert!(pages == queried, "pages of {page_size} bytes");
    }
}
