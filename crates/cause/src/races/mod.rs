//! Which copies touch the same memory at the same time, although nothing orders them?
//!
//! The graph's edges say what work waited for, as far as that explains times. A race is about what work would *not* have waited
//! for, so every order counts here that a recording shows, and every doubt counts as an order:
//!
//! - Of two copies, the second must have been issued while the first was not done: whatever the host waited for in between,
//!   recorded or not, did not order them.
//! - Streams are ordered by their own work, by events, by the rules of the legacy default stream, and by what the host waited for.
//!   Allocations and launches of CUDA graphs order everything. So does a wait for an event whose record is not in the trace.
//! - A stream that ever waits for something else than an event (a value in memory, a semaphore, a function of the host) is not
//!   judged, nor is one of which it is not known how it was created.
//! - Nothing is said about recordings with losses. What kernels touch is not recorded.

mod clock;
mod order;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use busbound_trace::{Event, EventId, MemoryKind, Place, StreamKind, Trace};

use crate::Time;
use crate::host::Host;
use crate::thresholds::{CLOCKS_AGREE, MOST_COPYING_STREAMS, MOST_RACES, SHORT_SEARCH_DEPTH};
use clock::Clock;
use order::{Order, Step, Steps};

/// Two copies or memsets on different streams of one device that touch the same bytes, with nothing that orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// The one that was issued first.
    pub first: Side,
    pub second: Side,
    /// How much both of them touch.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    pub work: EventId,
    pub writes: bool,
    /// Where the bytes that both touch begin within what this one touches.
    pub offset: u64,
}

/// A range of memory that a copy reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
    writes: bool,
}

/// A copy or memset whose memory is recorded.
#[derive(Debug, Clone)]
struct Touch {
    work: EventId,
    device: i32,
    /// The number of its stream among those that copy, and its own number on it, from 1 on.
    lane: usize,
    number: u32,
    is_judged: bool,
}

/// All races of a trace, in the order in which the second of the two was issued; nothing if the trace cannot say.
pub fn races(trace: &Trace, host: &Host<'_>) -> Vec<Race> {
    // A stream with a number below 0 is any of them.
    let is_any = trace.other_waits().first().is_some_and(|stream| *stream < 0);
    if !trace.has_accesses() || !trace.stats().is_complete() || is_any {
        return Vec::new();
    }
    let kinds = stream_kinds(trace);
    if kinds.len() < 2 || kinds.len() > MOST_COPYING_STREAMS {
        return Vec::new();
    }
    let steps = Steps::of(trace, host);
    let order = Order::new(kinds, trace.other_waits(), &steps.unissued);
    let mut finder = Finder {
        shared: shared(trace),
        order,
        touches: Vec::new(),
        running: Running::default(),
        found: Vec::new(),
    };
    for (at, step) in steps.all {
        match step {
            Step::Issue(work) => finder.issue(at, &trace.event(work)),
            other => finder.order.apply(other),
        }
        if finder.found.len() >= MOST_RACES {
            break;
        }
    }
    finder.found
}

/// How the streams that copy were created, by their number.
fn stream_kinds(trace: &Trace) -> BTreeMap<i64, StreamKind> {
    let mut kinds: BTreeMap<i64, StreamKind> = BTreeMap::new();
    for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
        if let (Some(access), Place::Stream { stream, .. }) = (work.access(), work.place()) {
            let kind = kinds.entry(stream).or_insert(access.stream);
            // Two contexts may have streams of one number.
            if *kind != access.stream {
                *kind = StreamKind::Unknown;
            }
        }
    }
    kinds
}

