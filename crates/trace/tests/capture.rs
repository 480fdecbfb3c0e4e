//! Recordings of `busbound record`: read like any other trace, whole or not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::Path;

use busbound_capture::format::{ChunkWriter, Launch, MAGIC, Record, Stream};
use busbound_trace::{
    Direction, EventKind, LossKind, MemoryKind, OpenError, Place, ReadOptions, SourceFormat, Trace, read,
};

const ON: Stream = Stream { device: 0, stream: 7 };
const LAUNCH: Launch = Launch { grid: [4, 1, 1], block: [128, 1, 1], registers: 32, shared_memory: 1024 };

/// Two steps of a copy and a kernel, a chunk each, after a chunk that says who is recorded.
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
            Record::LinkBytes { at, gpu: 0, to_device: 4_000_000, to_host: 0 },
        ]));
    }
    chunks.push(chunk(&[Record::End]));
    chunks
}

fn opened(bytes: &[u8]) -> Result<Trace, OpenError> {
    read(bytes, Path::new("run.bbt"), &ReadOptions::default())
}

#[test]
fn a_recording_says_what_was_recorded() {
    let trace = opened(&recording().concat()).unwrap();
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    let origin = trace.origin();
    assert_eq!(origin.format, SourceFormat::BusboundCapture);
    assert_eq!(origin.gpus[0].name, "NVIDIA H200");
    assert_eq!(origin.trace_name.as_deref(), Some("python train.py"));
    assert_eq!(origin.distributed.as_ref().unwrap().rank, Some(3));
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
    // The second wait is for the second record of the event.
    let waits = of(EventKind::Synchronisation);
    let waited: Vec<_> = waits.iter().map(|wait| wait.synchronisation().unwrap().waits_on_record).collect();
    assert_eq!(waited, [Some(3), Some(13)]);
}

#[test]
fn a_recording_that_was_cut_or_broken_gives_the_rest() {
    let chunks = recording();
    let whole = opened(&chunks.concat()).unwrap().len();
    let each = (whole) / 2;
    // Killed between two chunks: all that was written is there.
    let killed = opened(&chunks[..4].concat()).unwrap();
    assert_eq!((killed.len(), killed.stats().losses[0].what), (whole, LossKind::EndsWithoutMark));
    // Killed while it wrote.
    let mut bytes = chunks[..4].concat();
    bytes.truncate(bytes.len() - 3);
    let cut = opened(&bytes).unwrap();
    assert_eq!((cut.len(), cut.stats().losses[0].what), (each, LossKind::EndsInsideChunk));
    // A byte is wrong in the first step.
    let mut bytes = chunks.concat();
    let at = chunks[..2].concat().len() + 20;
    bytes[at] ^= 0x55;
    let broken = opened(&bytes).unwrap();
    assert_eq!((broken.len(), broken.stats().losses[0].what), (each, LossKind::DamagedChunk));
    // At every byte: an answer or a sentence, never a panic.
    let all = chunks.concat();
    for end in 1..all.len() {
        match opened(&all[..end]) {
            Ok(trace) => assert!(!trace.stats().is_complete(), "cut at {end}"),
            Err(OpenError::EmptyRecording { .. } | OpenError::Unsupported { .. }) => {}
            Err(other) => assert!(end < 8, "cut at {end}: {other}"),
        }
    }
}
