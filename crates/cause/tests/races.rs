//! Copies that nothing orders are found, and no others.

use busbound_cause::{Host, Race, races};
use busbound_trace::{
    Access, Bytes, LossKind, MemoryKind, StreamKind, SyncKind, Synchronization, TraceBuilder, TrackId,
    Transfer,
};
use proptest::prelude::*;

/// A program on one host thread: each call takes 10 µs, and each copy ends after 10 ms unless the test says otherwise.
struct Program {
    trace: TraceBuilder,
    host: TrackId,
    now: i64,
    correlation: u64,
    accesses: Vec<(u64, Access)>,
    other_waits: Vec<i64>,
    kinds: [StreamKind; 3],
    takes: i64,
}

const STREAMS: [i64; 3] = [7, 13, 14];
const MS: i64 = 1_000_000;

impl Program {
    fn new() -> Self {
        let mut trace = TraceBuilder::default();
        let host = trace.thread(1, 1);
        Self {
            trace,
            host,
            now: 0,
            correlation: 0,
            accesses: Vec::new(),
            other_waits: Vec::new(),
            kinds: [StreamKind::Legacy, StreamKind::NonBlocking, StreamKind::NonBlocking],
            takes: 10 * MS,
        }
    }

    fn call(&mut self, name: &str) -> u64 {
        self.correlation += 1;
        self.trace.runtime_call(self.host, name, self.now..self.now + 5_000).correlation(self.correlation);
        self.now += 10_000;
        self.correlation
    }

    fn issue(&mut self, name: &str, stream: usize, transfer: Transfer, to: u64, from: Option<u64>) {
        let (start, kind) = (self.now, self.kinds[stream]);
        let correlation = self.call(name);
        let track = self.trace.stream(0, STREAMS[stream]);
        self.trace.copy(track, transfer, start + 3_000..start + self.takes).correlation(correlation);
        self.accesses.push((correlation, Access { to, from, stream: kind }));
    }

    /// From pinned memory at `from` to the device at `to`.
    fn h2d(&mut self, stream: usize, to: u64, from: u64, bytes: u64) {
        let transfer = Transfer::host_to_device(MemoryKind::Pinned, bytes);
        self.issue("cudaMemcpyAsync", stream, transfer, to, Some(from));
    }

    fn d2h(&mut self, stream: usize, to: u64, from: u64, bytes: u64) {
        let transfer = Transfer::device_to_host(MemoryKind::Pinned, bytes);
        self.issue("cudaMemcpyAsync", stream, transfer, to, Some(from));
    }

    fn memset(&mut self, stream: usize, to: u64, bytes: u64) {
        let start = self.now;
        let correlation = self.call("cudaMemsetAsync");
        let track = self.trace.stream(0, STREAMS[stream]);
        let time = start + 3_000..start + self.takes;
        self.trace.memset(track, MemoryKind::Device, Some(Bytes::new(bytes)), time).correlation(correlation);
        self.accesses.push((correlation, Access { to, from: None, stream: self.kinds[stream] }));
    }

    fn record(&mut self) -> u64 {
        self.call("cudaEventRecord")
    }

    fn sync(&mut self, kind: SyncKind, stream: i64, on: Option<(usize, u64)>, until: i64) {
        let (start, name) = (
            self.now,
            if kind == SyncKind::StreamWaitEvent { "cudaStreamWaitEvent" } else { "cudaStreamSynchronize" },
        );
        let correlation = self.call(name);
        let sync = Synchronization {
            waits_on_stream: on.map(|(stream, _)| STREAMS[stream]),
            waits_on_record: on.map(|(_, record)| record),
            ..Synchronization::of(kind)
        };
        let track = self.trace.stream(0, stream);
        let end = until.max(start + 5_000);
        self.trace.synchronization(track, sync, start..end).correlation(correlation);
        self.now = self.now.max(end);
    }

