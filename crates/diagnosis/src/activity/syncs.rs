//! Where does the host stop and wait for the device?

use std::collections::BTreeMap;

use busbound_trace::{
    Call, Direction, Event, EventKind, Interval, IntervalSet, MemoryKind, Nanos, Place, Timestamp, Trace,
    TrackId,
};
use serde::Serialize;

use crate::activity::gaps::{CallTimes, call_times};
use crate::pattern::pattern_of;
use busbound_cause::thresholds::{READ_AND_WAIT, SMALL_READ};
use busbound_cause::{Host, Origin, OriginNames};

/// Why a synchronization was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SyncReason {
    /// A blocking copy waits for its own completion (`.to(device)`, `.cpu()`).
    BlockingCopy,
    /// A value was read back: `.item()`, a comparison, printing.
    ValueRead,
    /// A copy of a few bytes from pageable memory waits for everything before it.
    SmallUpload,
    /// The program asked for it.
    Explicit,
}

impl SyncReason {
    /// By the innermost operator around the call, and whether it waits behind a small copy.
    fn of(operator: Option<&str>, follows_small_upload: bool) -> Self {
        match operator {
            Some("aten::copy_" | "aten::to" | "aten::_to_copy") if follows_small_upload => Self::SmallUpload,
            Some("aten::copy_" | "aten::to" | "aten::_to_copy") => Self::BlockingCopy,
            Some("aten::item" | "aten::_local_scalar_dense" | "aten::is_nonzero" | "aten::nonzero") => {
                Self::ValueRead
            }
            _ => Self::Explicit,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncTotal {
    pub reason: SyncReason,
    pub count: u64,
    pub host_ms: f64,
    /// Synchronizations that are not the last of their step: the host cannot queue the rest of the step before them.
    pub within_step: u64,
    pub within_step_ms: f64,
    pub place: Option<String>,
    /// What `place` describes.
    #[serde(skip)]
    pub(crate) origin: Option<Origin>,
    /// How long the host waits within steps for values that decide what runs next, or may.
    #[serde(skip)]
    pub(crate) deciding_ms: f64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Syncs {
    pub(crate) totals: Vec<SyncTotal>,
    /// When device-wide synchronizations ran, to find blocks that end in one.
    pub(crate) device_wide: Vec<Interval>,
    /// When each thread was inside avoidable synchronizations within steps.
    pub(crate) avoidable_times: CallTimes,
}

impl Syncs {
    pub(crate) fn of(&self, reason: SyncReason) -> Option<&SyncTotal> {
        self.totals.iter().find(|total| total.reason == reason)
    }

    /// Whether most of the waiting within steps is for values by which the program decides, or may decide, what to launch next.
    pub(crate) fn mostly_decide(&self) -> bool {
        let deciding_ms: f64 = self.totals.iter().map(|total| total.deciding_ms).sum();
        2.0 * deciding_ms > self.avoidable().ms
    }

    /// Synchronizations within steps that the program could avoid.
    pub(crate) fn avoidable(&self) -> Waits {
        let mut waits = Waits { count: 0, ms: 0.0 };
        for total in self.totals.iter().filter(|total| total.reason != SyncReason::BlockingCopy) {
            waits.count += total.within_step;
            waits.ms += total.within_step_ms;
        }
        waits
    }
}

pub(crate) struct Waits {
    pub(crate) count: u64,
    pub(crate) ms: f64,
}

/// `step_starts` are when steps begin on the host, in order; empty if there are no steps.
pub(crate) fn syncs(host: &Host<'_>, step_starts: &[Timestamp]) -> Syncs {
    let trace = host.trace();
    let explicit = host.synchronizations().map(|call| (call, false));
    let mut calls: Vec<_> = explicit
        .chain(synchronous_reads(host).map(|call| (call, true)))
        .filter(|(call, _)| matches!(call.place(), Place::Thread { .. }))
        .collect();
    calls.sort_by_key(|(call, _)| call.start());
    // The last one of each step; without steps, the last one of the trace.
    let mut last_of_step: BTreeMap<usize, (Timestamp, bool)> = BTreeMap::new();
    let step_of = |at| step_starts.partition_point(|&start| start <= at);
    for (call, is_read) in &calls {
        last_of_step.insert(step_of(call.start()), (call.start(), *is_read));
    }
    let (small, decisions) = (SmallUploads::of(host), Decisions::of(trace));
    let mut totals: BTreeMap<SyncReason, Sum> = BTreeMap::new();
    let mut device_wide = Vec::new();
    let mut avoidable = Vec::new();
    for (call, is_read) in &calls {
        let place = host.place_of(call);
        let operator = place.operator.map(|operator| trace.names().get(operator));
        let reason = match is_read {
            true => SyncReason::ValueRead,
            false => SyncReason::of(operator, small.are_before(call)),
        };
        if call.name().contains("DeviceSynchronize") || call.name().contains("CtxSynchronize") {
            device_wide.push(call.interval());
        }
        // A wait and the read right after it are one.
        let waits_until = call.end() + Nanos::new(READ_AND_WAIT);
        let is_within_step = last_of_step
            .get(&step_of(call.start()))
            .is_some_and(|(last, is_read)| call.start() < *last && !(*is_read && waits_until >= *last));
        if is_within_step && reason != SyncReason::BlockingCopy {
            avoidable.push(*call);
        }
        let decides = is_within_step && (*is_read || decisions.are_around(call));
        totals.entry(reason).or_default().add(call.duration(), is_within_step.then_some(decides), place);
    }
    let totals = totals.into_iter().map(|(reason, sum)| sum.finish(reason, trace)).collect();
    Syncs { totals, device_wide, avoidable_times: call_times(avoidable) }
}

/// Calls that read a value and wait for it themselves, such as `cudaMemcpy` of a flag: no other call waits.
fn synchronous_reads<'t>(host: &Host<'t>) -> impl Iterator<Item = Event<'t>> {
    let is_read = |copy: &Event<'_>| {
        let transfer = copy.transfer().filter(|transfer| transfer.direction == Direction::DeviceToHost);
        transfer.and_then(|transfer| transfer.bytes).is_some_and(|bytes| bytes.get() <= SMALL_READ)
    };
    let copies = host.trace().events().filter(|event| event.kind() == EventKind::Copy);
    let calls = copies.filter(is_read).filter_map(|copy| host.call_behind(&copy));
    calls.filter(|call| host.call_kind(call) == Call::Copy && !call.name().contains("Async"))
}

/// Copies of at most this many bytes carry values, not data.
const SMALL: u64 = SMALL_READ;
/// A wait that is this many times longer than the copy before it waits for other work, if it is longer than a wait for the copy alone takes with
/// all that is around it.
const MUCH_LONGER: i64 = 10;
const LONG: Nanos = Nanos::new(100_000);
/// Between the call of a copy and the wait for it.
const AT_ONCE: Nanos = Nanos::new(50_000);

/// Copies of few bytes from pageable memory: by thread, the end of their calls and how long they take.
struct SmallUploads(BTreeMap<TrackId, Vec<(Timestamp, Nanos)>>);

impl SmallUploads {
    fn of(host: &Host<'_>) -> Self {
        let mut all: BTreeMap<TrackId, Vec<(Timestamp, Nanos)>> = BTreeMap::new();
        for copy in host.trace().events().filter(|event| event.kind() == EventKind::Copy) {
            let Some(transfer) = copy.transfer() else { continue };
            let is_upload =
                transfer.direction == Direction::HostToDevice && transfer.src == MemoryKind::Pageable;
            if is_upload
                && transfer.bytes.is_some_and(|bytes| bytes.get() <= SMALL)
                && let Some(call) = host.call_behind(&copy)
            {
                all.entry(call.track_id()).or_default().push((call.end(), copy.duration()));
            }
        }
        all.values_mut().for_each(|calls| calls.sort_unstable());
        Self(all)
    }

