//! Nsight Systems' SQLite exports: what is in the file is in the trace, and unrelated events are not joined.
//!
//! The expected numbers of real files were computed with Python's sqlite3, not with this reader.

mod calls;
mod limits;
mod nccl;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::made::{export, two_processes};
use busbound_trace::{
    Bytes, Direction, Event, EventKind, Faults, IntervalSet, Label, MemoryKind, Migration, MigrationCause,
    Place, ReadOptions, Trace, Transfer, open,
};

fn read_file(path: &Path) -> Trace {
    open(path, &ReadOptions::default()).unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nsight").join(name)
}

/// Third-party files, which are not in the repository.
#[expect(clippy::print_stderr, reason = "a skipped test should say so")]
fn peer(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/peers/nsys_ai").join(name);
    if !path.is_file() {
        eprintln!("skipped: {} does not exist", path.display());
        return None;
    }
    Some(path)
}

fn of_kind(trace: &Trace, kind: EventKind) -> Vec<Event<'_>> {
    trace.events().filter(|event| event.kind() == kind).collect()
}

fn device(event: &Event<'_>) -> i32 {
    match event.place() {
        Place::Stream { device, .. } => device,
        Place::Thread { .. } => -1,
    }
}

/// Count, and time during which at least one ran, of these kinds on one device.
fn busy(trace: &Trace, on: i32, kinds: &[EventKind]) -> (usize, i64) {
    let events: Vec<_> =
        trace.events().filter(|event| kinds.contains(&event.kind()) && device(event) == on).collect();
    let times = IntervalSet::from_unsorted(events.iter().map(Event::interval));
    (events.len(), times.length().get())
}

/// Device work with its call, only by (process, correlation).
fn joined(trace: &Trace, kind: EventKind) -> usize {
    let calls: BTreeSet<u64> = trace
        .events()
        .filter(|event| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall))
        .filter_map(|call| call.correlation())
        .collect();
    of_kind(trace, kind)
        .iter()
        .filter(|work| work.correlation().is_some_and(|id| calls.contains(&id)))
        .count()
}

const WORK: [EventKind; 3] = [EventKind::Kernel, EventKind::Copy, EventKind::Memset];

#[test]
fn our_own_export_is_read_to_the_last_row() {
    let trace = read_file(&fixture("off.sqlite"));
    assert!(trace.stats().is_complete());
    assert_eq!(trace.origin().format.id, "nsys-sqlite");
    assert_eq!(trace.origin().versions["nsys_version"], "2025.3.2.0");
    assert_eq!(trace.origin().versions["schemaVersion"], "3.20.3");
    assert_eq!(trace.origin().base_time_ns, Some(1_794_703_301_284_728_823));
    let gpu = &trace.origin().gpus[0];
    assert_eq!((gpu.id, gpu.name.as_str()), (0, "NVIDIA H200"));
    assert_eq!(gpu.memory, Some(Bytes::new(150_109_880_320)));
    assert_eq!((gpu.multiprocessors, gpu.compute_capability), (Some(132), Some((9, 0))));

    let mut copies = BTreeMap::new();
    for copy in of_kind(&trace, EventKind::Copy) {
        let transfer = copy.transfer().unwrap();
        let Place::Stream { stream, .. } = copy.place() else { panic!("copies are on streams") };
        let key = (transfer.direction, transfer.src, transfer.dst, transfer.bytes.unwrap().get(), stream);
        let sum: &mut (u64, i64) = copies.entry(key).or_default();
        *sum = (sum.0 + 1, sum.1 + copy.duration().get());
    }
    use Direction::HostToDevice;
    use MemoryKind::{Device, Pageable, Pinned};
    assert_eq!(
        copies.into_iter().collect::<Vec<_>>(),
        [
            ((HostToDevice, Pageable, Device, 67_108_864, 7), (50, 491_168_473)),
            ((HostToDevice, Pinned, Device, 67_108_864, 13), (50, 61_493_060)),
        ]
    );
    assert_eq!(busy(&trace, 0, &[EventKind::Kernel]), (101, 33_681_302));
    assert_eq!(busy(&trace, 0, &[EventKind::Copy]), (100, 552_661_533));
    assert_eq!(busy(&trace, 0, &[EventKind::Memset]), (100, 209_888));
    assert_eq!(busy(&trace, 0, &WORK), (301, 571_227_866));
    assert_eq!(WORK.map(|kind| joined(&trace, kind)), [101, 100, 100]);
    assert_eq!(of_kind(&trace, EventKind::RuntimeCall).len(), 917);
    assert_eq!(of_kind(&trace, EventKind::DriverCall).len(), 1214);
    assert_eq!(of_kind(&trace, EventKind::ProfilerOverhead).len(), 26);

    let mut ranges: BTreeMap<&str, usize> = BTreeMap::new();
    for range in of_kind(&trace, EventKind::Annotation) {
        *ranges.entry(range.name()).or_default() += 1;
        let thread = Place::Thread { process: Label::Number(666), thread: Label::Number(666) };
        assert_eq!(range.place(), thread);
    }
    assert_eq!(ranges, BTreeMap::from([("stage0:pageable", 5), ("stage1:prefetch", 5), ("step", 5)]));
    assert_eq!(trace.given_name(Label::Number(666), None), Some("python3"));
}

