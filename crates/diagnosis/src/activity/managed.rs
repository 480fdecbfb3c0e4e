//! Where does managed memory go, and which kernels run while its pages are missing?

use std::collections::BTreeMap;

use busbound_machine::median;
use busbound_trace::{
    Direction, EventKind, Interval, IntervalSet, Launch, Migration, MigrationCause, NameId, Nanos, Place,
    Trace,
};

use crate::activity::copies::Copy;
use crate::activity::timeline::DeviceTimeline;

/// The driver keeps track of managed memory in blocks of this many bytes.
const BLOCK: u64 = 2 << 20;

/// Of the time: what managed memory costs less is not worth a finding or a remark.
pub(crate) const WORTH_IT: f64 = 0.02;

/// What a run's managed memory did.
#[derive(Debug, Default)]
pub(crate) struct Managed<'a> {
    /// Copies that the driver made on its own, in order of time; by their place among the copies.
    migrations: Vec<usize>,
    /// Those of them that brought back what an earlier one had taken away.
    returns: Vec<usize>,
    /// Blocks that went to and fro, and how often each did on average; `None` without addresses.
    pub(crate) blocks: Option<Blocks>,
    /// Page faults of the GPUs, all repetitions counted.
    pub(crate) gpu_faults: u64,
    pub(crate) host_faults: u64,
    /// Where the host touches it most.
    pub(crate) host_place: Option<&'a str>,
    /// When kernels ran while pages they or others on the device needed were on their way, by device.
    pub(crate) waits: Vec<Wait>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) count: usize,
    pub(crate) returns_each: f64,
}

/// Kernels beside page faults, of one device.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) times: IntervalSet,
    pub(crate) kernels: usize,
    /// What these kernels took longer than the same ones did without faults, where there were such.
    pub(crate) excess: Option<Nanos>,
}

/// Whether somebody touched what was elsewhere, and the program had not asked for it before.
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
        let wait = |(device, times): (i32, Vec<Interval>)| {
            wait(trace, timelines, device, &IntervalSet::from_unsorted(times))
        };
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

    /// Copies that the driver made on its own, in order of time; `copies` are those it was made from.
    pub(crate) fn migrations<'f>(&self, copies: &'f [Copy<'a>]) -> impl Iterator<Item = &'f Copy<'a>> {
        self.migrations.iter().map(|&i| &copies[i])
    }

    /// Those of them that brought back what an earlier one had taken away.
    pub(crate) fn returns<'f>(&self, copies: &'f [Copy<'a>]) -> impl Iterator<Item = &'f Copy<'a>> {
        self.returns.iter().map(|&i| &copies[i])
    }

    /// What kernels took longer for want of pages; `None` where that cannot be told of all of them.
    pub(crate) fn excess_ms(&self) -> Option<f64> {
        self.waits.iter().map(|wait| Some(wait.excess?.as_millis())).sum()
    }

    /// Time at which kernels ran beside page faults.
    pub(crate) fn waiting_ms(&self) -> f64 {
        self.waits.iter().map(|wait| wait.times.length()).sum::<Nanos>().as_millis()
    }
}

/// Page faults as they were recorded.
#[derive(Default)]
struct Faults {
    gpu: u64,
    host: u64,
    /// When those of each device were served.
    times: BTreeMap<i32, Vec<Interval>>,
    /// Those of the host, by the name of their event.
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

/// What migrations took, added up.
pub(crate) fn migration_ms(copies: &[&Copy<'_>]) -> f64 {
    copies.iter().map(|copy| copy.event.duration()).sum::<Nanos>().as_millis()
}

/// A migration returns if its block has gone the other way before. Without addresses nothing is known of blocks.
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
        // A block moves in pieces, as its pages are touched; all of them return once it has changed sides.
        let is_asked_for = |migration: &Migration| migration.cause == MigrationCause::Prefetch;
        // What the program asked for goes to and fro because it wants it to.
        if *times > 0 && copy.event.migration().is_some_and(|migration| !is_asked_for(migration)) {
            returns.push(i);
        }
    }
    let turned: Vec<u64> = last.values().map(|(_, times)| *times).filter(|times| *times > 0).collect();
    let each = turned.iter().sum::<u64>() as f64 / turned.len().max(1) as f64;
    (returns, Some(Blocks { count: turned.len(), returns_each: each }))
}

/// The kernels of a device that ran while pages faulted, against the same kernels at other times.
fn wait(trace: &Trace, timelines: &[DeviceTimeline], device: i32, faulting: &IntervalSet) -> Option<Wait> {
    let timeline = timelines.iter().find(|timeline| timeline.device == device)?;
    let times = timeline.kernels.intersection(faulting);
    if times.is_empty() {
        return None;
    }
    type Shape = (NameId, [u32; 3], [u32; 3]);
    let mut clean: BTreeMap<Shape, Vec<Nanos>> = BTreeMap::new();
    let mut held: Vec<(Shape, Nanos, Nanos)> = Vec::new();
    for stream in trace.streams() {
        let Place::Stream { device: of, .. } = stream.place() else { continue };
        for kernel in stream.events().filter(|event| of == device && event.kind() == EventKind::Kernel) {
            let launch = kernel.launch().copied().unwrap_or_else(Launch::default);
            let shape = (kernel.name_id(), launch.grid, launch.block);
            let beside = faulting.length_within(kernel.interval());
            if beside.get() == 0 {
                clean.entry(shape).or_default().push(kernel.duration());
            } else {
                held.push((shape, kernel.duration(), beside));
            }
        }
    }
    let usual: BTreeMap<Shape, Nanos> = clean
        .into_iter()
        .filter_map(|(shape, durations)| {
            let middle = median(durations.iter().map(|duration| duration.get() as f64))?;
            Some((shape, Nanos::new(middle.round() as i64)))
        })
        .collect();
    let excess = |(shape, duration, beside): &(Shape, Nanos, Nanos)| {
        // No more than the time of the faults can be theirs.
        Some((*duration - *usual.get(shape)?).max(Nanos::ZERO).min(*beside))
    };
    // All or nothing: kernels without a counterpart would count as free.
    let excess = held.iter().map(excess).sum::<Option<Nanos>>();
    Some(Wait { times, kernels: held.len(), excess })
}