    /// Whether this wait follows the call of one at once, and waits for other work.
    fn are_before(&self, wait: &Event<'_>) -> bool {
        let calls = self.0.get(&wait.track_id()).map_or(&[][..], Vec::as_slice);
        let last = calls.partition_point(|call| call.0 <= wait.start()).checked_sub(1);
        last.is_some_and(|last| {
            let (end, copy) = calls[last];
            let is_other = wait.duration() > LONG && wait.duration().get() > MUCH_LONGER * copy.get();
            wait.start() - end <= AT_ONCE && is_other
        })
    }
}

/// Operators that read a value to decide by it: `if tensor:`, and those whose results are as large as the values say.
struct Decisions(BTreeMap<TrackId, IntervalSet>);

impl Decisions {
    fn of(trace: &Trace) -> Self {
        const NAMES: [&str; 4] =
            ["aten::is_nonzero", "aten::nonzero", "aten::masked_select", "aten::_unique2"];
        let names: Vec<bool> = trace.names().iter().map(|name| NAMES.contains(&name)).collect();
        if !names.contains(&true) {
            return Self(BTreeMap::new());
        }
        let is_one =
            |event: &Event<'_>| event.kind() == EventKind::Operator && names[event.name_id().index()];
        Self(call_times(trace.events().filter(is_one)))
    }

