//! Does the table of collectives have the rates of nccl-tests for Nsight's exports, from the payloads of NCCL's NVTX ranges?
//!
//! The export is made like that of crates/trace/tests/suite/nsight/nccl.rs, which says what of it is known from real files.

use busbound_diagnosis::{CollectiveGroup, CollectiveOp, Diagnosis, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, open};
use rusqlite::Connection;

const RANKS: u64 = 8;

/// Six steps of a kernel of 5 ms and these collectives: the range that launches the kernels, its bytes, and the ends of the kernels in µs.
fn export(steps: [&[(&str, u64, &[i64])]; 6]) -> Diagnosis {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.sqlite");
    let database = Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel'), (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL');
             CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,
                correlationId INT, globalPid INT, demangledName INT);
             CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
             CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, domainId INT, binaryData TEXT);
             CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, name TEXT, offset INT);
             INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
                (1, 16777223, 0, 'NCCL communicator ID', NULL), (1, 16777223, 1, 'Message size [bytes]', 8),
                (1, 16777223, 2, 'Reduction operation', 16),
                (1, 16777227, 0, 'NCCL communicator ID', NULL), (1, 16777227, 1, 'No. of ranks', 8);",
        )
        .unwrap();
    let mut correlation = 0;
    let mut launch = |stream: i64, name: i64, call: i64, start: i64, end: i64| {
        correlation += 1;
        let call = (call, call + 1000, 16_777_216 + 1, correlation, 2);
        let kernel = (start, end, 0, 1, stream, correlation, 16_777_216, name);
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", call).unwrap();
        database
            .execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)", kernel)
            .unwrap();
    };
    let range = |name: &str, domain: i64, start: i64, end: i64, data: Option<Vec<u8>>| {
        let row = (start, end, 59, name, 16_777_216 + 1, domain, data);
        database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", row).unwrap();
    };
    let payload =
        |schema: u64, second: u64| Some([1, schema, 24, 32, 0xabc, second, 0].map(u64::to_le_bytes).concat());
    range("ncclCommInitRank", 1, 0, 10, payload(16_777_227, RANKS));
    for (number, collectives) in steps.iter().enumerate() {
        let mut at = 1_000_000 + 20_000_000 * number as i64;
        range("step", 0, at, at + 20_000_000, None);
        launch(7, 1, at + 1000, at + 5000, at + 5_000_000);
        let mut call = at + 10_000;
        at += 5_000_000;
        for (name, bytes, micros) in *collectives {
            range(name, 1, call, call + 100_000, payload(16_777_223, *bytes));
            for micros in *micros {
                launch(30, 3, call + 1000, at, at + micros * 1000);
                call += 5000;
                at += micros * 1000;
            }
            call += 200_000;
        }
    }
    drop(database);
    let trace = open(&path, &ReadOptions::default()).unwrap();
    assert!(trace.stats().is_complete());
    diagnose(&trace, &Source::named("made.sqlite"), &Machine::default(), &Options::default())
}

fn groups(diagnosis: &Diagnosis) -> Vec<&CollectiveGroup> {
    diagnosis.collectives.iter().collect()
}

/// 100 MB in 2 ms, 8 ranks: 50 GB/s, times 2 (8 − 1) / 8. The others wait 1 ms.
#[test]
fn all_reduces_have_the_rates_of_nccl_tests() {
    let fast: &[(&str, u64, &[i64])] = &[("ncclAllReduce", 100_000_000, &[2000])];
    let slow: &[(&str, u64, &[i64])] = &[("ncclAllReduce", 100_000_000, &[3000])];
    let diagnosis = export([fast, slow, slow, fast, slow, slow]);
    let [group] = groups(&diagnosis)[..] else { panic!("{:?}", diagnosis.collectives) };
    assert_eq!((group.op, group.ranks, group.bytes), (CollectiveOp::AllReduce, Some(8), Some(100_000_000)));
    assert_eq!((group.algbw_gbps, group.busbw_gbps), (Some(50.0), Some(87.5)));
    assert_eq!((group.dtype.as_deref(), group.group.as_deref()), (None, Some("0xabc")));
    assert_eq!(group.waiting_ms, Some((group.ms - 2.0 * group.count as f64).round()));
    assert!(group.count >= 4, "{group:?}");
}

/// NCCL may launch several kernels for one call or group: none of them moved all bytes.
#[test]
fn several_kernels_of_one_range_have_no_size() {
    let steps: &[(&str, u64, &[i64])] = &[("ncclAllReduce", 100_000_000, &[1000, 1000])];
    let diagnosis = export([steps; 6]);
    let [group] = groups(&diagnosis)[..] else { panic!("{:?}", diagnosis.collectives) };
    assert_eq!((group.op, group.bytes, group.algbw_gbps), (CollectiveOp::AllReduce, None, None));
}
