//! Recordings of `busbound record`: read like any other trace, complete or damaged.

use std::path::Path;

use busbound_capture::format::{
    ChunkWriter, FileCounts, Launch, MAGIC, Record, Stream, UNKNOWN_STREAM, streams,
};
use busbound_trace::{
    Access, Bytes, Direction, EventKind, FileReads, GpuLimits, HostNode, LossKind, MemoryKind, Nanos,
    OpenError, Place, ReadOptions, StreamKind, SyncKind, Timestamp, Trace, read,
};

const ON: Stream = Stream { device: 0, stream: 7 };
const LAUNCH: Launch = Launch { grid: [4, 1, 1], block: [128, 1, 1], registers: 32, shared_memory: 1024 };

/// Two steps of a copy and a kernel, one chunk each, after a chunk that says what is recorded.
fn recording() -> Vec<Vec<u8>> {
    let chunk = |records: &[Record<'_>]| {
        let mut writer = ChunkWriter::default();
        records.iter().for_each(|record| writer.add(record));
        writer.take().unwrap()
    };
    let mut chunks = vec![
        MAGIC.to_vec(),
        chunk(&[
            Record::Fact { key: b"process", value: b"4711" },
            Record::Fact { key: b"command", value: b"python train.py" },
            Record::Fact { key: b"RANK", value: b"3" },
            Record::Fact { key: b"variable NCCL_P2P_DISABLE", value: b"1" },
            Record::Fact { key: b"cpus", value: b"16" },
            Record::Clock { at: 1_000, unix_ns: 1_700_000_000_000_001_000 },
            Record::Name { id: 1, text: b"NVIDIA H200" },
            Record::Name { id: 2, text: b"_Z4gemmPfi" },
            Record::Name { id: 3, text: b"cudaMemcpyAsync_v3020" },
            Record::Name { id: 4, text: b"step" },
            Record::Gpu { id: 0, name: 1, memory: 150 << 30, multiprocessors: 132, capability: (9, 0) },
            Record::Link { gpu: 0, generation: 5, lanes: 16, max_generation: 5, max_lanes: 16 },
            Record::Thread { id: 12, name: 4 },
        ]),
    ];
    for step in 0..2u32 {
        let at = 10_000 + 1_000_000 * u64::from(step);
        let correlation = 10 * step + 1;
        let (kind, from, to, flags) = (1, 1, 3, 0);
        chunks.push(chunk(&[
            Record::Copy {
                start: at,
                end: at + 400_000,
                on: ON,
                correlation,
                bytes: 4_000_000,
                kind,
                from,
                to,
                flags,
            },
            Record::Kernel {
                start: at + 400_000,
                end: at + 900_000,
                on: ON,
                correlation: correlation + 1,
                name: 2,
                launch: LAUNCH,
            },
            Record::Call {
                start: at - 5_000,
                end: at + 390_000,
                thread: 12,
                correlation,
                name: 3,
                is_driver: false,
                result: 0,
            },
            Record::EventRecord { correlation: correlation + 2, stream: 7, event: 5 },
            Record::Sync {
                start: at + 1,
                end: at + 900_001,
                correlation: correlation + 3,
                stream: -1,
                kind: 1,
                event: 5,
            },
            Record::RangeStart { at: at - 6_000, id: step, thread: 12, name: 4 },
            Record::RangeEnd { at: at + 950_000, id: step },
            Record::LinkReading { at, gpu: 0, to_host: false, bytes: 4_000_000 },
            Record::LinkBytes { at: at + 5, gpu: 0, to_device: 7, to_host: 8 },
            Record::FileReads { at: at + 6, counts: read_until(step.into()) },
        ]));
    }
    chunks.push(chunk(&[Record::End]));
    chunks
}

/// What had been read when a step was recorded.
fn read_until(step: u64) -> FileCounts {
    FileCounts {
        read: 5_000_000_000 + step,
        disk: 3_000_000_000 + step,
        major_faults: 7 + step,
        minor_faults: 90_000 + step,
        user: 120_000_000 + step,
        system: 30_000_000 + step,
    }
}

fn opened(bytes: &[u8]) -> Result<Trace, OpenError> {
    read(bytes, Path::new("run.bbt"), &ReadOptions::default())
}

