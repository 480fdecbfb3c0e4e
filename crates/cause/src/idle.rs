//! Why was a device idle? Looks at the edge that the work after each gap waited on, and at the host during the gap.

use std::ops::Range;

use busbound_trace::{
    Call, Direction, Event, EventId, Interval, IntervalSet, MigrationCause, Nanos, Timestamp, Trace, TrackId,
};
use serde::{Deserialize, Serialize};

use crate::graph::{Graph, WorkId};
use crate::graph_launches::GraphLaunches;
use crate::host::{Host, HostUse};
use crate::thresholds::{AFTER_IDLE, BEFORE_IDLE, KERNEL_GAP, LAUNCH_LATENCY, QUEUED_GAP};

/// The cause of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GapCause {
    /// The host was inside a copy call: staging pageable memory, or waiting for the copy.
    Copy,
    /// The host was launching: inside launch calls, or in the short host work between them.
    Launch,
    /// The host was inside a sync call.
    Synchronization,
    /// The host waited for the next batch.
    Input,
    /// The host did its own work: operators on the CPU, allocation, Python, or something that is not recorded.
    Host,
    /// The work was launched in time and waited for something that is not visible in the trace.
    Queued,
    /// A gap between kernels: too short to have another cause.
    KernelGap,
    /// The cause is not visible in the trace.
    Unexplained,
}

impl GapCause {
    /// Every cause.
    pub const ALL: &'static [Self] = &[
        Self::Copy,
        Self::Launch,
        Self::Synchronization,
        Self::Input,
        Self::Host,
        Self::Queued,
        Self::KernelGap,
        Self::Unexplained,
    ];

    /// What `busbound explain` calls it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Copy => "idle_copy",
            Self::Launch => "idle_launch",
            Self::Synchronization => "idle_sync",
            Self::Input => "idle_input",
            Self::Host => "idle_host",
            Self::Queued => "idle_queued",
            Self::KernelGap => "idle_kernel_gap",
            Self::Unexplained => "idle_unexplained",
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Copy => "host inside a copy call",
            Self::Launch => "waiting for a launch",
            Self::Synchronization => "host inside a sync call",
            Self::Input => "waiting for input",
            Self::Host => "host busy with CPU work",
            Self::Queued => "launched, but waiting for something not in this trace",
            Self::KernelGap => "gap between kernels",
            Self::Unexplained => "cause not visible in this trace",
        }
    }
}

/// A part of a gap with one cause.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    pub interval: Interval,
    pub cause: GapCause,
    /// What the host did, if it is the cause, and the event that it was in.
    pub host: Option<HostUse>,
    pub during: Option<EventId>,
    /// Its position among the pieces.
    place: usize,
}

/// A gap in a device's work.
#[derive(Debug, Clone, Copy)]
pub struct Gap<'a> {
    pub device: i32,
    pub interval: Interval,
    /// The work that ended the gap, and the call that launched what the device waited for.
    pub work: Option<Event<'a>>,
    pub call: Option<Event<'a>>,
}

/// A gap as it is kept: its pieces are all of it.
#[derive(Debug, Clone, Copy)]
struct GapIds {
    work: Option<EventId>,
    call: Option<EventId>,
}

/// A piece as it is kept.
#[derive(Debug, Clone, Copy)]
struct StoredPiece {
    start: Timestamp,
    /// `LONG` if it does not fit.
    length: u32,
    during: Option<EventId>,
    gap: u32,
    cause: GapCause,
    host: Option<HostUse>,
}

/// The length of a piece that lasts longer than 32 bits of nanoseconds can say, which is 4.3 s.
const LONG: u32 = u32::MAX;

// There are as many as events.
const _: () = assert!(size_of::<GapIds>() <= 8 && size_of::<StoredPiece>() <= 24);

/// The gaps of devices, and the pieces that they are split into, each in the order of devices and times.
#[derive(Debug)]
pub struct Gaps<'a> {
    trace: &'a Trace,
    /// The devices in order, each with the number of its first gap.
    devices: Vec<(u32, i32)>,
    gaps: Vec<GapIds>,
    pieces: Vec<StoredPiece>,
    /// The ends of long pieces, by their positions, in order.
    long: Vec<(usize, Timestamp)>,
}

