//! How fast were the copies, compared with the link and with what their size allows?

use std::collections::BTreeMap;

use busbound_machine::{HostMemory, bench};
use busbound_trace::{
    Direction, Event, EventKind, Interval, IntervalSet, MemoryKind, Nanos, Place, Trace, Transfer,
};
use serde::Serialize;

use crate::activity::links::Links;
use crate::activity::rates::{HistogramBin, Moved, Rates, SizeClass, histogram, size_class, sizes};
use crate::activity::route::CopyRoute;
use crate::activity::timeline::{self, DeviceTimeline};
use busbound_cause::Host;
use busbound_trace::Call;

/// Copies of one direction between the same kinds of memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyGroup {
    pub direction: Direction,
    pub src: MemoryKind,
    pub dst: MemoryKind,
    pub count: u64,
    pub bytes: u64,
    /// Copies whose bytes are not recorded; no rate includes them.
    pub without_bytes: u64,
    /// Time in which at least one of them ran.
    pub busy_ms: f64,
    /// Sum of their durations.
    pub total_ms: f64,
    /// Time in which they ran and no kernel did.
    pub exposed_ms: f64,
    pub gbps: Option<Rates>,
    /// Mean rate over the link's peak; only for copies that cross the link.
    pub utilization: Option<f64>,
    /// Mean rate of copies of 64 KiB or more, over what the link reaches for their sizes with pinned memory.
    pub of_expected: Option<f64>,
    /// Host time inside the copy call, if the call waited for the copy.
    pub blocking: Blocking,
    /// Host time in a synchronization that directly followed the call.
    pub waited_after: Blocking,
    pub histogram: Vec<HistogramBin>,
    pub sizes: Vec<SizeClass>,
    pub streams: Vec<CopyStream>,
}

impl CopyGroup {
    /// `H2D pageable`, `D2D`: the direction, and the kind of host memory.
    pub fn kind(&self) -> String {
        kind_of((self.direction, self.src, self.dst))
    }
}

pub(crate) fn kind_of((direction, src, dst): (Direction, MemoryKind, MemoryKind)) -> String {
    match direction {
        Direction::HostToDevice => format!("H2D {}", src.word()),
        Direction::DeviceToHost => format!("D2H {}", dst.word()),
        Direction::DeviceToDevice => "D2D".to_owned(),
        Direction::PeerToPeer => "GPU to GPU".to_owned(),
        Direction::HostToHost => "host to host".to_owned(),
        Direction::Unknown => "direction not recorded".to_owned(),
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocking {
    pub count: u64,
    pub ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyStream {
    pub device: i32,
    pub stream: i64,
    pub count: u64,
    pub bytes: u64,
    pub busy_ms: f64,
    /// Kernels on the same stream: these copies can never overlap them.
    pub kernels_on_stream: u64,
}

/// Smaller pinned copies are bound by the cost of their call, not by the link: neither a separate stream nor a faster
/// link makes them cheaper.
pub(crate) const LARGE_COPY: u64 = 1 << 20;

/// One copy, with its cost on the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) transfer: &'a Transfer,
    pub(crate) device: i32,
    pub(crate) stream: i64,
    pub(crate) call: Option<Event<'a>>,
    /// Host time inside the call, if it waited for the copy.
    pub(crate) blocked: Nanos,
    /// Host time in the synchronization right after the call.
    pub(crate) waited_after: Nanos,
}

impl Copy<'_> {
    pub(crate) fn interval(&self) -> Interval {
        Interval::new(self.event.start(), self.event.end())
    }

    pub(crate) fn bytes(&self) -> Option<u64> {
        self.transfer.bytes.map(|bytes| bytes.get())
    }

    /// Whether it is large enough that the link determines its duration.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes().is_some_and(|bytes| bytes >= LARGE_COPY)
    }

    pub(crate) fn gbps(&self) -> Option<f64> {
        let nanos = self.event.duration().get();
        (nanos > 0).then_some(self.bytes()? as f64 / nanos as f64)
    }

    pub(crate) fn is_on_bus(&self) -> bool {
        is_on_bus(self.transfer.direction)
    }

    /// Whether the driver moved pages of managed memory; no call belongs to this copy.
    pub(crate) fn is_migration(&self) -> bool {
        self.event.migration().is_some()
    }

    /// The kind of host memory at one end of the copy.
    pub(crate) fn host_memory(&self) -> Option<MemoryKind> {
        host_end(self.transfer)
    }
}

pub(crate) fn is_on_bus(direction: Direction) -> bool {
    CopyRoute::of(direction).is_bus()
}

