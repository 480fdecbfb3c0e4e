//! XLA profiles: read like any other trace, complete or damaged.
//!
//! The profile is generated here, with the structure of real ones (JAX 0.8 on MI300X and MI355X). Real ones are not
//! part of the repository; they are expected in `../shared/peers/xplane` next to the checkout, or in
//! `BUSBOUND_PEERS`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use busbound_trace::{
    Call, Direction, EventKind, LossKind, MemoryKind, MemoryOwner, OpenError, Place, ReadOptions, Trace,
    discover, open, read,
};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A protobuf message while it is written.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend_from_slice(value.as_ref());
        self
    }

    fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A plane: its lines, followed by the tables of names, as XLA writes them.
struct Plane {
    name: &'static str,
    lines: Vec<Message>,
    facts: Vec<Message>,
    events: BTreeMap<String, u64>,
    kinds: BTreeMap<String, u64>,
}

enum Fact<'a> {
    Number(&'a str, u64),
    /// A text in the table of names, as XLA writes repeated ones.
    Text(&'a str, &'a str),
}

impl Plane {
    fn new(name: &'static str) -> Self {
        let (lines, facts) = (Vec::new(), Vec::new());
        Self { name, lines, facts, events: BTreeMap::new(), kinds: BTreeMap::new() }
    }

    fn kind(&mut self, name: &str) -> u64 {
        let next = self.kinds.len() as u64 + 1;
        *self.kinds.entry(name.to_owned()).or_insert(next)
    }

    fn fact(&mut self, fact: &Fact<'_>) -> Message {
        match *fact {
            Fact::Number(name, value) => Message::default().number(1, self.kind(name)).number(3, value),
            Fact::Text(name, text) => {
                let (name, text) = (self.kind(name), self.kind(text));
                Message::default().number(1, name).number(7, text)
            }
        }
    }

    fn about(&mut self, fact: &Fact<'_>) {
        let fact = self.fact(fact);
        self.facts.push(fact);
    }