#[test]
fn waits_refer_to_the_record_they_waited_for() {
    let trace = read_file(&fixture("off.sqlite"));
    let waits = of_kind(&trace, EventKind::Synchronization);
    let named: Vec<_> = waits.iter().filter(|wait| wait.name() == "Stream Wait Event").collect();
    // Nsight 2025.3 also writes the other fifty as such waits, without an event: they are cudaStreamSynchronize.
    assert_eq!((waits.len(), named.len()), (100, 50));
    let first = named[0].synchronization().unwrap();
    assert_eq!(
        (first.waits_on_stream, first.waits_on_record, first.waits_on_event),
        (Some(13), Some(2466), Some(19))
    );
    assert_eq!(named[0].place(), Place::Stream { device: 0, stream: 7 });
    let others = waits.iter().filter(|wait| wait.name() == "Stream Sync");
    assert!(
        others.clone().count() == 50
            && others.into_iter().all(|wait| wait.synchronization().unwrap().waits_on_record.is_none())
    );
}

#[test]
fn two_gpus_of_two_processes_are_separate() {
    let Some(path) = peer("mfu_2gpu_before.sqlite") else { return };
    let trace = read_file(&path);
    assert!(trace.stats().is_complete());
    assert_eq!(busy(&trace, 0, &[EventKind::Kernel]), (1993, 270_863_484));
    assert_eq!(busy(&trace, 1, &[EventKind::Kernel]), (2017, 264_324_724));
    assert_eq!(busy(&trace, 0, &[EventKind::Copy]), (510, 2_844_479));
    assert_eq!(busy(&trace, 1, &[EventKind::Copy]), (510, 2_847_608));
    assert_eq!(busy(&trace, 0, &WORK), (2636, 273_817_787));
    assert_eq!(busy(&trace, 1, &WORK), (2663, 267_275_916));
    let bytes = |on, direction| {
        let copies = of_kind(&trace, EventKind::Copy);
        let copies = copies.iter().filter(|copy| device(copy) == on).filter_map(|copy| copy.transfer());
        copies.filter(|t| t.direction == direction).map(|t| t.bytes.unwrap()).sum::<Bytes>().get()
    };
    for gpu in [0, 1] {
        assert_eq!(bytes(gpu, Direction::HostToDevice), 136);
        assert_eq!(bytes(gpu, Direction::DeviceToDevice), 4_023_067_136);
    }
    // By correlation alone it would be 4,280, 1,080 and 287: both processes use 264 of the ids.
    assert_eq!(WORK.map(|kind| joined(&trace, kind)), [3986, 1015, 267]);
    // The table of waits says device 0 for both processes.
    let waits = of_kind(&trace, EventKind::Synchronization);
    assert_eq!(waits.iter().filter(|wait| device(wait) == 1).count(), 188);
    // Ranges of emit_nvtx are operators, with names without their numbers.
    assert_eq!(of_kind(&trace, EventKind::Operator).len(), 18_422);
    assert!(trace.events().any(|event| event.name() == "aten::copy_" && event.kind() == EventKind::Operator));
    assert_eq!(
        of_kind(&trace, EventKind::Annotation).iter().filter(|range| range.name() == "ncclSend").count(),
        132
    );
}

#[test]
fn a_reduced_schema_gives_what_it_has() {
    let Some(path) = peer("healthy_1pct.sqlite") else { return };
    let trace = read_file(&path);
    assert!(trace.stats().is_complete());
    assert_eq!(busy(&trace, 0, &WORK), (400, 400_000_000));
    // Its kernels do not name their process; only one process can have launched them.
    assert_eq!(joined(&trace, EventKind::Kernel), 400);
    assert_eq!(trace.origin().gpus[0].name, "NVIDIA H100 80GB HBM3");
    let names: BTreeSet<_> = of_kind(&trace, EventKind::Kernel).iter().map(|kernel| kernel.name()).collect();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [
            "void at::native::elementwise_add<float>(float*, float*)",
            "void cutlass::gemm_nn_128x128<float>(float*, float*)"
        ]
    );
}