fn host_end(transfer: &Transfer) -> Option<MemoryKind> {
    match transfer.direction {
        Direction::HostToDevice => Some(transfer.src),
        Direction::DeviceToHost => Some(transfer.dst),
        _ => None,
    }
}

/// Every GPU copy, by device, stream and time, with its cost on the host.
pub(crate) fn copies<'a>(trace: &'a Trace, host: &Host<'a>) -> Vec<Copy<'a>> {
    let is_copy = |event: &Event<'_>| event.kind() == EventKind::Copy;
    let count = trace.streams().map(|track| track.events().filter(is_copy).count()).sum();
    let mut all = Vec::with_capacity(count);
    for track in trace.streams() {
        let Place::Stream { device, stream } = track.place() else { continue };
        for event in track.events().filter(is_copy) {
            let Some(transfer) = event.transfer() else { continue };
            let call = host.call_behind(&event);
            let (blocked, waited_after) =
                call.map(|call| host_side(trace, host, &event, &call)).unwrap_or_default();
            all.push(Copy { event, transfer, device, stream, call, blocked, waited_after });
        }
    }
    all
}

/// Host time that a copy cost: inside its call, and in a synchronization right after.
fn host_side(trace: &Trace, host: &Host<'_>, copy: &Event<'_>, call: &Event<'_>) -> (Nanos, Nanos) {
    // A call that only enqueues takes microseconds. A call still open when the copy is half done has
    // waited for it (or staged it, which costs the thread the same).
    let half_done = copy.start() + Nanos::new(copy.duration().get() / 2);
    let inside = call.duration().get() > 5_000 && call.end() > half_done;
    let blocked = if inside { call.duration() } else { Nanos::ZERO };
    // The next call of the thread: a wait that begins immediately and ends with the copy belongs to the copy.
    let track = trace.track(call.track_id());
    let next = track
        .events_from(track.position(call.end()))
        .take(8)
        .find(|event| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall));
    let waited = next.filter(|next| {
        host.call_kind(next) == Call::Synchronize
            && (next.start() - call.end()).get() < 50_000
            && next.end() + Nanos::new(20_000) > copy.end()
    });
    (blocked, waited.map_or(Nanos::ZERO, |wait| wait.duration()))
}

/// What copy groups are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'t> {
    pub(crate) timelines: &'t [DeviceTimeline],
    pub(crate) kernels_on_stream: &'t BTreeMap<(i32, i64), u64>,
    pub(crate) links: &'t Links,
    /// Upper ends of the histogram's bins, in GB/s.
    pub(crate) edges: &'t [f64],
}