#[test]
fn a_recording_contains_what_was_recorded() {
    let trace = opened(&recording().concat()).unwrap();
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    let origin = trace.origin();
    assert_eq!(origin.format.id, "busbound-capture");
    assert_eq!(origin.gpus[0].name, "NVIDIA H200");
    assert_eq!(origin.trace_name.as_deref(), Some("python train.py"));
    assert_eq!(origin.distributed.as_ref().unwrap().rank, Some(3));
    let environment = origin.environment();
    assert_eq!(environment.cpus, Some(16));
    assert_eq!(environment.variables.unwrap()["NCCL_P2P_DISABLE"], "1");
    assert_eq!(origin.base_time_ns, Some(1_700_000_000_000_000_000));
    let of = |kind: EventKind| trace.events().filter(|event| event.kind() == kind).collect::<Vec<_>>();
    let copies = of(EventKind::Copy);
    assert_eq!(copies.len(), 2);
    let transfer = copies[0].transfer().unwrap();
    assert_eq!(
        (transfer.direction, transfer.src, transfer.dst),
        (Direction::HostToDevice, MemoryKind::Pageable, MemoryKind::Device)
    );
    assert_eq!(transfer.bytes.unwrap().get(), 4_000_000);
    assert_eq!((copies[0].name(), copies[0].duration().get()), ("Memcpy HtoD (Pageable -> Device)", 400_000));
    let kernel = of(EventKind::Kernel)[1];
    assert_eq!((kernel.name(), kernel.launch().unwrap().grid), ("gemm(float*, int)", [4, 1, 1]));
    assert_eq!(kernel.place(), Place::Stream { device: 0, stream: 7 });
    let call = of(EventKind::RuntimeCall)[0];
    assert_eq!((call.name(), call.correlation()), ("cudaMemcpyAsync", Some(1)));
    let step = of(EventKind::Annotation)[1];
    assert_eq!((step.name(), step.duration().get()), ("step", 956_000));
    // The second wait refers to the second record of the event.
    let waits = of(EventKind::Synchronization);
    let waited: Vec<_> = waits.iter().map(|wait| wait.synchronization().unwrap().waits_on_record).collect();
    assert_eq!(waited, [Some(3), Some(13)]);
}

/// Older recordings say nothing about the memory of copies.
#[test]
fn the_memory_of_copies_is_read() {
    let older = opened(&recording().concat()).unwrap();
    assert!(!older.has_accesses() && older.events().all(|event| event.access().is_none()));
    let mut writer = ChunkWriter::default();
    writer.add(&Record::Access {
        correlation: 11,
        stream: streams::NON_BLOCKING,
        to: 0x7f00_0000_1000,
        from: 64,
    });
    writer.add(&Record::Access { correlation: 1, stream: streams::LEGACY, to: 0x7f00_0000_2000, from: 0 });
    writer.add(&Record::OtherWait { correlation: 5, stream: 13 });
    writer.add(&Record::OtherWait { correlation: 6, stream: UNKNOWN_STREAM });
    let mut chunks = recording();
    chunks.insert(2, writer.take().unwrap());
    let trace = opened(&chunks.concat()).unwrap();
    assert!(trace.stats().is_complete() && trace.has_accesses());
    let copies = trace.events().filter(|event| event.kind() == EventKind::Copy);
    let accesses: Vec<Option<Access>> = copies.map(|copy| copy.access()).collect();
    let access = |to, from, stream| Some(Access { to, from, stream });
    assert_eq!(
        accesses,
        [
            access(0x7f00_0000_2000, None, StreamKind::Legacy),
            access(0x7f00_0000_1000, Some(64), StreamKind::NonBlocking)
        ]
    );
    assert_eq!(trace.other_waits(), [-1, 13]);
}

/// On a machine with two NUMA nodes; older recordings say nothing about them.
#[test]
fn the_numa_nodes_of_copies_and_gpus_are_read() {
    let older = opened(&recording().concat()).unwrap();
    assert_eq!(older.origin().numa, None);
    assert!(older.events().all(|event| event.host_node().is_none()));
    let mut writer = ChunkWriter::default();
    for (key, value) in [
        ("numa nodes", "0,2"),
        ("numa distances of 0", "10 32"),
        ("numa distances of 2", "32 10"),
        ("numa nodes of cpus", "0"),
        ("numa node of gpu 0", "2"),
        ("numa nodes of memory refused", "Operation not permitted"),
    ] {
        writer.add(&Record::Fact { key: key.as_bytes(), value: value.as_bytes() });
    }
    writer.add(&Record::HostNode { correlation: 11, node: 0 });
    writer.add(&Record::HostNode { correlation: 1, node: u32::MAX });
    let mut chunks = recording();
    chunks.insert(2, writer.take().unwrap());
    let trace = opened(&chunks.concat()).unwrap();
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    let numa = trace.origin().numa.clone().unwrap();
    assert_eq!((numa.is_far(0, 2), numa.is_far(2, 2)), (Some(true), Some(false)));
    assert_eq!((numa.cpus, numa.gpus.into_iter().collect::<Vec<_>>()), (vec![0], vec![(0, 2)]));
    assert_eq!(numa.refused.as_deref(), Some("Operation not permitted"));
    let copies = trace.events().filter(|event| event.kind() == EventKind::Copy);
    let nodes: Vec<Option<HostNode>> = copies.map(|copy| copy.host_node()).collect();
    assert_eq!(nodes, [Some(HostNode::Several), Some(HostNode::One(0))]);
    // A part of the run keeps them.
    let part = trace.part(|event| event.kind() == EventKind::Copy);
    assert_eq!(part.events().filter_map(|event| event.host_node()).count(), 2);
}

