//! The tables of real traces: they add up to the diagnosis, survive a round trip through Parquet, and are documented.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should fail immediately")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch, StringArray};
use busbound_diagnosis::{Diagnosis, Options, Source, diagnose_and_itemize};
use busbound_machine::Machine;
use busbound_tables::{Batches, Provenance, Table, Tables, write_parquet};
use busbound_trace::{ReadOptions, Trace, open};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn at_root(path: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", path].iter().collect()
}

fn tables(fixture: &str) -> (Diagnosis, Arc<Tables<Trace>>) {
    let trace = open(&at_root("fixtures").join(fixture), &ReadOptions::default()).unwrap();
    let source = Source::named(fixture);
    let (diagnosis, items) = diagnose_and_itemize(&trace, &source, &Machine::default(), &Options::default());
    (diagnosis, Arc::new(Tables::of(trace, items)))
}

fn whole(tables: &Tables<Trace>, table: Table) -> RecordBatch {
    tables.batch(table, 0..usize::MAX).unwrap()
}

fn numbers(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().iter().collect()
}

fn words(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let words = batch.column_by_name(column).unwrap().as_dictionary::<Int32Type>();
    let words = words.downcast_dict::<StringArray>().unwrap();
    words.into_iter().map(|word| word.map(str::to_owned)).collect()
}

fn flags(batch: &RecordBatch, column: &str) -> Vec<bool> {
    batch.column_by_name(column).unwrap().as_boolean().iter().map(Option::unwrap).collect()
}

/// Milliseconds of a column over the rows that the diagnosis includes, by a string column.
fn judged_ms_by(batch: &RecordBatch, column: &str, by: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    let rows = words(batch, by).into_iter().zip(numbers(batch, column)).zip(flags(batch, "analyzed"));
    for ((word, nanos), _) in rows.filter(|(_, analyzed)| *analyzed) {
        *sums.entry(word.unwrap()).or_insert(0.0) += nanos.unwrap() as f64 / 1e6;
    }
    sums
}

/// The JSON name of a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * a.abs().max(b.abs()).max(1.0)
}

#[test]
fn copies_add_up_to_the_groups_of_the_diagnosis() {
    // The second one skips steps as warm-up; the third one moves managed memory.
    for fixture in ["off_block_pageable_c4.json.gz", "runs/unlike_steps.json.gz", "nsight/managed.sqlite"] {
        let (diagnosis, tables) = tables(fixture);
        let copies = whole(&tables, Table::Copies);
        let groups =
            words(&copies, "direction").into_iter().zip(words(&copies, "src")).zip(words(&copies, "dst"));
        let groups: Vec<_> =
            groups.map(|((direction, src), dst)| (direction.unwrap(), src.unwrap(), dst.unwrap())).collect();
        assert!(!diagnosis.copies.is_empty(), "{fixture}");
        for group in &diagnosis.copies {
            let key = (word(&group.direction), word(&group.src), word(&group.dst));
            let analyzed = flags(&copies, "analyzed");
            let rows: Vec<usize> = (0..groups.len()).filter(|&i| groups[i] == key && analyzed[i]).collect();
            let sum = |column: &str| {
                let column = numbers(&copies, column);
                rows.iter().map(|&i| column[i].unwrap_or(0)).sum::<i64>()
            };
            assert_eq!(rows.len() as u64, group.count, "{fixture} {key:?}");
            assert_eq!(sum("bytes") as u64, group.bytes, "{fixture} {key:?}");
            assert!(is_near(sum("duration_ns") as f64 / 1e6, group.total_ms), "{fixture} {key:?}");
            assert!(is_near(sum("blocking_ns") as f64 / 1e6, group.blocking.ms), "{fixture} {key:?}");
            assert!(is_near(sum("waited_after_ns") as f64 / 1e6, group.waited_after.ms), "{fixture} {key:?}");
            // Copies of one group that overlap each other count once in the group's exposed time.
            if is_near(group.busy_ms, group.total_ms) {
                assert!(is_near(sum("exposed_ns") as f64 / 1e6, group.exposed_ms), "{fixture} {key:?}");
            }
        }
    }
}

#[test]
fn gaps_add_up_to_the_idle_time_of_the_diagnosis() {
    let (diagnosis, tables) = tables("off_block_pageable_c4.json.gz");
    let gaps = whole(&tables, Table::Gaps);
    let by_cause = judged_ms_by(&gaps, "duration_ns", "cause");
    assert_eq!(by_cause.len(), diagnosis.idle.len());
    for idle in &diagnosis.idle {
        let cause = word(&idle.cause);
        assert!(is_near(by_cause[&cause], idle.ms), "{cause}: {} against {}", by_cause[&cause], idle.ms);
    }
}

#[test]
fn steps_are_those_of_the_diagnosis() {
    let (diagnosis, tables) = tables("runs/unlike_steps.json.gz");
    let steps = whole(&tables, Table::Steps);
    let found = diagnosis.window.steps.unwrap();
    let analyzed = flags(&steps, "analyzed");
    let lengths: Vec<f64> = numbers(&steps, "duration_ns")
        .into_iter()
        .zip(&analyzed)
        .filter(|(_, analyzed)| **analyzed)
        .map(|(nanos, _)| nanos.unwrap() as f64 / 1e6)
        .collect();
    assert_eq!(lengths.len(), found.count);
    // The diagnosis starts its first step with the step's own work; the table starts it at the end of the previous
    // step.
    assert_eq!(lengths[1..], found.each_ms[1..]);
    let outliers = flags(&steps, "outlier").into_iter().filter(|outlier| *outlier).count();
    assert_eq!(outliers, diagnosis.window.outlier_count);
    let warm_up = flags(&steps, "warm_up").into_iter().filter(|warm_up| *warm_up).count();
    assert_eq!(warm_up, found.warmup_dropped);
}