impl<'a> Gaps<'a> {
    /// No gaps of this trace, with room for this many.
    pub fn with_room(trace: &'a Trace, gaps: usize) -> Self {
        Self {
            trace,
            devices: Vec::new(),
            gaps: Vec::with_capacity(gaps),
            pieces: Vec::with_capacity(gaps + gaps / 8),
            long: Vec::new(),
        }
    }

    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.pieces_in(0..self.pieces.len())
    }

    fn pieces_in(&self, places: Range<usize>) -> impl Iterator<Item = Piece> + Clone {
        places.map(|place| self.piece(place))
    }

    /// One of the [`pieces`](Self::pieces), by its position.
    pub fn piece(&self, place: usize) -> Piece {
        let StoredPiece { start, length, during, cause, host, .. } = self.pieces[place];
        let end = match length {
            LONG => self.long[self.long.partition_point(|(long, _)| *long < place)].1,
            length => start + Nanos::new(length.into()),
        };
        Piece { interval: Interval::new(start, end), cause, host, during, place }
    }

    /// Each gap that has pieces, with its pieces.
    pub fn iter(&self) -> impl Iterator<Item = (Gap<'a>, impl Iterator<Item = Piece> + Clone)> {
        let mut next = 0;
        self.pieces.chunk_by(|a, b| a.gap == b.gap).map(move |pieces| {
            let first = next;
            next += pieces.len();
            (self.gap_of(&self.piece(first)), self.pieces_in(first..next))
        })
    }

    /// The gap that a piece is part of.
    pub fn gap_of(&self, piece: &Piece) -> Gap<'a> {
        let gap = self.pieces[piece.place].gap;
        let GapIds { work, call } = self.gaps[gap as usize];
        let is_same = |other: &&StoredPiece| other.gap == gap;
        let (before, after) = self.pieces.split_at(piece.place);
        let first = piece.place - before.iter().rev().take_while(is_same).count();
        let last = piece.place + after.iter().skip(1).take_while(is_same).count();
        let interval = self.piece(first).interval.hull(self.piece(last).interval);
        let event = |id| self.trace.event(id);
        Gap { device: self.device_of(gap), interval, work: work.map(event), call: call.map(event) }
    }

    /// The pieces of one device.
    pub fn of_device(&self, device: i32) -> impl Iterator<Item = Piece> {
        // Pieces are in the order of their gaps, and gaps in the order of their devices: with thousands of devices, nobody looks at
        // all pieces for each.
        let first = self.devices.partition_point(|(_, known)| *known < device);
        let end = self.devices.partition_point(|(_, known)| *known <= device);
        let place = |device: usize| {
            let gap = self.devices.get(device).map_or(u32::MAX, |(first, _)| *first);
            self.pieces.partition_point(|piece| piece.gap < gap)
        };
        self.pieces_in(place(first)..place(end))
    }

    fn device_of(&self, gap: u32) -> i32 {
        let after = self.devices.partition_point(|(first, _)| *first <= gap);
        after.checked_sub(1).map_or(0, |place| self.devices[place].1)
    }

    /// Adds gaps that follow these.
    pub fn append(&mut self, later: Self) {
        let before = u32::try_from(self.gaps.len()).unwrap_or(u32::MAX);
        self.devices.extend(later.devices.iter().map(|(first, device)| (first + before, *device)));
        self.gaps.extend(later.gaps);
        let pieces = self.pieces.len();
        self.long.extend(later.long.iter().map(|(place, end)| (place + pieces, *end)));
        self.pieces
            .extend(later.pieces.iter().map(|piece| StoredPiece { gap: piece.gap + before, ..*piece }));
    }

    /// Whether the pieces of the last gap follow each other from its start to its end.
    fn last_gap_is(&self, interval: Interval) -> bool {
        let gap = self.gaps.len().saturating_sub(1);
        let own = self.pieces.iter().rev().take_while(|piece| piece.gap as usize == gap).count();
        let mut at = interval.start;
        self.pieces_in(self.pieces.len() - own..self.pieces.len()).all(|piece| {
            let follows = piece.interval.start == at;
            at = piece.interval.end;
            follows
        }) && at == interval.end
    }

    /// Frees the memory that no gap uses.
    pub fn shrink(&mut self) {
        self.gaps.shrink_to_fit();
        self.pieces.shrink_to_fit();
    }

    /// Adds a piece of the last gap, if it has any length.
    fn add(&mut self, interval: Interval, cause: GapCause, host: Option<HostUse>, during: Option<EventId>) {
        if interval.length() <= Nanos::ZERO {
            return;
        }
        let gap = u32::try_from(self.gaps.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let same = |last: &StoredPiece| (last.gap, last.host, last.during) == (gap, host, during);
        let mut interval = interval;
        if host.is_some() && self.pieces.last().is_some_and(same) {
            let last = self.pieces.len() - 1;
            interval = interval.hull(self.piece(last).interval);
            self.pieces.pop();
            self.long.pop_if(|(place, _)| *place == last);
        }
        let length = u32::try_from(interval.length().get()).unwrap_or(LONG);
        if length == LONG {
            self.long.push((self.pieces.len(), interval.end));
        }
        self.pieces.push(StoredPiece { start: interval.start, length, during, gap, cause, host });
    }
}