#[test]
fn the_driver_and_the_limits_of_gpus_are_read() {
    let mut writer = ChunkWriter::default();
    for (key, value) in [
        ("cpus", "8"),
        ("version driver", "580.159.04"),
        ("clock limit of gpu 0", "1980"),
        ("power limit of gpu 0", "699999"),
        ("power limit of gpu 1", "400000"),
    ] {
        writer.add(&Record::Fact { key: key.as_bytes(), value: value.as_bytes() });
    }
    let mut chunks = recording();
    chunks.insert(2, writer.take().unwrap());
    let trace = opened(&chunks.concat()).unwrap();
    let origin = trace.origin();
    let limits = GpuLimits { clock_mhz: Some(1980), power_watts: Some(700) };
    assert_eq!(origin.gpus[0].limits, limits);
    assert_eq!(origin.environment().versions["driver"], "580.159.04");
    let hardware = origin.environment_with(|_| true).hardware;
    assert_eq!(hardware["clock limit"], "1980 MHz");
    assert_eq!(hardware["power limit"], "700 W");
}

#[test]
fn sizes_of_pinned_memory_are_known_if_all_allocations_were_seen() {
    let sizes = |facts: &[(&str, &str)]| {
        let mut writer = ChunkWriter::default();
        for (key, value) in facts {
            writer.add(&Record::Fact { key: key.as_bytes(), value: value.as_bytes() });
        }
        let mut chunks = recording();
        chunks.insert(2, writer.take().unwrap());
        opened(&chunks.concat()).unwrap().origin().pinned_sizes.clone()
    };
    // The last count of a size is the one that counts.
    let seen = [("pinned 64", "1"), ("pinned 4096", "3"), ("pinned 64", "2")];
    assert_eq!(sizes(&seen), Some([(64, 2), (4096, 3)].into()));
    assert_eq!(sizes(&[seen[0], ("pinned memory not seen", "yes")]), None);
    assert_eq!(opened(&recording().concat()).unwrap().origin().pinned_sizes, None);
}

/// What `busbound record --ring` leaves out is counted, and the calendar may be set while it runs.
#[test]
fn a_dump_says_for_how_long_kernels_were_not_recorded() {
    let mut writer = ChunkWriter::default();
    writer.add(&Record::KernelsOff { start: 10_000, end: 460_000 });
    writer.add(&Record::KernelsOff { start: 500_000, end: 950_000 });
    writer.add(&Record::Clock { at: 2_000_000, unix_ns: 1_700_003_600_002_000_000 });
    writer.add(&Record::Note { text: b"Dumped because it was asked for." });
    let mut chunks = recording();
    chunks.insert(3, writer.take().unwrap());
    let trace = opened(&chunks.concat()).unwrap();
    let off = trace.stats().lost_work.kernels_off;
    // From the first event, at 4 µs, to the last that begins, at 1410 µs.
    assert_eq!((off.at_most, off.of), (900_000, 1_406_000));
    assert_eq!(trace.stats().losses[0].what, LossKind::NotCollected);
    assert_eq!(trace.origin().profiler_messages, ["Dumped because it was asked for."]);
    assert_eq!(trace.origin().base_time_ns, Some(1_700_003_600_000_000_000));
    assert_eq!(trace.len(), opened(&recording().concat()).unwrap().len());
}

