//! What NCCL says in its NVTX ranges: bytes, communicator, root, peer, reduction, and which range a kernel gets them from.
//!
//! The exports are made: no public one has both NCCL's payloads and their kernels. Tables, numbers of schemas, types and offsets are those of
//! an export by Nsight Systems 2026.2 of two GPUs (PyTorch with NCCL) whose payloads were removed; the names are those in NCCL's
//! nvtx_payload_schemas.h, the bytes in front of a payload those that other readers of such exports document.

use std::fmt::Write as _;

use super::read_file;
use crate::made::export;
use busbound_trace::{Collective, EventKind, Trace};

/// Numbers of NCCL's schemas begin here.
const FIRST: u64 = 1 << 24;
const ALL_GATHER: u64 = FIRST + 4;
const BROADCAST: u64 = FIRST + 6;
/// All-reduce has the same layout.
const REDUCE_SCATTER: u64 = FIRST + 7;
const SEND: u64 = FIRST + 9;
const RECV: u64 = FIRST + 10;
const INIT: u64 = FIRST + 11;

/// Tables as Nsight declares them; the payload column has the type TEXT.
const TABLES: &str = "
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,
        correlationId INT, globalPid INT, demangledName INT, shortName INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
    CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
        color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, jsonText TEXT,
        binaryData TEXT);
    CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId INTEGER, schemaId INTEGER, name TEXT, type INTEGER, flags INTEGER, numEntries INTEGER,
        payloadSize INTEGER, alignTo INTEGER);
    CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL,
        flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER);
    INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)'), (2, 'cuLaunchKernelEx');
    INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId) VALUES (0, 75, 'NCCL', 281474976710656 + (100 << 24), 1);
    INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
        (1, 16777220, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
        (1, 16777220, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8),
        (1, 16777222, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
        (1, 16777222, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8),
        (1, 16777222, 2, NULL, 5, 'Root', NULL, NULL, 16),
        (1, 16777223, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
        (1, 16777223, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8),
        (1, 16777223, 2, NULL, 16777232, 'Reduction operation', NULL, NULL, 16),
        (1, 16777225, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
        (1, 16777225, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8),
        (1, 16777225, 2, NULL, 5, 'Peer rank', NULL, NULL, 16),
        (1, 16777226, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
        (1, 16777226, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8),
        (1, 16777226, 2, NULL, 5, 'Peer rank', NULL, NULL, 16),
        (1, 16777227, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
        (1, 16777227, 1, NULL, 5, 'No. of ranks', NULL, NULL, 8),
        (1, 16777227, 2, NULL, 5, 'Rank', NULL, NULL, 12),
        (1, 16777227, 3, NULL, 5, 'CUDA device', NULL, NULL, 16);
";

/// A call of NCCL: its function, its schema, and what follows the communicator in its payload.
#[derive(Clone, Copy)]
struct Call {
    function: &'static str,
    payload: Option<(u64, u64, u32, u32)>,
}

fn call(function: &'static str, schema: u64, bytes: u64, more: u32) -> Call {
    Call { function, payload: Some((schema, bytes, more, 0)) }
}

fn plain(function: &'static str) -> Call {
    Call { function, payload: None }
}

/// Ranks are the low half of what follows the communicator, the rank the high one.
fn init(function: &'static str, ranks: u64) -> Call {
    Call { function, payload: Some((INIT, ranks, 0, 0)) }
}

const COMMUNICATOR: u64 = 0xfeed_0000_0000_0abc;

/// These calls one after another on one thread, every microsecond.
fn of_calls(calls: &[Call]) -> Trace {
    let mut sql = TABLES.to_owned();
    for (at, call) in calls.iter().enumerate() {
        let start = 1000 * (at + 1);
        let data = call.payload.map_or("NULL".to_owned(), |(schema, bytes, more, rest)| {
            let header = [1, schema, 24, 32].map(u64::to_le_bytes).concat();
            let payload = [COMMUNICATOR.to_le_bytes(), bytes.to_le_bytes()].concat();
            let tail = [more.to_le_bytes(), rest.to_le_bytes()].concat();
            let size = if schema == ALL_GATHER { 16 } else { 24 };
            let mut all = [header, payload, tail].concat();
            all[16] = size;
            all.truncate(32 + usize::from(size));
            all.iter().fold("X'".to_owned(), |text, byte| format!("{text}{byte:02x}")) + "'"
        });
        writeln!(
            sql,
            "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, binaryData)
             VALUES ({start}, {start} + 500, 59, '{}', 281474976710656 + (100 << 24) + 101, 1, {data});",
            call.function
        )
        .unwrap();
    }
    let (_kept, path) = export(&sql);
    let trace = read_file(&path);
    assert!(trace.stats().is_complete());
    trace
}

/// The ranges with a message: name, and operation, group size, sequence, bytes in and out.
type Seen = (String, String, Option<u32>, Option<u64>, Option<u64>, Option<u64>);

fn seen(trace: &Trace) -> Vec<Seen> {
    let ranges = trace.events().filter(|event| event.kind() == EventKind::Annotation);
    let message = |event: busbound_trace::Event<'_>| {
        let one = event.collective()?;
        let operation = trace.names().get(one.name).to_owned();
        assert_eq!(trace.names().get(one.group), "0xfeed000000000abc");
        Some((
            event.name().to_owned(),
            operation,
            one.group_size,
            one.sequence,
            one.bytes_in(),
            one.bytes_out(),
        ))
    };
    ranges.filter_map(message).collect()
}

fn row(
    range: &str,
    operation: &str,
    ranks: Option<u32>,
    sequence: Option<u64>,
    bytes: (Option<u64>, Option<u64>),
) -> Seen {
    (range.into(), operation.into(), ranks, sequence, bytes.0, bytes.1)
}

#[test]
fn a_call_of_its_own_has_its_message() {
    let trace = of_calls(&[
        init("ncclCommInitRankConfig", 8),
        call("ncclAllReduce", REDUCE_SCATTER, 4096, 4),
        call("ncclAllGather", ALL_GATHER, 1000, 0),
        call("ncclReduceScatter", REDUCE_SCATTER, 500, 0),
        call("ncclBroadcast", BROADCAST, 64, 3),
        call("ncclSend", SEND, 77, 5),
    ]);
    let ranks = Some(8);
    assert_eq!(
        seen(&trace),
        [
            row("NCCL:ncclAllReduce", "all_reduce", ranks, Some(0), (Some(4096), Some(4096))),
            row("NCCL:ncclAllGather", "all_gather", ranks, Some(1), (Some(1000), Some(8000))),
            row("NCCL:ncclReduceScatter", "reduce_scatter", ranks, Some(2), (Some(4000), Some(500))),
            row("NCCL:ncclBroadcast", "broadcast", ranks, Some(3), (Some(64), Some(64))),
            row("NCCL:ncclSend", "send", ranks, None, (Some(77), None)),
        ]
    );
    let messages: Vec<&Collective> = trace.events().filter_map(|event| event.collective()).collect();
    let reductions: Vec<&str> = messages.iter().map(|one| trace.names().get(one.reduction)).collect();
    assert_eq!(reductions, ["avg", "", "sum", "", ""]);
    assert_eq!(messages.iter().map(|one| one.root).collect::<Vec<_>>(), [None, None, None, Some(3), None]);
    assert_eq!(messages.iter().map(|one| one.peer).collect::<Vec<_>>(), [None, None, None, None, Some(5)]);
}

/// The recording began later: the size of a communicator may still be in its end, but nobody knows how many calls are missing.
#[test]
fn without_its_creation_a_communicator_has_no_numbers() {
    let calls = [call("ncclAllReduce", REDUCE_SCATTER, 4096, 0), call("ncclAllGather", ALL_GATHER, 1000, 0)];
    assert_eq!(
        seen(&of_calls(&calls)),
        [
            row("NCCL:ncclAllReduce", "all_reduce", None, None, (Some(4096), Some(4096))),
            row("NCCL:ncclAllGather", "all_gather", None, None, (Some(1000), None)),
        ]
    );
    let with_end = [&calls[..], &[init("ncclCommDestroy", 2)]].concat();
    assert_eq!(
        seen(&of_calls(&with_end))[1],
        row("NCCL:ncclAllGather", "all_gather", Some(2), None, (Some(1000), Some(2000)))
    );
    // Two sizes are none.
    let two = [&with_end[..], &[init("ncclCommDestroy", 3)]].concat();
    assert_eq!(seen(&of_calls(&two))[1].2, None);
    // Several ranks of one process.
    let several = [&[init("ncclCommInitRank", 2), init("ncclCommInitRank", 2)], &calls[..]].concat();
    assert_eq!(
        seen(&of_calls(&several))[0],
        row("NCCL:ncclAllReduce", "all_reduce", Some(2), None, (Some(4096), Some(4096)))
    );
}

/// As PyTorch makes all-to-all: a send and a receive per rank, itself included. The real export of two GPUs has 66 such groups.
#[test]
fn sends_and_receives_of_all_ranks_are_an_all_to_all_of_the_group() {
    let (start, end) = (plain("ncclGroupStart"), plain("ncclGroupEnd"));
    let exchange = [
        start,
        call("ncclSend", SEND, 100, 0),
        call("ncclRecv", RECV, 300, 0),
        call("ncclSend", SEND, 200, 1),
        call("ncclRecv", RECV, 50, 1),
        end,
    ];
    let all = [&[init("ncclCommInitRank", 2)], &exchange[..]].concat();
    let bytes = (Some(300), Some(350));
    assert_eq!(seen(&of_calls(&all)), [row("NCCL:ncclGroupEnd", "all_to_all", Some(2), None, bytes)]);
    // Of four ranks, or of unknown ones, they are a part.
    let part = [&[init("ncclCommInitRank", 4)], &exchange[..]].concat();
    assert_eq!(seen(&of_calls(&part)), [row("NCCL:ncclGroupEnd", "send_recv", Some(4), None, bytes)]);
    assert_eq!(seen(&of_calls(&exchange)), [row("NCCL:ncclGroupEnd", "send_recv", None, None, bytes)]);
}

#[test]
fn a_group_of_like_calls_is_one_message_and_others_are_none() {
    let (start, end) = (plain("ncclGroupStart"), plain("ncclGroupEnd"));
    let reduce = |bytes| call("ncclAllReduce", REDUCE_SCATTER, bytes, 0);
    let alone = |calls: &[Call]| {
        let all = [&[init("ncclCommInitRank", 2), start], calls, &[end]].concat();
        seen(&of_calls(&all))
    };
    assert_eq!(
        alone(&[reduce(1000), reduce(24)]),
        [row("NCCL:ncclGroupEnd", "all_reduce", Some(2), Some(0), (Some(1024), Some(1024)))]
    );
    // Another operation, another reduction, a call without its payload, none at all.
    assert_eq!(alone(&[reduce(1000), call("ncclAllGather", ALL_GATHER, 24, 0)]), []);
    assert_eq!(alone(&[reduce(1000), call("ncclAllReduce", REDUCE_SCATTER, 24, 2)]), []);
    assert_eq!(alone(&[reduce(1000), plain("ncclAllReduce")]), []);
    assert_eq!(alone(&[]), []);
    // Groups within groups launch at the end of the outermost one.
    assert_eq!(alone(&[start, reduce(1000), end, reduce(24)]).len(), 1);
    assert_eq!(alone(&[start, reduce(1000), end, reduce(24)])[0].4, Some(1024));
    // A group whose beginning was not recorded: its calls do not launch, and nobody knows them all.
    let cut = seen(&of_calls(&[reduce(1000), end]));
    assert_eq!(cut, [row("NCCL:ncclAllReduce", "all_reduce", None, None, (Some(1000), Some(1000)))]);
}

/// Earlier versions of NCCL say only bytes.
#[test]
fn older_payloads_have_bytes_without_a_communicator() {
    let sql = format!(
        "{TABLES} DELETE FROM NVTX_PAYLOAD_SCHEMA_ENTRIES;
         INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
            (1, 16777221, 0, NULL, 22, 'Message size [bytes]', NULL, NULL, NULL),
            (1, 16777221, 1, NULL, 16777230, 'Reduction operation', NULL, NULL, 8),
            (1, 16777222, 0, NULL, 22, 'Bytes', NULL, NULL, NULL);
         INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, binaryData) VALUES
            (1000, 1500, 59, 'ncclAllReduce', 281474976710656 + (100 << 24) + 101, 1,
             X'0100000000000000' || X'0500000100000000' || X'1000000000000000' || X'2000000000000000' || X'0010000000000000' || X'0000000000000000'),
            (2000, 2500, 59, 'ncclBroadcast', 281474976710656 + (100 << 24) + 101, 1,
             X'0100000000000000' || X'0600000100000000' || X'0800000000000000' || X'2000000000000000' || X'4d00000000000000'),
            (3000, 3500, 59, 'ncclBroadcast', 281474976710656 + (100 << 24) + 101, 1, X'0100');"
    );
    let (_kept, path) = export(&sql);
    let trace = read_file(&path);
    let messages: Vec<&Collective> = trace.events().filter_map(|event| event.collective()).collect();
    assert_eq!(messages.iter().map(|one| one.bytes_in()).collect::<Vec<_>>(), [Some(4096), Some(77)]);
    assert!(messages.iter().all(|one| (one.group_size, one.sequence) == (None, None)));
    assert_eq!(messages.iter().map(|one| trace.names().get(one.group)).collect::<Vec<_>>(), ["", ""]);
    assert_eq!(trace.stats().not_kept["NCCL payloads of an unknown layout"], 1);
}