    /// An event from one microsecond to another.
    fn event(&mut self, name: &str, from_us: u64, to_us: u64, facts: &[Fact<'_>]) -> Message {
        let next = self.events.len() as u64 + 1;
        let id = *self.events.entry(name.to_owned()).or_insert(next);
        let message = Message::default().number(1, id).number(2, from_us * 1_000_000);
        let message = message.number(3, (to_us - from_us) * 1_000_000);
        facts.iter().fold(message, |message, fact| message.message(4, &self.fact(fact)))
    }

    fn line(&mut self, id: u64, name: &str, events: &[Message]) {
        let line = Message::default().number(1, id).bytes(2, name).number(3, 1_000);
        self.lines.push(events.iter().fold(line, |line, event| line.message(4, event)));
    }

    fn written(&self) -> Message {
        let table = |plane: Message, field, names: &BTreeMap<String, u64>| {
            names.iter().fold(plane, |plane, (name, &id)| {
                let named = Message::default().number(1, id).bytes(2, name);
                plane.message(field, &Message::default().number(1, id).message(2, &named))
            })
        };
        let plane = Message::default().bytes(2, self.name);
        let plane = self.lines.iter().fold(plane, |plane, line| plane.message(3, line));
        let plane = table(table(plane, 4, &self.events), 5, &self.kinds);
        self.facts.iter().fold(plane, |plane, fact| plane.message(6, fact))
    }
}

const STEPS: u64 = 8;
/// Microseconds.
const STEP: u64 = 2_000;

/// Steps that copy 8 MiB from pageable memory, compute, and copy a result back to pinned memory.
fn profile() -> Vec<u8> {
    let mut gpu = Plane::new("/device:GPU:0");
    let mut host = Plane::new("/host:CPU");
    let (mut stream, mut calls, mut python) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..STEPS {
        let (at, id) = (step * STEP, step * 10);
        let correlated = |to: u64| Fact::Number("correlation_id", id + to);
        let h2d = "kind_src:pageable kind_dst:device size:8388608 dest:0 async:1";
        stream.push(gpu.event(
            "MemcpyH2D",
            at + 30,
            at + 930,
            &[correlated(1), Fact::Text("memcpy_details", h2d)],
        ));
        let details = "regs:32 static_shared:1024 dynamic_shared:512 grid:64,2,1 block:256,1,1 occ_pct:50";
        stream.push(gpu.event(
            "loop_fusion",
            at + 940,
            at + 1_640,
            &[correlated(2), Fact::Text("kernel_details", details), Fact::Text("hlo_op", "fusion.1")],
        ));
        let set = "kind:device size:4096 async:1";
        stream.push(gpu.event(
            "Memset",
            at + 1_650,
            at + 1_652,
            &[correlated(3), Fact::Text("Memset_details", set)],
        ));
        let d2h = "kind_src:device kind_dst:pinned size:65536 dest:0 async:1";
        stream.push(gpu.event(
            "MemcpyD2H",
            at + 1_660,
            at + 1_670,
            &[correlated(4), Fact::Text("memcpy_details", d2h)],
        ));
        calls.push(host.event("cuMemcpyHtoDAsync_v2", at + 10, at + 920, &[correlated(1)]));
        calls.push(host.event("cuLaunchKernel", at + 925, at + 935, &[correlated(2)]));
        calls.push(host.event("cuMemsetD8Async", at + 1_640, at + 1_645, &[correlated(3)]));
        calls.push(host.event("cuMemcpyDtoHAsync_v2", at + 1_650, at + 1_658, &[correlated(4)]));
        python.push(host.event("train", at, at + 1_990, &[Fact::Number("step_num", step)]));
        python.push(host.event("$train.py:12 step", at + 1, at + 1_980, &[]));
        python.push(host.event("PjitFunction(step)", at + 5, at + 1_970, &[]));
        python.push(host.event(
            "MemoryAllocation",
            at + 6,
            at + 6,
            &[
                Fact::Text("allocator_name", "GPU_0_bfc"),
                Fact::Number("allocation_bytes", 8_388_608),
                Fact::Number("bytes_allocated", 16_777_216),
                Fact::Number("bytes_reserved", 33_554_432),
            ],
        ));
    }
    gpu.line(13, "Stream #13(Kernel,Memcpy,Memset)", &stream);
    let summary = gpu.event("jit_step", 0, STEP, &[]);
    gpu.line(99, "XLA Modules", &[summary]);
    for fact in [Fact::Text("device_vendor", "Nvidia"), Fact::Number("memory_size", 150 << 30)] {
        gpu.about(&fact);
    }
    host.line(583, "Host Threads/583", &calls);
    host.line(u64::MAX - 5, "python3", &python);
    let mut task = Plane::new("Task Environment");
    task.about(&Fact::Number("profile_start_time", 1_700_000_000_000_000_000));
    let metadata = Plane::new("/host:metadata");
    let space = [metadata, gpu, host, task]
        .iter()
        .fold(Message::default(), |space, plane| space.message(1, &plane.written()));
    space.bytes(4, "node7").0
}

fn opened(bytes: &[u8]) -> Result<Trace, OpenError> {
    read(bytes, Path::new("a.xplane.pb"), &ReadOptions::default())
}

fn counts(trace: &Trace) -> BTreeMap<EventKind, u64> {
    let mut counts = BTreeMap::new();
    trace.events().for_each(|event| *counts.entry(event.kind()).or_default() += 1);
    counts
}

#[test]
fn the_fixture_matches_the_generated_profile() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/xplane/pageable.xplane.pb");
    if std::env::var_os("BUSBOUND_WRITE_FIXTURES").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, profile()).unwrap();
    }
    assert!(fs::read(&path).unwrap() == profile(), "BUSBOUND_WRITE_FIXTURES=1 rewrites it");
    assert_eq!(open(&path, &ReadOptions::default()).unwrap().len() as u64, STEPS * 11);
}

#[test]
fn a_profile_has_work_calls_frames_steps_and_memory() {
    let trace = opened(&profile()).unwrap();
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    let expected = [
        (EventKind::Operator, STEPS),
        (EventKind::Annotation, STEPS),
        (EventKind::PythonFrame, STEPS),
        (EventKind::DriverCall, 4 * STEPS),
        (EventKind::Kernel, STEPS),
        (EventKind::Copy, 2 * STEPS),
        (EventKind::Memset, STEPS),
    ];
    assert_eq!(counts(&trace), BTreeMap::from(expected));
    assert_eq!(trace.stats().not_kept, BTreeMap::from([("events of line XLA Modules".to_owned(), 1)]));
    let origin = trace.origin();
    assert_eq!((origin.format.id, origin.trace_name.as_deref()), ("xplane", Some("node7")));
    assert_eq!(origin.base_time_ns, Some(1_700_000_000_000_000_000));
    assert_eq!((origin.gpus.len(), origin.gpus[0].name.as_str()), (1, "Nvidia GPU"));
    let steps = trace.events().filter(|event| event.kind() == EventKind::Annotation);
    let names: Vec<_> = steps.map(|step| step.name()).collect();
    assert_eq!((names[0], names[7]), ("step 0", "step 7"));
    let memory = trace.memory()[0];
    assert_eq!(
        (memory.owner, memory.change, memory.allocated),
        (MemoryOwner::Device(0), 8_388_608, 16_777_216)
    );
}

