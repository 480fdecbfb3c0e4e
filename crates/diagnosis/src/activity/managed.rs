//! How does managed memory migrate, and which kernels run while their pages are missing?

use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{
    Direction, EventKind, Interval, IntervalSet, Launch, Migration, MigrationCause, NameId, Nanos, Place,
    Trace,
};

use crate::activity::copies::Copy;
use crate::activity::timeline::DeviceTimeline;

/// The driver tracks managed memory in blocks of this many bytes.
const BLOCK: u64 = 2 << 20;

/// Share of the time: if managed memory costs less, it gets no finding and no note.
pub(crate) const WORTH_IT: f64 = 0.02;

/// What a run's managed memory did.
#[derive(Debug, Default)]
pub(crate) struct Managed<'a> {
    /// Copies that the driver made on its own, as indices into the copies, in order of time.
    migrations: Vec<usize>,
    /// The migrations that undo an earlier migration.
    returns: Vec<usize>,
    /// Blocks that thrashed, and how often each changed sides on average; `None` without addresses.
    pub(crate) blocks: Option<Blocks>,
    /// Page faults of the GPUs, including repeated ones.
    pub(crate) gpu_faults: u64,
    pub(crate) host_faults: u64,
    /// Where the host touches managed memory most.
    pub(crate) host_place: Option<&'a str>,
    /// When kernels ran while pages that the device needed were still in transit, by device.
    pub(crate) waits: Vec<Wait>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) count: usize,
    pub(crate) returns_each: f64,
}

/// Kernels of one device that overlap page faults.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) times: IntervalSet,
    pub(crate) kernels: usize,
    /// How much longer these kernels took than the same kernels without faults, if the trace has both.
    pub(crate) excess: Option<Nanos>,
}

/// Whether the migration was caused by an access, without a prefetch before it.
pub(crate) fn is_on_demand(copy: &Copy<'_>) -> bool {
    copy.event.migration().is_some_and(|migration| {
        !matches!(migration.cause, MigrationCause::Prefetch | MigrationCause::Eviction)
    })
}

impl<'a> Managed<'a> {
    pub(crate) fn of(trace: &'a Trace, copies: &[Copy<'a>], timelines: &[DeviceTimeline]) -> Self {
        let mut migrations: Vec<usize> = (0..copies.len()).filter(|&i| copies[i].is_migration()).collect();
        if migrations.is_empty() {
            return Self::default();
        }
        migrations.sort_by_key(|&i| (copies[i].event.start(), copies[i].event.id()));
        let (returns, blocks) = returns(copies, &migrations);
        let mut faults = Faults::of(trace);
        for copy in migrations.iter().map(|&i| &copies[i]) {
            if is_on_demand(copy) && copy.transfer.direction == Direction::HostToDevice {
                faults.times.entry(copy.device).or_default().push(copy.interval());
            }
        }
        let wait = |(device, times): (i32, Vec<Interval>)| wait(trace, timelines, device, &served(times));
        let most = faults.places.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
        Self {
            waits: faults.times.into_iter().filter_map(wait).collect(),
            migrations,
            returns,
            blocks,
            gpu_faults: faults.gpu,
            host_faults: faults.host,
            host_place: most.map(|name| trace.names().get(name)),
        }
    }

    /// Copies that the driver made on its own, in order of time; pass the same `copies` as to [`of`](Self::of).
    pub(crate) fn migrations<'f>(&self, copies: &'f [Copy<'a>]) -> impl Iterator<Item = &'f Copy<'a>> {
        self.migrations.iter().map(|&i| &copies[i])
    }

    /// The migrations that undo an earlier migration.
    pub(crate) fn returns<'f>(&self, copies: &'f [Copy<'a>]) -> impl Iterator<Item = &'f Copy<'a>> {
        self.returns.iter().map(|&i| &copies[i])
    }

    /// How much longer kernels took because pages were missing; `None` unless known for all of them.
    pub(crate) fn excess_ms(&self) -> Option<f64> {
        self.waits.iter().map(|wait| Some(wait.excess?.as_millis())).sum()
    }

    /// Time in which kernels ran while page faults were served.
    pub(crate) fn waiting_ms(&self) -> f64 {
        self.waits.iter().map(|wait| wait.times.length()).sum::<Nanos>().as_millis()
    }
}

/// Between two migrations that are closer, the driver serves the next fault: the kernel still waits. Of a public trace, whose kernel takes
/// 0.6 ms with prefetched pages and 109 ms without: 93 ms are migrations and such times.
const SERVING: Nanos = Nanos::new(300_000);

/// The times in which faults are served, with the time between one and the next.
fn served(times: Vec<Interval>) -> IntervalSet {
    let longer = |time: Interval| Interval::new(time.start, time.end + SERVING);
    let joined = IntervalSet::from_unsorted(times.into_iter().map(longer));
    IntervalSet::from_unsorted(
        joined.iter().map(|time| Interval::new(time.start, time.end + (Nanos::ZERO - SERVING))),
    )
}