#[test]
fn correlations_that_collide_across_processes_do_not_join() {
    let (_kept, path) = two_processes();
    let trace = read_file(&path);
    let call_of = |kernel: &Event<'_>| {
        let calls = of_kind(&trace, EventKind::RuntimeCall);
        let mut with = calls.into_iter().filter(|call| call.correlation() == kernel.correlation());
        (with.next().map(|call| (call.start().as_nanos(), call.place())), with.next().is_none())
    };
    let kernels = of_kind(&trace, EventKind::Kernel);
    let thread =
        |process| Place::Thread { process: Label::Number(process), thread: Label::Number(process + 1) };
    // Both processes launched with correlation 5, on what each calls device 0 and stream 7.
    assert_eq!(call_of(&kernels[0]), (Some((1_000, thread(100))), true));
    assert_eq!(call_of(&kernels[1]), (Some((1_100, thread(200))), true));
    assert_eq!(kernels.iter().map(device).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn streams_of_two_processes_on_one_gpu_are_two() {
    let (_kept, path) = two_processes();
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE TARGET_INFO_CUDA_DEVICE SET gpuId = 0")
        .unwrap();
    let trace = read_file(&path);
    let places: Vec<_> = of_kind(&trace, EventKind::Kernel).iter().map(|kernel| kernel.place()).collect();
    assert_eq!(
        places,
        [Place::Stream { device: 0, stream: 7 }, Place::Stream { device: 0, stream: 100_007 }]
    );
}

#[test]
fn the_same_device_number_in_two_processes_is_ambiguous_unless_recorded() {
    const NONE: [i32; 0] = [];
    let ambiguous = |sql: &str| -> Vec<i32> {
        let (_kept, path) = two_processes();
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        read_file(&path).origin().ambiguous_devices.iter().copied().collect()
    };
    assert_eq!(ambiguous(""), NONE);
    assert_eq!(ambiguous("DROP TABLE TARGET_INFO_CUDA_DEVICE"), [0]);
    // The unlisted process may use any GPU, including that of the listed one.
    assert_eq!(ambiguous("DELETE FROM TARGET_INFO_CUDA_DEVICE WHERE pid = 200"), [0]);
    assert_eq!(ambiguous("DELETE FROM TARGET_INFO_CUDA_DEVICE WHERE pid = 100"), NONE);
    let without = "DROP TABLE TARGET_INFO_CUDA_DEVICE; DROP TABLE TARGET_INFO_GPU";
    assert_eq!(ambiguous(without), [0]);
    // Two launches with the same correlation, each by either process.
    assert_eq!(
        ambiguous(&format!("{without}; ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid")),
        [0]
    );
    // With only one GPU, all processes use it.
    assert_eq!(
        ambiguous("DROP TABLE TARGET_INFO_CUDA_DEVICE; DELETE FROM TARGET_INFO_GPU WHERE id = 1"),
        NONE
    );
    let apart = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1 WHERE globalPid >> 24 & 0xffffff = 200";
    assert_eq!(ambiguous(&format!("{without}; {apart}")), NONE);
}

#[test]
fn work_without_a_process_is_joined_only_if_unambiguous() {
    let (_kept, path) = two_processes();
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid").unwrap();
    assert_eq!(joined(&read_file(&path), EventKind::Kernel), 0);
    database
        .execute_batch("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE globalTid >> 24 & 0xffffff = 200")
        .unwrap();
    assert_eq!(joined(&read_file(&path), EventKind::Kernel), 2);
}

#[test]
fn ranges_have_domains_registered_strings_and_ends() {
    let (_kept, path) = export(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'registered'), (2, 'ncclAllReduce'), (3, 'loader');
         CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT, domainId INT);
         INSERT INTO NVTX_EVENTS VALUES
            (10, 90, 59, 'step', NULL, 16777217, 0),
            (20, 30, 60, NULL, 1, 16777217, 0),
            (40, 50, 59, NULL, 2, 16777217, 3),
            (1, NULL, 75, 'NCCL', NULL, 16777217, 3),
            (55, NULL, 34, 'mark', NULL, 16777217, 0),
            (60, NULL, 59, 'never ended', NULL, 16777217, 0),
            (2, NULL, 39, NULL, 3, 16777217, 0),
            (3, NULL, 33, 'category', NULL, 16777217, 0),
            (70, 80, 59, NULL, 99, 16777217, 0);",
    );
    let trace = read_file(&path);
    let ranges: Vec<_> = trace
        .events()
        .map(|event| (event.name(), event.start().as_nanos(), event.duration().get()))
        .collect();
    assert_eq!(
        ranges,
        [
            ("step", 10, 80),
            ("registered", 20, 10),
            ("NCCL:ncclAllReduce", 40, 10),
            ("mark", 55, 0),
            ("", 70, 10)
        ]
    );
    assert!(trace.events().all(|event| event.kind() == EventKind::Annotation));
    assert_eq!(trace.given_name(Label::Number(1), Some(Label::Number(1))), Some("loader"));
    assert_eq!(trace.stats().not_kept["NVTX ranges without an end"], 1);
    assert_eq!(trace.stats().not_kept["NVTX names of domains, categories and streams"], 2);
}