#[test]
fn times_of_a_step_add_up_to_its_duration() {
    let (_, tables) = tables("off_block_pageable_c4.json.gz");
    let steps = whole(&tables, Table::Steps);
    assert_eq!(steps.num_rows(), 4);
    let column = |name| -> Vec<i64> { numbers(&steps, name).into_iter().map(Option::unwrap).collect() };
    for i in 0..steps.num_rows() {
        let parts = column("compute_ns")[i] + column("exposed_copy_ns")[i] + column("idle_ns")[i];
        let length = column("duration_ns")[i];
        // Memsets, and the time before the first work of the first step, are in none of the three.
        assert!(parts <= length && parts > length * 99 / 100, "{parts} of {length} ns");
    }
}

#[test]
fn events_of_threads_and_devices_are_distinguished() {
    let (_, tables) = tables("off_block_pageable_c4.json.gz");
    let events = whole(&tables, Table::Events);
    let devices = events.column_by_name("device").unwrap().as_primitive::<Int32Type>();
    let processes = events.column_by_name("process").unwrap();
    assert!((0..events.num_rows()).all(|i| devices.is_null(i) != processes.is_null(i)));
    // Every copy refers to its own event.
    let copies = whole(&tables, Table::Copies);
    let (kinds, starts) = (words(&events, "kind"), numbers(&events, "start_ns"));
    assert!(copies.num_rows() > 0);
    for (event, start) in numbers(&copies, "event").into_iter().zip(numbers(&copies, "start_ns")) {
        let row = usize::try_from(event.unwrap()).unwrap();
        assert_eq!((kinds[row].as_deref(), starts[row]), (Some("copy"), start));
    }
    let operators = words(&copies, "operator");
    assert!(operators.iter().all(|operator| operator.as_deref() == Some("aten::copy_")), "{operators:?}");
}

#[test]
fn migrations_have_a_cause() {
    let (_, tables) = tables("nsight/managed.sqlite");
    let causes = words(&whole(&tables, Table::Copies), "migration");
    assert!(causes.iter().any(|cause| cause.as_deref() == Some("fault")), "{causes:?}");
}

#[test]
fn parquet_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    // One with everything, one without a device.
    for fixture in ["off_layerwise_d2_c4.json.gz", "cpuonly_block_pageable.json.gz"] {
        let (diagnosis, tables) = tables(fixture);
        let folder = folder.path().join("new").join(fixture);
        write_parquet(&folder, &tables, &Provenance::of(&diagnosis)).unwrap();
        for table in Table::ALL {
            let path = folder.join(format!("{}.parquet", table.name()));
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
            assert_eq!(reader.schema().fields(), table.schema().fields());
            let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
            let value =
                |key: &str| about.iter().find(|entry| entry.key == key).unwrap().value.clone().unwrap();
            assert_eq!(value("busbound.schema"), "busbound.tables/2");
            assert_eq!(value("busbound.source"), fixture);
            assert_eq!(value("busbound.complete"), "true");
            let rows: usize = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, tables.rows(table), "{fixture} {}", table.name());
        }
        let read = |table: Table| {
            let file = File::open(folder.join(format!("{}.parquet", table.name()))).unwrap();
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20).build().unwrap()
        };
        for batch in read(Table::Copies) {
            let (written, batch) = (whole(&tables, Table::Copies), batch.unwrap());
            for column in ["start_ns", "exposed_ns", "bytes"] {
                assert_eq!(numbers(&batch, column), numbers(&written, column));
            }
            assert_eq!(words(&batch, "src"), words(&written, "src"));
            let rates = |batch: &RecordBatch| -> Vec<_> {
                batch.column_by_name("gbps").unwrap().as_primitive::<Float64Type>().iter().collect()
            };
            assert_eq!(rates(&batch), rates(&written));
        }
    }
}

#[test]
fn batches_add_up_to_the_table() {
    let (_, tables) = tables("launch_bound.json.gz");
    let batches: Vec<RecordBatch> = Batches::of(&tables, Table::Events).map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), tables.rows(Table::Events));
    let first = whole(&tables, Table::Events).slice(0, batches[0].num_rows());
    assert_eq!(batches[0], first);
}

/// `BUSBOUND_WRITE_DOCS=1` writes them.
#[test]
fn the_columns_are_documented() {
    let path = at_root("docs/tables.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- columns -->\n", "<!-- end of columns -->");
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let expected = format!("{before}{begin}{}{end}{after}", documentation());
    if std::env::var_os("BUSBOUND_WRITE_DOCS").is_some() {
        std::fs::write(Path::new(&path), expected).unwrap();
    } else {
        assert_eq!(text, expected, "BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-tables writes it");
    }
}

fn documentation() -> String {
    let mut text = String::new();
    for table in Table::ALL {
        text.push_str(&format!("\n### {}\n\n{}\n\n", table.name(), table.what()));
        text.push_str("| column | type | unit | may be null | |\n|---|---|---|---|---|\n");
        for column in table.columns() {
            let (unit, null) = (column.holds.unit().unwrap_or(""), if column.nullable { "yes" } else { "" });
            let (name, sql, what) = (column.name, column.holds.sql(), column.what);
            text.push_str(&format!("| `{name}` | {sql} | {unit} | {null} | {what} |\n"));
        }
    }
    text + "\n"
}