#[test]
fn a_cut_or_damaged_recording_gives_the_rest() {
    let chunks = recording();
    let whole = opened(&chunks.concat()).unwrap().len();
    let each = (whole) / 2;
    // Killed between two chunks: everything that was written can be read.
    let killed = opened(&chunks[..4].concat()).unwrap();
    assert_eq!((killed.len(), killed.stats().losses[0].what), (whole, LossKind::EndsWithoutMark));
    // Killed while writing.
    let mut bytes = chunks[..4].concat();
    bytes.truncate(bytes.len() - 3);
    let cut = opened(&bytes).unwrap();
    assert_eq!((cut.len(), cut.stats().losses[0].what), (each, LossKind::EndsInsideChunk));
    // One wrong byte in the first step.
    let mut bytes = chunks.concat();
    let at = chunks[..2].concat().len() + 20;
    bytes[at] ^= 0x55;
    let broken = opened(&bytes).unwrap();
    assert_eq!((broken.len(), broken.stats().losses[0].what), (each, LossKind::DamagedChunk));
    // Cut at every byte: a trace or an error message, never a panic.
    let all = chunks.concat();
    for end in 1..all.len() {
        match opened(&all[..end]) {
            Ok(trace) => assert!(!trace.stats().is_complete(), "cut at {end}"),
            Err(
                OpenError::EmptyRecording { .. }
                | OpenError::DamagedRecording { .. }
                | OpenError::Unsupported { .. },
            ) => {}
            Err(other) => assert!(end < 8, "cut at {end}: {other}"),
        }
    }
}

/// A flipped bit loses its chunk and nothing else. It once could be reported as a process without CUDA.
#[test]
fn a_flipped_bit_loses_one_chunk_and_says_so() {
    let chunks = recording();
    let whole = opened(&chunks.concat()).unwrap();
    let events = whole.len();
    for at in 0..chunks.concat().len() {
        let mut bytes = chunks.concat();
        bytes[at] ^= 0x10;
        let label = Path::new("x.bbt");
        let trace = match read(&bytes[..], label, &ReadOptions::default()) {
            Ok(trace) => trace,
            Err(error) => {
                assert!(!matches!(error, OpenError::EmptyRecording { .. }), "bit {at}: {error}");
                continue;
            }
        };
        assert!(!trace.stats().is_complete(), "byte {at}");
        // The largest chunk of events is one of the two steps.
        assert!(2 * trace.len() + 2 >= events, "byte {at}: {} of {events}", trace.len());
    }
}

/// Every event chunk damaged: the file is still a recording, and not a process without CUDA.
#[test]
fn a_recording_without_a_whole_chunk_is_damaged_and_not_empty() {
    let mut bytes = recording().concat();
    (MAGIC.len()..bytes.len()).step_by(16).for_each(|at| bytes[at] ^= 0xff);
    let error = read(&bytes[..], Path::new("x.bbt"), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::DamagedRecording { .. }), "{error}");
    assert!(
        error.to_string().contains("a chunk of the recording is damaged")
            || error.to_string().contains("ends inside a chunk")
    );
}