/// The groups that the report shows, most time first.
pub(crate) fn groups(copies: &[Copy<'_>], terms: Terms<'_>) -> Vec<CopyGroup> {
    let mut by_key: BTreeMap<_, Vec<&Copy<'_>>> = BTreeMap::new();
    for copy in copies {
        let key = (copy.transfer.direction, copy.transfer.src, copy.transfer.dst);
        by_key.entry(key).or_default().push(copy);
    }
    let mut groups: Vec<_> = by_key.values().map(|copies| group(copies, terms)).collect();
    groups.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
    groups
}

fn group(copies: &[&Copy<'_>], terms: Terms<'_>) -> CopyGroup {
    let first = copies[0].transfer;
    let on_bus = is_on_bus(first.direction);
    let by_device = times_by_device(copies.iter().copied());
    let exposed = |(device, times): (&i32, &IntervalSet)| timeline::exposed(terms.timelines, *device, times);
    let sized: Vec<&Copy<'_>> = copies.iter().filter(|copy| copy.gbps().is_some()).copied().collect();
    let gbps = rates(&sized);
    let moved: Vec<Moved> = sized.iter().map(|copy| moved(copy, terms.links)).collect();
    CopyGroup {
        direction: first.direction,
        src: first.src,
        dst: first.dst,
        count: copies.len() as u64,
        bytes: bytes_of(copies.iter().copied()),
        without_bytes: copies.iter().filter(|copy| copy.bytes().is_none()).count() as u64,
        busy_ms: by_device.values().map(IntervalSet::length).sum::<Nanos>().as_millis(),
        total_ms: copies.iter().map(|copy| copy.event.duration()).sum::<Nanos>().as_millis(),
        exposed_ms: by_device.iter().map(exposed).sum::<Nanos>().as_millis(),
        utilization: gbps.filter(|_| on_bus).map(|rates| rates.weighted / peak_gbps(&sized, terms.links)),
        of_expected: of_expected(&sized, terms.links).filter(|_| on_bus),
        gbps,
        blocking: host_time(copies, |copy| copy.blocked),
        waited_after: host_time(copies, |copy| copy.waited_after),
        histogram: histogram(&moved, terms.edges),
        sizes: sizes(&moved, on_bus),
        streams: streams(copies, terms.kernels_on_stream),
    }
}

/// When at least one of these copies ran, by device.
fn times_by_device<'c>(copies: impl Iterator<Item = &'c Copy<'c>>) -> BTreeMap<i32, IntervalSet> {
    let mut by_device: BTreeMap<i32, Vec<Interval>> = BTreeMap::new();
    for copy in copies {
        by_device.entry(copy.device).or_default().push(copy.interval());
    }
    by_device.into_iter().map(|(device, times)| (device, IntervalSet::from_unsorted(times))).collect()
}

/// How many of these copies cost the host time, and how much.
fn host_time(copies: &[&Copy<'_>], of: impl Fn(&Copy<'_>) -> Nanos) -> Blocking {
    let times = || copies.iter().map(|copy| of(copy)).filter(|time| time.get() > 0);
    Blocking { count: times().count() as u64, ms: times().sum::<Nanos>().as_millis() }
}

fn peak_gbps(sized: &[&Copy<'_>], links: &Links) -> f64 {
    links.peak_gbps(sized.iter().map(|copy| (copy.device, copy.bytes().unwrap_or(0))))
}

/// The time that copies of 64 KiB or more would take with pinned memory, over the time they took. Small copies are bound
/// by latency, and a trace shows only the device's part of it.
fn of_expected(sized: &[&Copy<'_>], links: &Links) -> Option<f64> {
    let large_enough = || sized.iter().filter(|copy| copy.bytes().is_some_and(|bytes| size_class(bytes) > 0));
    let took: i64 = large_enough().map(|copy| copy.event.duration().get()).sum();
    (took > 0).then(|| large_enough().map(|copy| expected_ns(copy, links)).sum::<f64>() / took as f64)
}

fn streams(copies: &[&Copy<'_>], kernels_on_stream: &BTreeMap<(i32, i64), u64>) -> Vec<CopyStream> {
    let mut by_stream: BTreeMap<(i32, i64), Vec<&Copy<'_>>> = BTreeMap::new();
    for copy in copies {
        by_stream.entry((copy.device, copy.stream)).or_default().push(copy);
    }
    let stream = |((device, stream), copies): ((i32, i64), Vec<&Copy<'_>>)| CopyStream {
        device,
        stream,
        count: copies.len() as u64,
        bytes: bytes_of(copies.iter().copied()),
        busy_ms: IntervalSet::from_unsorted(copies.iter().map(|copy| copy.interval())).length().as_millis(),
        kernels_on_stream: kernels_on_stream.get(&(device, stream)).copied().unwrap_or(0),
    };
    by_stream.into_iter().map(stream).collect()
}

/// Bytes moved by these copies. A damaged file may claim sizes whose sum overflows.
fn bytes_of<'c>(copies: impl Iterator<Item = &'c Copy<'c>>) -> u64 {
    copies.filter_map(Copy::bytes).fold(0, u64::saturating_add)
}

/// Time the copy would take with pinned memory on its device's link.
pub(crate) fn expected_ns(copy: &Copy<'_>, links: &Links) -> f64 {
    let link = links.of(copy.device);
    let bytes = copy.bytes().unwrap_or(0);
    let direction = match copy.transfer.direction {
        Direction::DeviceToHost => bench::Direction::D2h,
        _ => bench::Direction::H2d,
    };
    if bytes == 0 { 0.0 } else { bytes as f64 / link.expected_of(bytes, direction, HostMemory::Pinned) }
}

/// The rates of copies whose bytes are recorded. Copies of one direction share their device's link, so the mean rate is
/// over the time in which at least one of them ran.
fn rates(sized: &[&Copy<'_>]) -> Option<Rates> {
    let busy: Nanos = times_by_device(sized.iter().copied()).values().map(IntervalSet::length).sum();
    Rates::of(sized.iter().filter_map(|copy| copy.gbps()), bytes_of(sized.iter().copied()), busy)
}

fn moved(copy: &Copy<'_>, links: &Links) -> Moved {
    Moved {
        bytes: copy.bytes().unwrap_or(0),
        time: copy.event.duration(),
        expected_ns: expected_ns(copy, links),
    }
}

/// The combined rate of several copy groups, each given by its bytes and rate: total bytes over total copy time.
pub fn combined_gbps(groups: impl IntoIterator<Item = (f64, Option<f64>)>) -> Option<f64> {
    let (mut bytes, mut nanos) = (0.0, 0.0);
    for (moved, gbps) in groups {
        if let Some(gbps) = gbps.filter(|gbps| *gbps > 0.0) {
            bytes += moved;
            nanos += moved / gbps;
        }
    }
    (nanos > 0.0).then(|| bytes / nanos)
}