    /// `stream` waits for what was recorded on the other one.
    fn wait(&mut self, stream: usize, on: (usize, u64)) {
        self.sync(SyncKind::StreamWaitEvent, STREAMS[stream], Some(on), 0);
    }

    fn races(mut self) -> Vec<Race> {
        self.trace.accesses(self.accesses, self.other_waits);
        let trace = self.trace.finish();
        let host = Host::of(&trace);
        races(&trace, &host)
    }
}

/// The device buffer, and two in host memory.
const GPU: u64 = 0x7f00_0000_0000;
const HOST: u64 = 0x10_0000;
const OTHER_HOST: u64 = 0x80_0000;
const MIB: u64 = 1 << 20;

/// The first copy; `between`; the second one, which overwrites its last quarter.
fn two(between: impl FnOnce(&mut Program)) -> Vec<Race> {
    let mut program = Program::new();
    program.h2d(1, GPU, HOST, 4 * MIB);
    between(&mut program);
    program.h2d(0, GPU + 3 * MIB, OTHER_HOST, 2 * MIB);
    program.races()
}

#[test]
fn a_copy_into_memory_that_another_stream_is_still_filling_is_a_race() {
    let found = two(|_| {});
    let [race] = found[..] else { panic!("{found:?}") };
    assert_eq!((race.bytes, race.first.offset, race.second.offset), (MIB, 3 * MIB, 0));
    assert!(race.first.writes && race.second.writes);
}

#[test]
fn an_event_between_the_streams_orders_them() {
    assert_eq!(
        two(|program| {
            let record = program.record();
            program.wait(0, (1, record));
        }),
        []
    );
    // In the wrong direction, and before the copy: neither orders them.
    let wrong_way = two(|program| {
        let record = program.record();
        program.wait(1, (0, record));
    });
    assert_eq!(wrong_way.len(), 1);
    let mut program = Program::new();
    let record = program.record();
    program.h2d(1, GPU, HOST, MIB);
    program.wait(0, (1, record));
    program.h2d(0, GPU, HOST, MIB);
    assert_eq!(program.races().len(), 1);
}

#[test]
fn an_event_by_way_of_a_third_stream_orders_them() {
    let by_way = |program: &mut Program| {
        let first = program.record();
        program.wait(2, (1, first));
        let second = program.record();
        program.wait(0, (2, second));
    };
    assert_eq!(two(by_way), []);
}

#[test]
fn a_wait_for_an_event_that_is_not_in_the_trace_counts_as_an_order() {
    assert_eq!(two(|program| program.sync(SyncKind::StreamWaitEvent, STREAMS[0], None, 0)), []);
    assert_eq!(two(|program| program.wait(0, (1, 4711))), []);
    assert_eq!(two(|program| program.sync(SyncKind::StreamWaitEvent, -1, None, 0)), [], "which stream?");
}

#[test]
fn what_the_host_waited_for_is_done() {
    for (kind, stream) in [(SyncKind::StreamSync, 13), (SyncKind::ContextSync, -1), (SyncKind::EventSync, -1)]
    {
        // Clocks that are apart: the wait returned although the copy seems to go on.
        assert_eq!(two(|program| program.sync(kind, stream, None, 2 * MS)), [], "{kind:?}");
        assert_eq!(two(|program| program.sync(kind, stream, None, 20 * MS)), [], "{kind:?}");
    }
    let of_another = two(|program| program.sync(SyncKind::StreamSync, 7, None, 0));
    assert_eq!(of_another.len(), 1, "a wait for the second stream");
}

#[test]
fn a_copy_that_is_done_when_the_next_is_issued_is_no_race_whatever_the_host_waited_for() {
    assert_eq!(two(|program| program.now = 11 * MS), []);
    // So close that the clocks may be wrong.
    assert_eq!(two(|program| program.now = 10 * MS - 40_000), []);
    assert_eq!(two(|program| program.now = 10 * MS - 60_000).len(), 1);
}