/// What the causes of gaps are found with.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'t, 'a> {
    pub graph: &'t Graph,
    pub host: &'t Host<'a>,
    pub launches: &'t GraphLaunches<'t>,
    /// The thread that ends the steps: time after the last work is its time.
    pub thread: Option<TrackId>,
}

/// The causes of one device's gaps.
pub fn causes<'a>(terms: Terms<'_, 'a>, device: i32, gaps: &IntervalSet) -> Gaps<'a> {
    let mut all = Gaps::with_room(terms.host.trace(), gaps.count());
    all.devices.push((0, device));
    let Terms { graph, host, launches, thread } = terms;
    let trace = host.trace();
    let order = graph.in_order(device);
    let work = |place: usize| order.get(place).map(|id| id.get());
    let migrates = |work: WorkId| trace.event(graph.work[work].event).migration().is_some();
    let is_touched_by_host = |work: WorkId| is_host_touch(&trace.event(graph.work[work].event));
    let call_of = |work: WorkId| graph.work[work].call().map(|call| trace.event(graph.calls[call].event));
    let (mut next, mut awaited) = (0, 0);
    // The last work that a call launched, and when the device became idle after such work.
    let (mut launched, mut idle_since) = (None, None);
    for interval in gaps.iter() {
        // The work that ended the gap; gaps are sorted, so the search continues from there.
        while let Some(one) = work(next).filter(|one| graph.work[*one].start < interval.end.as_nanos()) {
            if !migrates(one) {
                launched = Some(one);
                idle_since = idle_since.max(Some(graph.work[one].end));
            }
            next += 1;
        }
        // The driver migrates managed memory without a call: the device waits for the next launched work.
        awaited = awaited.max(next);
        while work(awaited).is_some_and(migrates) {
            awaited += 1;
        }
        let call = work(awaited).and_then(call_of);
        let ended_by = work(next).map(|one| graph.work[one].event);
        all.gaps.push(GapIds { work: ended_by, call: call.map(|call| call.id()) });
        match (launched.and_then(call_of), call) {
            (Some(before), Some(call)) if launches.ran_unseen(&before, &call) => {
                all.add(interval, GapCause::Unexplained, None, None);
            }
            // The host touches memory whose pages are on the device, and launches nothing more.
            (_, None)
                if interval.length().get() >= KERNEL_GAP && work(next).is_some_and(is_touched_by_host) =>
            {
                all.add(interval, GapCause::Host, Some(HostUse::Managed), ended_by);
            }
            (_, None) if next == order.len() && thread.is_some() => {
                thread.into_iter().for_each(|thread| add_host_pieces(&mut all, host, thread, interval));
            }
            _ => split(
                &mut all,
                host,
                (interval, call),
                idle_since.map_or(interval.start, Timestamp::from_nanos),
            ),
        }
        debug_assert!(all.last_gap_is(interval), "the pieces of a gap are all of it");
    }
    all
}

/// Whether the driver brought pages back because the host accessed them.
fn is_host_touch(event: &Event<'_>) -> bool {
    let is_back = event.transfer().is_some_and(|transfer| transfer.direction == Direction::DeviceToHost);
    let accessed = [MigrationCause::Fault, MigrationCause::Speculation, MigrationCause::AccessCounters];
    is_back && event.migration().is_some_and(|migration| accessed.contains(&migration.cause))
}