#[test]
fn copies_have_direction_memory_kinds_bytes_and_their_call() {
    let trace = opened(&profile()).unwrap();
    let mut sums: BTreeMap<_, (u64, i64)> = BTreeMap::new();
    for copy in trace.events().filter(|event| event.kind() == EventKind::Copy) {
        let transfer = copy.transfer().unwrap();
        let sum = sums.entry((transfer.direction, transfer.src, transfer.dst)).or_default();
        sum.0 += transfer.bytes.unwrap().get();
        sum.1 += copy.duration().get();
        assert_eq!(copy.place(), Place::Stream { device: 0, stream: 13 });
        let is_call = |event: &busbound_trace::Event<'_>| event.kind() == EventKind::DriverCall;
        let mut calls = trace.events().filter(is_call);
        assert!(calls.any(|call| call.correlation() == copy.correlation() && call.name().contains("Memcpy")));
    }
    let (host, device) = (MemoryKind::Pageable, MemoryKind::Device);
    let expected = [
        ((Direction::HostToDevice, host, device), (STEPS * 8_388_608, (STEPS * 900_000) as i64)),
        ((Direction::DeviceToHost, device, MemoryKind::Pinned), (STEPS * 65_536, (STEPS * 10_000) as i64)),
    ];
    assert_eq!(sums, BTreeMap::from(expected));
    let kernel = trace.events().find(|event| event.kind() == EventKind::Kernel).unwrap();
    let launch = kernel.launch().unwrap();
    assert_eq!((launch.grid, launch.block), ([64, 2, 1], [256, 1, 1]));
    assert_eq!((launch.registers_per_thread, launch.shared_memory), (32, 1_536));
    assert_eq!((kernel.start().as_nanos(), kernel.duration().get()), (1_000 + 940_000, 700_000));
}

#[test]
fn a_cut_profile_gives_the_events_that_still_have_names() {
    let whole = profile();
    let all = opened(&whole).unwrap().len();
    for end in 1..whole.len() {
        match opened(&whole[..end]) {
            Ok(trace) => assert!(trace.len() <= all, "cut at {end}"),
            Err(OpenError::NoEventsIn { .. } | OpenError::NoEvents { .. }) => {}
            Err(other) => panic!("cut at {end}: {other}"),
        }
    }
    // Cut within the last plane: all events are kept, and the cut is reported.
    let last = whole.len() - b"\x22\x05node7".len() - 2;
    let cut = opened(&whole[..last]).unwrap();
    assert_eq!((cut.len(), cut.stats().losses[0].what), (all, LossKind::EndsInsideEvent));
}

#[test]
fn every_damaged_byte_gives_a_trace_or_an_error_message() {
    let whole = profile();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        if let Ok(trace) = opened(&bytes) {
            assert_eq!(trace.tracks().iter().map(|track| track.events().len()).sum::<usize>(), trace.len());
        }
    }
}

/// A profile that went through a text editor has lengths of terabytes. It once "did not fit into --memory".
#[test]
fn a_length_that_no_message_has_is_damage() {
    let mut bytes = vec![0x0a];
    bytes.extend([0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd, 0x06]);
    bytes.extend(b"\x08\x02\x12\x0a/device:TPU:0");
    let said = read(&bytes[..], Path::new("t.xplane.pb"), &ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(
        said,
        "t.xplane.pb is an XLA profile without any events: it is damaged or cut; copy it again, or record again"
    );
}

#[test]
fn chrome_json_of_the_same_run_as_a_profile_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["node7.xplane.pb", "node7.trace.json.gz", "other.trace.json.gz"] {
        fs::write(folder.path().join(name), profile()).unwrap();
    }
    let found = discover(folder.path()).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_string_lossy()).collect();
    assert_eq!(names, ["node7.xplane.pb", "other.trace.json.gz"]);
}