    fn are_around(&self, call: &Event<'_>) -> bool {
        self.0.get(&call.track_id()).is_some_and(|times| times.covers(call.start()))
    }
}

/// Totals of the synchronizations with one reason.
#[derive(Default)]
struct Sum {
    count: u64,
    time: Nanos,
    within: u64,
    within_time: Nanos,
    deciding: Nanos,
    /// By what is around the call, if anything is.
    places: BTreeMap<OriginNames, Nanos>,
}

impl Sum {
    /// `within_step` says whether it decides what runs next; `None` for the last one of a step.
    fn add(&mut self, duration: Nanos, within_step: Option<bool>, place: OriginNames) {
        self.count += 1;
        self.time += duration;
        if let Some(decides) = within_step {
            self.within += 1;
            self.within_time += duration;
            self.deciding += if decides { duration } else { Nanos::ZERO };
        }
        *self.places.entry(place).or_default() += duration;
    }

    fn finish(self, reason: SyncReason, trace: &Trace) -> SyncTotal {
        let places = self.places.into_iter().map(|(names, time)| (names.origin(trace), time));
        let described = places.filter_map(|(origin, time)| Some((origin.describe()?, origin, time)));
        // Of those that take equally long, the last by name.
        let most = described.max_by(|a, b| a.2.cmp(&b.2).then_with(|| a.0.cmp(&b.0)));
        let (place, origin) = most.map(|(place, origin, _)| (place, origin)).unzip();
        SyncTotal {
            reason,
            count: self.count,
            host_ms: self.time.as_millis(),
            within_step: self.within,
            within_step_ms: self.within_time.as_millis(),
            deciding_ms: self.deciding.as_millis(),
            place,
            origin,
        }
    }
}

/// The pattern of blocks that mostly end in a device-wide synchronization, and how many do.
pub(crate) fn blocks_that_end_in_sync<'a>(
    syncs: &Syncs,
    blocks: impl IntoIterator<Item = Event<'a>>,
) -> Option<(String, u64)> {
    if syncs.device_wide.is_empty() {
        return None;
    }
    let mut patterns: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut waits = syncs.device_wide.clone();
    waits.sort();
    for block in blocks {
        let sum = patterns.entry(pattern_of(block.name())).or_default();
        sum.0 += 1;
        // The wait covers the end of the block, or is within 0.1 ms of it.
        let slack = Nanos::new(100_000);
        let near = waits.partition_point(|wait| wait.end + slack < block.end());
        sum.1 += u64::from(
            waits
                .get(near)
                .is_some_and(|wait| wait.start < block.end() + slack && wait.end + slack > block.end()),
        );
    }
    patterns
        .into_iter()
        .find(|(_, (all, ended))| *all >= 3 && *ended * 10 >= *all * 8)
        .map(|(pattern, (_, ended))| (pattern, ended))
}
