//! Are CUPTI's records read at the offsets in NVIDIA's headers? CUPTI of CUDA 12.9, 13.0 and 13.4 filled the buffers
//! on a real GPU; each record comes with its contents according to the header of that version
//! (fixtures/cupti/dump.c).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixture has failed")]

use busbound_capture::format::{Launch, Record, Stream};
use busbound_capture::inject::layout::{Activity, Raw, kind};
use serde_json::Value;

const VERSIONS: [&str; 3] = ["cuda-12.9", "cuda-13.0", "cuda-13.4"];

struct Buffer {
    bytes: Vec<u8>,
    records: Vec<Value>,
}

fn buffers(version: &str) -> Vec<Buffer> {
    let path = format!("{}/../../fixtures/cupti/{version}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let buffer = |line: &str| {
        let dumped: Value = serde_json::from_str(line).unwrap();
        Buffer {
            bytes: from_hex(dumped["bytes"].as_str().unwrap()),
            records: dumped["records"].as_array().unwrap().clone(),
        }
    };
    text.lines().map(buffer).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The record by the names in the header; `None` for kinds that are recorded differently.
fn expected(record: &Value) -> Option<Activity> {
    let u64 = |field: &str| record[field].as_u64().unwrap();
    let u32 = |field: &str| u32::try_from(u64(field)).unwrap();
    let u8 = |field: &str| u8::try_from(u64(field)).unwrap();
    let (start, end) = (|| u64("start"), || u64("end"));
    let on = || Stream { device: u32("deviceId"), stream: u32("streamId") };
    let correlation = || u32("correlationId");
    let thread = || if u64("objectKind") == 2 { u32("threadId") } else { 0 };
    let name = || usize::try_from(u64("name")).unwrap();
    Some(match u32("kind") {
        kind::KERNEL => Activity::Kernel {
            start: start(),
            end: end(),
            on: on(),
            correlation: correlation(),
            name: name(),
            launch: Launch {
                grid: [u32("gridX"), u32("gridY"), u32("gridZ")],
                block: [u32("blockX"), u32("blockY"), u32("blockZ")],
                registers: u32("registersPerThread"),
                shared_memory: u32("staticSharedMemory") + u32("dynamicSharedMemory"),
            },
        },
        kind::MEMCPY => Activity::Ready(Record::Copy {
            start: start(),
            end: end(),
            on: on(),
            correlation: correlation(),
            bytes: u64("bytes"),
            kind: u8("copyKind"),
            from: u8("srcKind"),
            to: u8("dstKind"),
            flags: u8("flags"),
        }),
        kind::MEMCPY_PEER => Activity::Ready(Record::PeerCopy {
            start: start(),
            end: end(),
            on: on(),
            correlation: correlation(),
            bytes: u64("bytes"),
            from_device: u32("srcDeviceId"),
            to_device: u32("dstDeviceId"),
        }),
        kind::MEMSET => Activity::Ready(Record::Memset {
            start: start(),
            end: end(),
            on: on(),
            correlation: correlation(),
            bytes: u64("bytes"),
            memory: u8("memoryKind"),
        }),
        kind @ (kind::RUNTIME | kind::DRIVER) => Activity::Call {
            start: start(),
            end: end(),
            thread: u32("threadId"),
            correlation: correlation(),
            callback: u32("cbid"),
            is_driver: kind == kind::DRIVER,
            result: u32("returnValue"),
        },
        kind::MARKER => Activity::Marker {
            at: u64("timestamp"),
            id: u32("id"),
            flags: u32("flags"),
            thread: thread(),
            name: name(),
        },
        kind::OVERHEAD => Activity::Ready(Record::Overhead {
            start: start(),
            end: end(),
            kind: u32("overheadKind"),
            thread: thread(),
        }),
        kind::DEVICE => Activity::Device {
            id: u32("id"),
            name: name(),
            memory: u64("globalMemorySize"),
            multiprocessors: u32("numMultiprocessors"),
            capability: (u32("computeCapabilityMajor"), u32("computeCapabilityMinor")),
            uuid: from_hex(record["uuid"].as_str().unwrap()).try_into().unwrap(),
        },
        _ => return None,
    })
}

fn all(version: &str) -> Vec<(Option<Activity>, Option<Activity>)> {
    let buffers = buffers(version);
    let pairs = buffers.iter().flat_map(|buffer| {
        buffer.records.iter().map(|record| {
            let at = usize::try_from(record["at"].as_u64().unwrap()).unwrap();
            (Raw { bytes: &buffer.bytes[at..] }.activity(), expected(record))
        })
    });
    pairs.collect()
}

#[test]
fn every_record_matches_the_header_of_its_version() {
    for version in VERSIONS {
        for (read, expected) in all(version) {
            assert_eq!(read, expected, "{version}");
        }
    }
}

/// What `exercise.c` does twice: five copies, a memset, three kernels, a range, a range within it, a mark.
#[test]
fn the_buffers_contain_what_the_program_did() {
    for version in VERSIONS {
        let read = all(version);
        let count = |is: &dyn Fn(&Activity) -> bool| {
            read.iter().filter_map(|(read, _)| *read).filter(|a| is(a)).count()
        };
        let copies = |wanted: u64| {
            count(&|a| matches!(a, Activity::Ready(Record::Copy { bytes, .. }) if *bytes == wanted))
        };
        let size = 4 << 20;
        assert_eq!([1, 2, 4, 8, 16].map(|part| copies(size / part)), [2; 5], "{version}");
        assert_eq!(
            count(&|a| matches!(a, Activity::Ready(Record::Memset { bytes: 65_536, .. }))),
            2,
            "{version}"
        );
        let is_kernel = |a: &Activity| {
            matches!(a, Activity::Kernel { launch, .. }
                if launch.grid == [5, 4, 3] && launch.block == [64, 2, 1] && launch.shared_memory == 1024)
        };
        assert_eq!(count(&is_kernel), 6, "{version}");
        assert_eq!(count(&|a| matches!(a, Activity::Marker { .. })), 10, "{version}");
        assert_eq!(
            count(&|a| matches!(a, Activity::Device { multiprocessors: 132, capability: (9, 0), .. })),
            1
        );
        assert_eq!(
            count(&|a| matches!(a, Activity::Ready(Record::PeerCopy { bytes: 1006, .. }))),
            1,
            "{version}"
        );
    }
}

#[test]
fn a_record_that_is_cut_is_none() {
    for buffer in buffers("cuda-13.0") {
        for record in &buffer.records {
            let at = usize::try_from(record["at"].as_u64().unwrap()).unwrap();
            for length in 0..24 {
                let end = buffer.bytes.len().min(at + length);
                assert_eq!(Raw { bytes: &buffer.bytes[at..end] }.activity(), None);
            }
        }
    }
}