fn recording_of(records: &[Record<'_>]) -> Trace {
    let mut writer = ChunkWriter::default();
    records.iter().for_each(|record| writer.add(record));
    writer.add(&Record::End);
    opened(&[MAGIC.to_vec(), writer.take().unwrap()].concat()).unwrap()
}

#[test]
fn readings_of_the_links_counters_are_kept() {
    let trace = opened(&recording().concat()).unwrap();
    let read: Vec<_> = trace
        .link_traffic()
        .iter()
        .take(3)
        .map(|traffic| (traffic.at.as_nanos(), traffic.gpu, traffic.direction, traffic.bytes.get()))
        .collect();
    let (h2d, d2h) = (Direction::HostToDevice, Direction::DeviceToHost);
    assert_eq!(read, [(10_000, 0, h2d, 4_000_000), (10_005, 0, h2d, 7), (10_005, 0, d2h, 8)]);
    assert_eq!(trace.link_traffic().len(), 6);
    assert!(trace.stats().not_kept.is_empty(), "{:?}", trace.stats().not_kept);
}

#[test]
fn what_was_read_from_files_is_kept() {
    let trace = opened(&recording().concat()).unwrap();
    let [first, second] = trace.file_reads() else { panic!("{:?}", trace.file_reads()) };
    let expected = FileReads {
        at: Timestamp::from_nanos(10_006),
        read: Bytes::new(5_000_000_000),
        disk: Bytes::new(3_000_000_000),
        major_faults: 7,
        minor_faults: 90_000,
        user: Nanos::new(120_000_000),
        system: Nanos::new(30_000_000),
    };
    assert_eq!(*first, expected);
    assert_eq!((second.at.as_nanos(), second.disk.get()), (1_010_006, 3_000_000_001));
}

/// Two GPUs, each used by its own thread; both have a stream 7, and only the second has stream 13.
#[test]
fn waits_are_on_the_gpu_that_was_waited_for() {
    let kernel = |device, stream, correlation| Record::Kernel {
        start: 2_000,
        end: 9_000,
        on: Stream { device, stream },
        correlation,
        name: 2,
        launch: LAUNCH,
    };
    let call = |thread, correlation, start| Record::Call {
        start,
        end: start + 500,
        thread,
        correlation,
        name: 3,
        is_driver: false,
        result: 0,
    };
    let wait = |correlation, stream, kind| Record::Sync {
        start: 3_000,
        end: 9_000,
        correlation,
        stream,
        kind,
        event: 0,
    };
    let gpu = |id| Record::Gpu { id, name: 1, memory: 1 << 30, multiprocessors: 132, capability: (9, 0) };
    let trace = recording_of(&[
        Record::Name { id: 1, text: b"NVIDIA H200" },
        gpu(0),
        gpu(1),
        kernel(0, 7, 1),
        kernel(1, 7, 2),
        kernel(1, 13, 3),
        call(100, 1, 1_000),
        call(200, 2, 1_000),
        call(200, 3, 1_200),
        // Stream 7 and the whole device, from each thread; then a stream that only one GPU has.
        call(100, 11, 3_000),
        wait(11, 7, 3),
        call(200, 12, 3_000),
        wait(12, 7, 3),
        call(100, 13, 3_000),
        wait(13, -1, 4),
        call(200, 14, 3_000),
        wait(14, -1, 4),
        wait(15, 13, 3),
    ]);
    let waits = trace.events().filter(|event| event.kind() == EventKind::Synchronization);
    let devices: Vec<_> = waits
        .map(|wait| match wait.place() {
            Place::Stream { device, .. } => (wait.correlation().unwrap(), device),
            Place::Thread { .. } => unreachable!("waits are on streams"),
        })
        .collect();
    assert_eq!(devices, [(11, 0), (12, 1), (13, 0), (14, 1), (15, 1)]);
}

#[test]
fn waits_of_a_program_that_uses_the_second_gpu_are_on_it() {
    let on = Stream { device: 1, stream: 7 };
    let gpu = |id| Record::Gpu { id, name: 1, memory: 1 << 30, multiprocessors: 132, capability: (9, 0) };
    let trace = recording_of(&[
        gpu(0),
        gpu(1),
        Record::Kernel { start: 2_000, end: 9_000, on, correlation: 1, name: 2, launch: LAUNCH },
        Record::Sync { start: 3_000, end: 9_000, correlation: 2, stream: -1, kind: 4, event: 0 },
    ]);
    let wait = trace.events().find(|event| event.kind() == EventKind::Synchronization).unwrap();
    assert_eq!(wait.place(), Place::Stream { device: 1, stream: -1 });
    assert_eq!(wait.synchronization().unwrap().kind, SyncKind::ContextSync);
}

/// fixtures/recorded/copies.c on an H200: CUPTI has one record per batch call, with all of its bytes, and one per node of a graph.
#[test]
fn copies_of_batches_graphs_boxes_and_pools_are_counted_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/copies.bbt");
    let trace = busbound_trace::open(&path, &ReadOptions::default()).unwrap();
    let copies = |direction| -> Vec<u64> {
        let copies = trace.events().filter(|event| event.kind() == EventKind::Copy);
        let of = copies.filter_map(|event| event.transfer().filter(|copy| copy.direction == direction));
        of.filter_map(|copy| copy.bytes).map(|bytes| bytes.get()).collect()
    };
    let (batch, pool, graph) = (32 * 65_536, 1 << 20, 5);
    let up: u64 = batch + 1000 * 512 + 64 * 8 * 4 + pool + graph * (512 << 10);
    assert_eq!(
        (copies(Direction::HostToDevice).len(), copies(Direction::HostToDevice).iter().sum()),
        (9, up)
    );
    let down: u64 = batch + 1000 * 512 + pool + graph * (128 << 10);
    assert_eq!(
        (copies(Direction::DeviceToHost).len(), copies(Direction::DeviceToHost).iter().sum()),
        (8, down)
    );
    let within: u64 = (1 << 20) + graph * (256 << 10);
    let found = copies(Direction::DeviceToDevice);
    assert_eq!((found.len(), found.iter().sum()), (6, within));
}