/// Splits the last gap at the launch of the work that ends it: before the launch by what the host did, after it the device
/// waited. Only migrations of managed memory ran since `idle_since`.
fn split(
    all: &mut Gaps<'_>,
    host: &Host<'_>,
    (gap, call): (Interval, Option<Event<'_>>),
    idle_since: Timestamp,
) {
    if gap.length().get() < KERNEL_GAP {
        return all.add(gap, GapCause::KernelGap, None, None);
    }
    let Some(call) = call.filter(|call| host.thread(call.track_id()).is_some()) else {
        return all.add(gap, GapCause::Unexplained, None, None);
    };
    let late = Interval::new(idle_since.min(gap.start), gap.end);
    if call.end() <= late.start {
        let is_short = late.length().get() < QUEUED_GAP;
        let cause = if is_short { GapCause::KernelGap } else { GapCause::Queued };
        return all.add(gap, cause, None, None);
    }
    let launch = call.start().max(gap.start).min(gap.end);
    add_host_pieces(all, host, call.track_id(), Interval::new(gap.start, launch));
    let is_copy = host.call_kind(&call) == Call::Copy;
    let own = if is_copy { GapCause::Copy } else { GapCause::Launch };
    // A launch takes this long to reach an idle device.
    let reached = (call.end() + Nanos::new(LAUNCH_LATENCY)).min(gap.end).max(launch);
    all.add(Interval::new(launch, reached), own, None, Some(call.id()));
    all.add(Interval::new(reached, gap.end), GapCause::Queued, None, None);
}

/// Idle time by what a thread did.
fn add_host_pieces(all: &mut Gaps<'_>, host: &Host<'_>, thread: TrackId, interval: Interval) {
    for used in host.uses_followed(thread, interval) {
        // Which launch it was says nothing about the gap.
        let event = used.event.filter(|_| used.what != HostUse::Launching);
        all.add(used.interval, cause_of(used.what), Some(used.what), event);
    }
}

/// The cause of idle time in which the host did this.
fn cause_of(what: HostUse) -> GapCause {
    match what {
        HostUse::Launching => GapCause::Launch,
        HostUse::CopyCall => GapCause::Copy,
        HostUse::Synchronizing => GapCause::Synchronization,
        HostUse::Input => GapCause::Input,
        HostUse::Waiting => GapCause::Unexplained,
        _ => GapCause::Host,
    }
}

/// The time around the moment the device became idle: a host wait that ends here was waiting for the device.
pub fn around_start(gap: Interval) -> Interval {
    Interval::new(gap.start + Nanos::new(-BEFORE_IDLE), gap.start + Nanos::new(AFTER_IDLE).min(gap.length()))
}

#[cfg(test)]
mod tests {
    use busbound_trace::TraceBuilder;

    use super::*;

    #[test]
    fn pieces_of_any_length_come_back_also_joined_and_after_appending() {
        const SECOND: i64 = 1_000_000_000;
        let trace = TraceBuilder::default().finish();
        let part = |start: i64| {
            let mut gaps = Gaps::with_room(&trace, 1);
            let add = |gaps: &mut Gaps<'_>, from: i64, until: i64, cause, host| {
                gaps.add((start + from * SECOND..start + until * SECOND).into(), cause, host, None);
            };
            gaps.devices.push((0, 0));
            gaps.gaps.push(GapIds { work: None, call: None });
            add(&mut gaps, 0, 3, GapCause::Host, Some(HostUse::Python));
            add(&mut gaps, 3, 9, GapCause::Host, Some(HostUse::Python));
            add(&mut gaps, 9, 10, GapCause::Queued, None);
            add(&mut gaps, 10, 20, GapCause::Queued, None);
            assert!(gaps.last_gap_is((start..start + 20 * SECOND).into()));
            gaps
        };
        let mut all = part(0);
        all.append(part(100 * SECOND));
        let found: Vec<(i64, i64)> = all
            .pieces()
            .map(|piece| (piece.interval.start.as_nanos() / SECOND, piece.interval.length().get() / SECOND))
            .collect();
        assert_eq!(found, [(0, 9), (9, 1), (10, 10), (100, 9), (109, 1), (110, 10)]);
        let gaps: Vec<i64> = all.iter().map(|(gap, _)| gap.interval.length().get() / SECOND).collect();
        assert_eq!(gaps, [20, 20]);
    }

    /// All pieces were looked at for each device: 20,000 devices took half a minute.
    #[test]
    fn the_pieces_of_a_device_are_those_of_its_gaps() {
        let trace = TraceBuilder::default().finish();
        let of_device = |device: i32, lengths: &[i64]| {
            let mut gaps = Gaps::with_room(&trace, lengths.len());
            gaps.devices.push((0, device));
            for length in lengths {
                gaps.gaps.push(GapIds { work: None, call: None });
                gaps.add((0..*length).into(), GapCause::Queued, None, None);
            }
            gaps
        };
        let mut all = of_device(0, &[1, 2]);
        // A device without gaps is one of them.
        for (device, lengths) in [(2, &[][..]), (3, &[4]), (7, &[5, 6, 7])] {
            all.append(of_device(device, lengths));
        }
        let found = |device| -> Vec<i64> {
            all.of_device(device).map(|piece| piece.interval.length().get()).collect()
        };
        assert_eq!(found(0), [1, 2]);
        assert_eq!((found(2), found(3), found(7)), (vec![], vec![4], vec![5, 6, 7]));
        assert_eq!((found(-1), found(1), found(9)), (vec![], vec![], vec![]));
    }
}