#[test]
fn a_compressed_profile_is_read() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&profile()).unwrap();
    let trace = read(&packed.finish().unwrap()[..], Path::new("a.gz"), &ReadOptions::default()).unwrap();
    assert_eq!((trace.len() as u64, trace.origin().format.id), (STEPS * 11, "xplane"));
    assert!(trace.stats().compressed && trace.stats().is_complete());
}

/// TensorFlow, and JAX on ROCm before 0.8, name launches after their kernels: such kernels seemed to have no launch call.
#[test]
fn a_launch_that_is_named_after_its_kernel_is_a_launch() {
    let (mut gpu, mut host) = (Plane::new("/device:GPU:0"), Plane::new("/host:CPU"));
    let correlated = |id: u64| [Fact::Number("correlation_id", id)];
    let names = ["loop_transpose_fusion", "CopyDeviceToDevice", "CopyHostToDevice"];
    let stream: Vec<Message> = (1..4)
        .map(|id| gpu.event(names[id as usize - 1], 100 * id, 100 * id + 50, &correlated(id)))
        .collect();
    // A copy call that is named after its copy was a launch.
    let calls = [("loop_transpose_fusion", 1), ("hipMemcpyDtoDAsync", 2), ("CopyHostToDevice", 3)];
    let calls = calls.map(|(name, id)| host.event(name, 100 * id - 20, 100 * id - 10, &correlated(id)));
    gpu.line(7, "Stream #7(Kernel)", &stream);
    host.line(1, "py_xla_execute", &calls);
    let space =
        [gpu, host].iter().fold(Message::default(), |space, plane| space.message(1, &plane.written()));
    let trace = opened(&space.0).unwrap();
    let calls: Vec<_> =
        trace.events().filter(|event| event.kind().is_call()).map(|call| Call::of(call.name())).collect();
    assert_eq!(calls, [Call::Launch, Call::Copy, Call::Copy]);
    let copies: Vec<_> =
        trace.events().filter_map(|event| event.transfer()).map(|copy| copy.direction).collect();
    assert_eq!(copies, [Direction::DeviceToDevice, Direction::HostToDevice]);
}

/// Where the real profiles are; they are not in the repository.
#[expect(clippy::print_stderr, reason = "a skipped test should say so")]
fn peer(name: &str) -> Option<PathBuf> {
    let next_to_checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/peers");
    let peers =
        std::env::var_os("BUSBOUND_PEERS").map_or_else(|| PathBuf::from(next_to_checkout), PathBuf::from);
    let path = peers.join("xplane").join(name);
    if !path.is_file() {
        eprintln!("skipped: {} does not exist", path.display());
        return None;
    }
    Some(path)
}

/// Counts and sums from another decoder, for test profiles of AMD's TraceLens.
#[test]
fn real_profiles_match_another_decoder() {
    let profiles = [
        ("tw003.xplane.pb", [235, 234, 1_353, 1_598], 230, 28_137_077, 234),
        ("934987a2fc2f.xplane.pb", [150, 150, 59, 1_574], 59, 12_133_585, 150),
    ];
    for (name, counted, samples, kernel_ns, joined) in profiles {
        let Some(path) = peer(name) else { return };
        let trace = open(&path, &ReadOptions::default()).unwrap();
        assert!(trace.stats().is_complete(), "{name}: {:?}", trace.stats().losses);
        let counts = counts(&trace);
        let kinds = [EventKind::Kernel, EventKind::RuntimeCall, EventKind::PythonFrame, EventKind::Operator];
        assert_eq!(kinds.map(|kind| counts[&kind]), counted, "{name}");
        assert_eq!((counts.len(), trace.memory().len()), (4, samples), "{name}");
        let of = |kind| trace.events().filter(move |event| event.kind() == kind);
        let ran: i64 = of(EventKind::Kernel).map(|kernel| kernel.duration().get()).sum();
        assert_eq!(ran, kernel_ns, "{name}");
        let called: BTreeSet<_> = of(EventKind::RuntimeCall).filter_map(|call| call.correlation()).collect();
        let worked: BTreeSet<_> = of(EventKind::Kernel).filter_map(|kernel| kernel.correlation()).collect();
        assert_eq!(called.intersection(&worked).count(), joined, "{name}");
    }
}