/// Page faults as recorded.
#[derive(Default)]
struct Faults {
    gpu: u64,
    host: u64,
    /// When the faults of each device were served.
    times: BTreeMap<i32, Vec<Interval>>,
    /// Faults of the host, by the name of their event.
    places: BTreeMap<NameId, u64>,
}

impl Faults {
    fn of(trace: &Trace) -> Self {
        let mut faults = Self::default();
        for event in trace.events().filter(|event| event.kind() == EventKind::PageFault) {
            let count = event.faults().map_or(1, |faults| faults.count);
            match event.place() {
                Place::Stream { device, .. } => {
                    faults.gpu += count;
                    faults.times.entry(device).or_default().push(event.interval());
                }
                Place::Thread { .. } => {
                    faults.host += count;
                    *faults.places.entry(event.name_id()).or_default() += count;
                }
            }
        }
        faults
    }
}

/// Total duration of migrations.
pub(crate) fn migration_ms(copies: &[&Copy<'_>]) -> f64 {
    copies.iter().map(|copy| copy.event.duration()).sum::<Nanos>().as_millis()
}

/// A migration is a return if its block has moved the other way before. Without addresses, blocks are unknown.
fn returns(copies: &[Copy<'_>], migrations: &[usize]) -> (Vec<usize>, Option<Blocks>) {
    let address = |copy: &Copy<'_>| copy.event.migration().and_then(|migration| migration.address);
    if migrations.iter().all(|&i| address(&copies[i]).is_none()) {
        return (Vec::new(), None);
    }
    let mut last: BTreeMap<(i32, u64), (Direction, u64)> = BTreeMap::new();
    let mut returns = Vec::new();
    for &i in migrations {
        let copy = &copies[i];
        let Some(address) = address(copy) else { continue };
        let direction = copy.transfer.direction;
        let (before, times) = last.entry((copy.device, address / BLOCK)).or_insert((direction, 0));
        if *before != direction {
            *before = direction;
            *times += 1;
        }
        // A block moves a few pages at a time, as they are touched; once it has changed sides, every move is a return.
        let is_asked_for = |migration: &Migration| migration.cause == MigrationCause::Prefetch;
        // Prefetches move blocks back and forth on purpose.
        if *times > 0 && copy.event.migration().is_some_and(|migration| !is_asked_for(migration)) {
            returns.push(i);
        }
    }
    let turned: Vec<u64> = last.values().map(|(_, times)| *times).filter(|times| *times > 0).collect();
    let each = turned.iter().sum::<u64>() as f64 / turned.len().max(1) as f64;
    (returns, Some(Blocks { count: turned.len(), returns_each: each }))
}

/// The kernels of a device that ran during page faults, compared with the same kernels at other times.
fn wait(trace: &Trace, timelines: &[DeviceTimeline], device: i32, faulting: &IntervalSet) -> Option<Wait> {
    let timeline = timelines.iter().find(|timeline| timeline.device == device)?;
    let times = timeline.kernels.intersection(faulting);
    if times.is_empty() {
        return None;
    }
    type Shape = (NameId, [u32; 3], [u32; 3]);
    let mut clean: BTreeMap<Shape, Vec<Nanos>> = BTreeMap::new();
    let mut faulted: Vec<(Shape, Nanos, Nanos)> = Vec::new();
    for stream in trace.streams() {
        let Place::Stream { device: of, .. } = stream.place() else { continue };
        for kernel in stream.events().filter(|event| of == device && event.kind() == EventKind::Kernel) {
            let launch = kernel.launch().copied().unwrap_or_else(Launch::default);
            let shape = (kernel.name_id(), launch.grid, launch.block);
            let overlap = faulting.length_within(kernel.interval());
            if overlap.get() == 0 {
                clean.entry(shape).or_default().push(kernel.duration());
            } else {
                faulted.push((shape, kernel.duration(), overlap));
            }
        }
    }
    let usual: BTreeMap<Shape, Nanos> = clean
        .into_iter()
        .filter_map(|(shape, durations)| {
            let typical = median(durations.iter().map(|duration| duration.get() as f64))?;
            Some((shape, Nanos::new(typical.round() as i64)))
        })
        .collect();
    let excess = |(shape, duration, overlap): &(Shape, Nanos, Nanos)| {
        // Faults cannot cost more than the time they overlap the kernel.
        Some((*duration - *usual.get(shape)?).max(Nanos::ZERO).min(*overlap))
    };
    // All or nothing: otherwise kernels without a counterpart would count as free.
    let excess = faulted.iter().map(excess).sum::<Option<Nanos>>();
    Some(Wait { times, kernels: faulted.len(), excess })
}