#[test]
fn one_stream_reads_and_other_bytes_are_no_races() {
    let mut same = Program::new();
    same.h2d(1, GPU, HOST, MIB);
    same.h2d(1, GPU, HOST, MIB);
    // Something on another stream, or nothing would be compared.
    same.h2d(2, GPU + 64 * MIB, HOST, MIB);
    assert_eq!(same.races(), []);
    let mut reads = Program::new();
    reads.h2d(1, GPU, HOST, MIB);
    reads.h2d(2, GPU + 64 * MIB, HOST, MIB);
    assert_eq!(reads.races(), []);
    let mut next = Program::new();
    next.h2d(1, GPU, HOST, MIB);
    next.h2d(2, GPU + MIB, HOST, MIB);
    assert_eq!(next.races(), []);
}

#[test]
fn host_memory_and_memsets_race_too() {
    let mut program = Program::new();
    program.d2h(1, HOST, GPU, MIB);
    program.h2d(2, GPU + 64 * MIB, HOST, MIB);
    let found = program.races();
    let [race] = found[..] else { panic!("{found:?}") };
    assert_eq!((race.first.writes, race.second.writes), (true, false));
    let mut program = Program::new();
    program.d2h(1, HOST, GPU, MIB);
    program.memset(2, GPU + MIB / 2, MIB);
    let found = program.races();
    let [race] = found[..] else { panic!("{found:?}") };
    assert_eq!((race.first.writes, race.second.writes, race.bytes), (false, true, MIB / 2));
}

/// The call that copies from pageable memory returns when the memory is read: the program may reuse it at once.
#[test]
fn pageable_memory_is_free_when_the_call_returns() {
    let mut program = Program::new();
    let pageable = Transfer::host_to_device(MemoryKind::Pageable, MIB);
    program.issue("cudaMemcpyAsync", 1, pageable, GPU, Some(HOST));
    program.d2h(2, HOST, GPU + 64 * MIB, MIB);
    assert_eq!(program.races(), []);
}

#[test]
fn blocking_copies_allocations_and_graphs_order_what_follows() {
    assert_eq!(two(|program| _ = program.call("cudaMalloc")), []);
    assert_eq!(two(|program| _ = program.call("cudaGraphLaunch")), []);
    assert_eq!(two(|program| _ = program.call("cudaMemcpy")), []);
    assert_eq!(two(|program| _ = program.call("cudaLaunchKernel")).len(), 1);
}

#[test]
fn the_legacy_stream_orders_blocking_streams_and_no_others() {
    let with = |kinds: [StreamKind; 3]| {
        let mut program = Program::new();
        program.kinds = kinds;
        program.h2d(1, GPU, HOST, MIB);
        program.h2d(2, GPU, OTHER_HOST, MIB);
        program.races().len()
    };
    use StreamKind::{Blocking, Legacy, NonBlocking, Unknown};
    assert_eq!(with([Legacy, Blocking, Blocking]), 1);
    assert_eq!(with([Legacy, Legacy, NonBlocking]), 1);
    assert_eq!(with([Legacy, Legacy, Blocking]), 0, "it waits for the legacy stream");
    assert_eq!(with([Legacy, Blocking, Legacy]), 0, "the legacy stream waits for it");
    assert_eq!(with([Legacy, NonBlocking, Unknown]), 0);
    // Work on the legacy stream is after the first and before the second.
    let mut program = Program::new();
    program.kinds = [Legacy, Blocking, Blocking];
    program.h2d(1, GPU, HOST, MIB);
    program.memset(0, GPU + 64 * MIB, MIB);
    program.h2d(2, GPU, OTHER_HOST, MIB);
    assert_eq!(program.races(), []);
}

#[test]
fn streams_that_wait_for_something_else_are_not_judged() {
    let with = |stream: i64| two(|program| program.other_waits.push(stream)).len();
    assert_eq!((with(13), with(7), with(14), with(-1)), (0, 0, 1, 0));
}