/// Calls that issued more than one copy, whose parts of the memory are not known; in order.
fn shared(trace: &Trace) -> Vec<u64> {
    let copies = trace.events().filter(|event| event.access().is_some() && event.kind().is_gpu_work());
    let mut all: Vec<u64> = copies.filter_map(|copy| copy.correlation()).collect();
    all.sort_unstable();
    all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

struct Finder {
    shared: Vec<u64>,
    order: Order,
    touches: Vec<Touch>,
    running: Running,
    found: Vec<Race>,
}

impl Finder {
    fn issue(&mut self, at: Time, work: &Event<'_>) {
        let Place::Stream { device, stream } = work.place() else { return };
        let is_shared = work.correlation().is_some_and(|id| self.shared.binary_search(&id).is_ok());
        let ranges = if is_shared { Vec::new() } else { ranges(work) };
        let before = self.order.begin(stream).clone();
        let lane = self.order.lane(stream).filter(|_| !ranges.is_empty());
        let number = self.order.issue(stream, lane);
        let Some(lane) = lane else { return };
        let is_judged = self.order.is_known(stream) && !before.is_unknown();
        let touch = Touch { work: work.id(), device, lane, number, is_judged };
        self.running.forget(at + CLOCKS_AGREE);
        self.compare(&touch, &before, &ranges);
        self.running.add(self.touches.len(), work.end().as_nanos(), &ranges);
        self.touches.push(touch);
    }

    /// Adds a race with each copy that is not done, overlaps, and is not ordered before; the first range of a pair is enough.
    fn compare(&mut self, touch: &Touch, before: &Clock, ranges: &[Range]) {
        if !touch.is_judged {
            return;
        }
        let mut seen: Vec<usize> = Vec::new();
        for range in ranges {
            for (other, its) in self.running.overlapping(*range) {
                let first = &self.touches[other];
                let is_ordered = first.lane == touch.lane || before.has(first.lane, first.number);
                let conflicts = (range.writes || its.writes) && first.device == touch.device;
                if is_ordered || !conflicts || !first.is_judged || seen.contains(&other) {
                    continue;
                }
                seen.push(other);
                let start = range.start.max(its.start);
                let side =
                    |work, range: Range| Side { work, writes: range.writes, offset: start - range.start };
                self.found.push(Race {
                    first: side(first.work, its),
                    second: side(touch.work, *range),
                    bytes: range.end.min(its.end) - start,
                });
            }
        }
    }
}

/// What a copy or memset reads and writes. Pageable memory is read before the call returns, and managed memory moves: neither
/// is known to be in use while the copy runs.
fn ranges(work: &Event<'_>) -> Vec<Range> {
    let (Some(access), Some(transfer)) = (work.access(), work.transfer()) else { return Vec::new() };
    let bytes = transfer.bytes.map_or(0, |bytes| bytes.get());
    let is_fixed = |kind: MemoryKind| matches!(kind, MemoryKind::Pinned | MemoryKind::Device);
    let range = |start: u64, writes| Range { start, end: start.saturating_add(bytes), writes };
    let read = access.from.filter(|_| is_fixed(transfer.src)).map(|from| range(from, false));
    let written = is_fixed(transfer.dst).then(|| range(access.to, true));
    read.into_iter().chain(written).filter(|range| range.end > range.start).collect()
}

/// Copies that are not done, by the memory that they touch.
#[derive(Default)]
struct Running {
    /// By first address and touch.
    by_address: BTreeMap<(u64, usize, bool), u64>,
    longest: u64,
    by_end: BinaryHeap<Reverse<(Time, usize)>>,
    /// The ranges of each touch.
    ranges: BTreeMap<usize, Vec<Range>>,
}

impl Running {
    fn add(&mut self, touch: usize, end: Time, ranges: &[Range]) {
        for range in ranges {
            self.by_address.insert((range.start, touch, range.writes), range.end);
            self.longest = self.longest.max(range.end - range.start);
        }
        self.ranges.insert(touch, ranges.to_vec());
        self.by_end.push(Reverse((end, touch)));
    }

    /// Forgets what was done by this time.
    fn forget(&mut self, by: Time) {
        while let Some(&Reverse((end, touch))) = self.by_end.peek()
            && end <= by
        {
            self.by_end.pop();
            for range in self.ranges.remove(&touch).unwrap_or_default() {
                self.by_address.remove(&(range.start, touch, range.writes));
            }
        }
    }

    /// Those that touch some of this range; a few, if there are many.
    fn overlapping(&self, range: Range) -> Vec<(usize, Range)> {
        let first = (range.start.saturating_sub(self.longest), 0, false);
        let near = self.by_address.range(first..(range.end, 0, false)).rev().take(SHORT_SEARCH_DEPTH);
        let found = near.filter(|(_, end)| **end > range.start);
        found.map(|(&(start, touch, writes), &end)| (touch, Range { start, end, writes })).collect()
    }
}