#[test]
fn the_files_own_numbers_come_before_cuptis() {
    let copies =
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, bytes INT,
            copyKind INT, srcKind INT, dstKind INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 10, 0, 7, 64, 41, 9, 8);";
    let transfer = |sql: &str| {
        let (_kept, path) = export(sql);
        *read_file(&path).events().next().unwrap().transfer().unwrap()
    };
    let (direction, bytes) = (Direction::DeviceToHost, Some(Bytes::new(64)));
    assert_eq!(
        transfer(&format!(
            "{copies} CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INT, name TEXT, label TEXT);
             INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (41, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host');
             CREATE TABLE ENUM_CUDA_MEM_KIND (id INT, name TEXT, label TEXT);
             INSERT INTO ENUM_CUDA_MEM_KIND VALUES (9, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'),
                (8, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable');"
        )),
        Transfer { bytes, direction, src: MemoryKind::Device, dst: MemoryKind::Pageable }
    );
    let (src, dst) = (MemoryKind::Unknown, MemoryKind::Unknown);
    assert_eq!(transfer(copies), Transfer { bytes, direction: Direction::Unknown, src, dst });
}

#[test]
fn later_versions_of_a_table_and_older_columns_are_found() {
    let (_kept, path) = export(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY_V2 (START INT, \"END\" INT, deviceid INT, streamid INT, bytes INT, copyKind INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY_V2 VALUES (0, 10, 1, 7, 64, 1);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPYISH (start INT, end INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPYISH VALUES (0, 10), (1, 2);",
    );
    let trace = read_file(&path);
    assert_eq!(trace.len(), 1);
    let copy = trace.events().next().unwrap();
    assert_eq!(copy.name(), "Memcpy HtoD (Unknown -> Device)");
    assert_eq!(copy.place(), Place::Stream { device: 1, stream: 7 });
    assert_eq!(trace.stats().not_kept["rows of CUPTI_ACTIVITY_KIND_MEMCPYISH"], 2);
}

/// Whatever the columns are called, and whether rows have numbers or not, a table gives every row in order.
#[test]
fn columns_named_like_row_numbers_hide_no_rows() {
    let starts = |columns: &str, options: &str| {
        let (_kept, path) = export(&format!(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT{columns}, end INT, deviceId INT, streamId INT) {options};
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId)
                VALUES (10, 15, 0, 7), (20, 25, 0, 7), (30, 35, 0, 7);"
        ));
        let trace = read_file(&path);
        assert!(trace.stats().is_complete(), "{columns} {options}: {:?}", trace.stats().losses);
        trace.events().map(|event| event.start().as_nanos()).collect::<Vec<_>>()
    };
    for columns in [
        "",
        ", rowid INT",
        ", RowId TEXT DEFAULT 'x'",
        ", rowid INT, _rowid_ INT DEFAULT 3",
        ", oid INT, rowid INT DEFAULT 0, _rowid_ INT",
        ", rowid INT AS (1)",
    ] {
        assert_eq!(starts(columns, ""), [10, 20, 30], "{columns}");
    }
    assert_eq!(starts(" PRIMARY KEY", "WITHOUT ROWID"), [10, 20, 30]);
}

#[test]
fn migrations_are_copies_of_managed_memory_and_faults_are_counted() {
    let trace = read_file(&fixture("managed.sqlite"));
    let copies = of_kind(&trace, EventKind::Copy);
    let migrations: Vec<_> = copies.iter().filter(|copy| copy.migration().is_some()).collect();
    assert_eq!((copies.len(), migrations.len()), (80, 80));
    let first = migrations[0];
    assert_eq!(first.name(), "Memcpy HtoD (Managed -> Managed)");
    assert_eq!(first.place(), Place::Stream { device: 0, stream: -1 });
    let managed = MemoryKind::Managed;
    assert_eq!(
        first.transfer(),
        Some(&Transfer {
            bytes: Some(Bytes::new(2 << 20)),
            direction: Direction::HostToDevice,
            src: managed,
            dst: managed
        })
    );
    let (address, cause) = (Some(0x7f00_0000_0000), MigrationCause::Fault);
    assert_eq!(first.migration(), Some(&Migration { address, cause }));
    assert!(first.correlation().is_none());
    let faults = of_kind(&trace, EventKind::PageFault);
    let (on_gpu, on_host): (Vec<_>, Vec<_>) =
        faults.into_iter().partition(|fault| matches!(fault.place(), Place::Stream { .. }));
    assert_eq!((on_gpu.len(), on_host.len()), (40, 40));
    assert_eq!(on_gpu[0].faults(), Some(&Faults { address, count: 12 }));
    assert_eq!(on_host[0].name(), "CPU page fault in update at update.cu:42");
    assert_eq!(on_host[0].faults(), Some(&Faults { address, count: 1 }));
}

#[test]
fn graphs_traced_as_a_whole_are_one_event() {
    let (_kept, path) = export(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, contextId INT, streamId INT,
            correlationId INT, globalPid INT, graphId INT, graphExecId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 500, 0, 1, 7, 3, 16777216, 12, 13);",
    );
    let trace = read_file(&path);
    let graph = trace.events().next().unwrap();
    assert_eq!(
        (graph.kind(), graph.name(), graph.duration().get()),
        (EventKind::Kernel, "CUDA graph 12", 500)
    );
    assert_eq!(trace.origin().settings.get("cuda_graph_nodes"), Some(&false));
}