#[test]
fn a_call_with_several_copies_is_not_judged() {
    let twice = |program: &mut Program| {
        let track = program.trace.stream(0, STREAMS[1]);
        let again = Transfer::host_to_device(MemoryKind::Pinned, MIB);
        program.trace.copy(track, again, 20 * MS..21 * MS).correlation(program.correlation);
    };
    assert_eq!(two(twice), []);
}

#[test]
fn recordings_with_losses_and_without_addresses_say_nothing() {
    assert_eq!(two(|program| program.trace.lose(LossKind::DroppedRecord, 0, 0)), []);
    assert_eq!(two(|program| program.accesses.clear()), []);
}

/// One thing that a program does.
#[derive(Debug, Clone, Copy)]
enum Act {
    Copy(usize),
    /// Record on one stream, wait on the other.
    Wait(usize, usize),
    HostSync(usize),
}

/// What each copy comes after, by following every edge back: an independent reading of the rules.
fn unordered(acts: &[Act]) -> Vec<(usize, usize)> {
    // What each act on a stream comes directly after, by number.
    let mut before: Vec<Vec<usize>> = Vec::new();
    let (mut last, mut host): ([Option<usize>; 3], Vec<usize>) = ([None; 3], Vec::new());
    for (number, act) in acts.iter().enumerate() {
        let of = |stream: usize| last[stream].into_iter().chain(host.iter().copied());
        before.push(match *act {
            Act::Copy(stream) => of(stream).collect(),
            Act::Wait(from, to) => of(to).chain(last[from]).collect(),
            Act::HostSync(_) => Vec::new(),
        });
        match *act {
            Act::Copy(stream) | Act::Wait(_, stream) => last[stream] = Some(number),
            Act::HostSync(stream) => host.extend(last[stream]),
        }
    }
    let comes_after = |second: usize, first: usize| {
        let mut left = vec![second];
        while let Some(act) = left.pop() {
            if act == first {
                return true;
            }
            left.extend(&before[act]);
        }
        false
    };
    let copies: Vec<usize> = (0..acts.len()).filter(|act| matches!(acts[*act], Act::Copy(_))).collect();
    let pairs = copies.iter().flat_map(|second| copies.iter().map(move |first| (*first, *second)));
    pairs.filter(|(first, second)| first < second && !comes_after(*second, *first)).collect()
}

proptest! {
    /// Copies into one buffer that are all still running, with any events and host syncs between.
    #[test]
    fn exactly_the_copies_without_a_path_between_them_race(
        acts in prop::collection::vec(
            prop_oneof![
                3 => (0..3usize).prop_map(Act::Copy),
                2 => (0..3usize, 1..3usize).prop_map(|(from, by)| Act::Wait(from, (from + by) % 3)),
                1 => (0..3usize).prop_map(Act::HostSync),
            ],
            0..14,
        )
    ) {
        let mut program = Program::new();
        program.takes = 1000 * MS;
        program.kinds = [StreamKind::NonBlocking; 3];
        let mut number_of = std::collections::BTreeMap::new();
        for (number, act) in acts.iter().enumerate() {
            match *act {
                Act::Copy(stream) => {
                    number_of.insert(program.correlation + 1, number);
                    program.h2d(stream, GPU, HOST + number as u64 * MIB, MIB);
                }
                Act::Wait(from, to) => {
                    let record = program.record();
                    program.wait(to, (from, record));
                }
                Act::HostSync(stream) => program.sync(SyncKind::StreamSync, STREAMS[stream], None, 0),
            }
        }
        program.trace.accesses(program.accesses, Vec::new());
        let trace = program.trace.finish();
        let host = Host::of(&trace);
        let number = |work| number_of[&trace.event(work).correlation().unwrap()];
        let mut found: Vec<(usize, usize)> =
            races(&trace, &host).iter().map(|race| (number(race.first.work), number(race.second.work))).collect();
        found.sort_unstable();
        let mut expected = unordered(&acts);
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}