#[test]
fn graphs_traced_by_node_give_their_nodes() {
    let (_kept, path) = export(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaGraphLaunch_v10000'), (3, 'relu');
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 150, 16777217, 9, 2);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,
            correlationId INT, globalPid INT, demangledName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT,
            blockZ INT, graphNodeId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
            (230, 300, 1, 1, 7, 9, 16777216, 1, 4, 2, 1, 128, 1, 1, 51),
            (310, 330, 1, 1, 7, 9, 16777216, 3, 8, 1, 1, 256, 1, 1, 52);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, contextId INT, streamId INT,
            correlationId INT, globalPid INT, value INT, bytes INT, graphNodeId INT, memKind INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES
            (200, 220, 1, 1, 7, 9, 16777216, 0, 4096, 50, 2), (340, 345, 1, 1, 7, 9, 16777216, 0, 512, 53, 1),
            (350, 351, 1, 1, 7, 9, 16777216, 0, 16, 54, NULL);
         CREATE TABLE ENUM_CUDA_MEM_KIND (id INT, name TEXT, label TEXT);
         INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'),
            (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');",
    );
    let trace = read_file(&path);
    assert!(trace.stats().is_complete() && trace.origin().settings.is_empty());
    let mut work: Vec<_> = trace.events().filter(|event| WORK.contains(&event.kind())).collect();
    work.sort_by_key(Event::start);
    for event in &work {
        assert_eq!(
            (event.place(), event.correlation()),
            (Place::Stream { device: 1, stream: 7 }, Some(9)),
            "{}",
            event.name()
        );
    }
    let found: Vec<_> = work
        .iter()
        .map(|event| {
            let set = event.transfer().map(|set| (set.bytes.unwrap().get(), set.dst));
            let grid = event.launch().map(|launch| launch.grid);
            (event.name(), event.start().as_nanos(), event.duration().get(), set, grid)
        })
        .collect();
    use MemoryKind::{Device, Pinned};
    assert_eq!(
        found,
        [
            ("Memset (Device)", 200, 20, Some((4096, Device)), None),
            ("gemm", 230, 70, None, Some([4, 2, 1])),
            ("relu", 310, 20, None, Some([8, 1, 1])),
            ("Memset (Pinned)", 340, 5, Some((512, Pinned)), None),
            ("Memset (Device)", 350, 1, Some((16, Device)), None),
        ]
    );
    assert_eq!(WORK.map(|kind| joined(&trace, kind)), [2, 0, 3]);
}
