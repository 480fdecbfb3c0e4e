//! Which kernels read or write host memory? No record says so, but their bytes cross the link, and the recorder reads the link's
//! counters. Bytes that no copy explains are attributed to the kernels that ran between two readings.
//!
//! Kernels of the same name, grid and about the same time are one group. How many bytes each launch of a group moves is fitted to all
//! readings (least squares, within what a link can carry in the time of the kernel).

use std::collections::BTreeMap;

use busbound_trace::{Bytes, Direction, Event, EventId, EventKind, LinkTraffic, NameId, Place, Trace};

use crate::Time;
use crate::matrix::is_matrix_kernel;
use crate::rereads::Once;
use crate::thresholds::{
    COPY_PACKET, FIT_EXPLAINED, FIT_PLAUSIBLE, FIT_WORTH_ADDING, FIT_WRONG, KERNEL_PACKET, LEAST_CARRIED,
    LEAST_KERNEL_TIME, LEAST_TRAFFIC, LEAST_UNEXPLAINED, LINK_BOUND, LONGEST_READING, NEEDED, OTHER_KERNEL,
    REQUESTS,
};

/// Passes of the fit: it converges within a few.
const PASSES: usize = 100;

/// Kernels that move host memory, and how much of the counted traffic is explained.
#[derive(Debug, Clone, Default)]
pub struct HostMemory {
    pub kernels: Vec<HostMemoryKernel>,
    pub traffic: Vec<CountedTraffic>,
    /// Per launch of these kernels: its group.
    launches: BTreeMap<EventId, usize>,
}

/// A group of kernels that read or write host memory.
#[derive(Debug, Clone, PartialEq)]
pub struct HostMemoryKernel {
    pub device: i32,
    pub name: NameId,
    pub direction: Direction,
    /// Bytes that each launch moves, without the heads of packets.
    pub bytes: Bytes,
    /// What a copy would move instead.
    pub once: Once,
    pub launches: usize,
    pub total: Time,
    /// Whether it waits for the link: it moves host memory about as fast as the link can.
    pub is_link_bound: bool,
    /// Whether no other kernels explain the traffic as well.
    pub is_certain: bool,
}

/// Host memory that one kernel moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostBytes {
    pub direction: Direction,
    pub bytes: u64,
    /// What a copy would move instead.
    pub once: Once,
    /// Whether it waits for the link.
    pub is_link_bound: bool,
}

/// What crossed the link of one device in one direction while kernels ran, without the heads of packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedTraffic {
    pub device: i32,
    pub direction: Direction,
    pub counted: f64,
    pub by_copies: f64,
    pub by_kernels: f64,
}

impl HostMemory {
    /// Empty without readings, and if copies explain them. Kernels that are not in the trace may have made the traffic, so records
    /// must not be missing; of a part of a trace, all kernels count.
    pub fn of(trace: &Trace) -> Self {
        let mut found = Self::default();
        if trace.link_traffic().is_empty() || !trace.stats().is_complete() {
            return found;
        }
        let trace = &trace.whole();
        let mut devices: Vec<i32> = trace.link_traffic().iter().map(|reading| reading.gpu).collect();
        devices.sort_unstable();
        devices.dedup();
        // Counters count what other processes move, too.
        let shared = &trace.origin().shared_gpus;
        for device in devices.into_iter().filter(|device| !shared.contains(device)) {
            let work = DeviceWork::of(trace, device);
            found.attribute(&work, trace);
        }
        found
    }

    /// What a kernel moves.
    pub(crate) fn bytes(&self, event: EventId) -> Option<HostBytes> {
        let kernel = &self.kernels[*self.launches.get(&event)?];
        let HostMemoryKernel { direction, bytes, once, is_link_bound, .. } = *kernel;
        Some(HostBytes { direction, bytes: bytes.get(), once, is_link_bound })
    }

    fn attribute(&mut self, work: &DeviceWork, trace: &Trace) {
        let windows_of = |direction| windows(trace.link_traffic(), work, direction);
        let to_device = windows_of(Direction::HostToDevice);
        let fit = Fit::of(work, &to_device, |window| window.counted - COPY_PACKET * window.h2d);
        self.add(work, &to_device, &fit, Direction::HostToDevice);
        self.count_once(trace);
        // What is read is requested in the other direction.
        let requested = |window: &Window| {
            let kernels = window.launches.iter().map(|(group, launches)| launches * fit.bytes_of(*group));
            REQUESTS * (kernels.sum::<f64>() + COPY_PACKET * window.h2d)
        };
        let to_host = windows_of(Direction::DeviceToHost);
        let unexplained = |window: &Window| window.counted - COPY_PACKET * window.d2h - requested(window);
        self.add(work, &to_host, &Fit::of(work, &to_host, unexplained), Direction::DeviceToHost);
    }

    /// Matrix products may read the same data several times.
    fn count_once(&mut self, trace: &Trace) {
        let sizes = trace.origin().pinned_sizes.as_ref();
        for kernel in
            self.kernels.iter_mut().filter(|kernel| is_matrix_kernel(trace.names().get(kernel.name)))
        {
            kernel.once = Once::of(kernel.bytes.get(), sizes);
        }
    }

    /// Adds the kernels of one direction.
    fn add(&mut self, work: &DeviceWork, windows: &[Window], fit: &Fit, direction: Direction) {
        let copied = |window: &Window| match direction {
            Direction::HostToDevice => window.h2d,
            _ => window.d2h,
        };
        let by_copies: f64 = windows.iter().map(copied).sum();
        let unexplained = fit.unexplained.max(0.0) / KERNEL_PACKET;
        let is_much = fit.unexplained >= LEAST_TRAFFIC * fit.busy.max(1.0)
            && unexplained >= LEAST_UNEXPLAINED * (unexplained + by_copies)
            && fit.is_good;
        let by_kernels = if is_much { fit.explained() / KERNEL_PACKET } else { 0.0 };
        let counted = unexplained + by_copies;
        self.traffic.push(CountedTraffic { device: work.device, direction, counted, by_copies, by_kernels });
        for (group, bytes) in fit.groups().into_iter().filter(|_| is_much) {
            let of = &work.groups[group];
            let rate = bytes * of.events.len() as f64 / of.total as f64;
            self.launches.extend(of.events.iter().map(|event| (*event, self.kernels.len())));
            let bytes = (bytes / KERNEL_PACKET) as u64;
            self.kernels.push(HostMemoryKernel {
                device: work.device,
                name: of.name,
                direction,
                bytes: Bytes::new(bytes),
                once: Once::all(bytes),
                launches: of.events.len(),
                total: of.total,
                is_link_bound: rate >= LINK_BOUND * work.fastest,
                is_certain: fit.needed.contains(&group),
            });
        }
    }
}

/// The kernels and copies of one device.
struct DeviceWork {
    device: i32,
    /// The most that the link carries, in bytes per nanosecond.
    fastest: f64,
    groups: Vec<Group>,
    /// Of every kernel: start, end, group.
    kernels: Vec<(Time, Time, usize)>,
    /// Of every copy over the link: start, end, bytes, whether to the device.
    copies: Vec<(Time, Time, f64, bool)>,
}

/// Time, start and event.
type Kernel = (Time, Time, EventId);

/// Kernels of one name, grid and about the same time.
struct Group {
    name: NameId,
    events: Vec<EventId>,
    total: Time,
}

impl DeviceWork {
    fn of(trace: &Trace, device: i32) -> Self {
        let fastest = link_rate(trace, device);
        let mut work = Self { device, fastest, groups: Vec::new(), kernels: Vec::new(), copies: Vec::new() };
        let mut alike: BTreeMap<(NameId, [u32; 3]), Vec<Kernel>> = BTreeMap::new();
        for track in trace.streams() {
            if !matches!(track.place(), Place::Stream { device: of, .. } if of == device) {
                continue;
            }
            for event in track.events() {
                match event.kind() {
                    EventKind::Kernel => {
                        let grid = event.launch().map_or([0; 3], |launch| launch.grid);
                        let (start, end) = (event.start().as_nanos(), event.end().as_nanos());
                        alike.entry((event.name_id(), grid)).or_default().push((
                            end - start,
                            start,
                            event.id(),
                        ));
                    }
                    EventKind::Copy => work.add_copy(&event),
                    _ => {}
                }
            }
        }
        for ((name, _), kernels) in alike {
            work.add_kernels(name, kernels);
        }
        work.kernels.sort_unstable();
        work.copies.sort_unstable_by_key(|copy| copy.0);
        work
    }

    /// Kernels of one name and grid. One that reads host memory takes many times as long as the same one that does not.
    fn add_kernels(&mut self, name: NameId, mut kernels: Vec<Kernel>) {
        kernels.sort_unstable();
        for group in kernels.chunk_by(|a, b| b.0 < OTHER_KERNEL * a.0.max(1)) {
            for &(time, start, _) in group {
                self.kernels.push((start, start + time, self.groups.len()));
            }
            let events = group.iter().map(|kernel| kernel.2).collect();
            self.groups.push(Group { name, events, total: group.iter().map(|kernel| kernel.0).sum() });
        }
    }

    fn add_copy(&mut self, event: &Event<'_>) {
        let Some(transfer) = event.transfer() else { return };
        let to_device = match transfer.direction {
            Direction::HostToDevice => true,
            Direction::DeviceToHost => false,
            _ => return,
        };
        let bytes = transfer.bytes.map_or(0.0, |bytes| bytes.get() as f64);
        self.copies.push((event.start().as_nanos(), event.end().as_nanos(), bytes, to_device));
    }
}

/// Bytes per nanosecond of the link with its packets' heads; of the fastest one if it is not recorded.
fn link_rate(trace: &Trace, device: i32) -> f64 {
    const PER_LANE: [f64; 6] = [0.25, 0.5, 0.985, 1.969, 3.938, 7.563];
    let gpu = trace.origin().gpus.iter().find(|gpu| gpu.id == device);
    let (generation, lanes) =
        gpu.and_then(|gpu| gpu.link).map_or((6, 16), |link| (link.most_generation, link.most_lanes));
    PER_LANE[(generation.max(1) as usize - 1).min(5)] * f64::from(lanes.max(1))
}

/// What happened between two readings.
#[derive(Debug, Clone, Default)]
struct Window {
    start: Time,
    end: Time,
    /// As counted, in the direction of the readings.
    counted: f64,
    /// Bytes of copies.
    h2d: f64,
    d2h: f64,
    /// Per group: launches, in parts where a kernel crosses a reading.
    launches: Vec<(usize, f64)>,
    /// Time with kernels.
    busy: Time,
}

fn windows(readings: &[LinkTraffic], work: &DeviceWork, direction: Direction) -> Vec<Window> {
    let is_wanted = |reading: &&LinkTraffic| reading.gpu == work.device && reading.direction == direction;
    let readings: Vec<&LinkTraffic> = readings.iter().filter(is_wanted).collect();
    let mut windows = Vec::new();
    let (mut first_kernel, mut first_copy) = (0, 0);
    let longest_kernel = work.kernels.iter().map(|(start, end, _)| end - start).max().unwrap_or(0);
    let longest_copy = work.copies.iter().map(|copy| copy.1 - copy.0).max().unwrap_or(0);
    for pair in readings.windows(2) {
        let (start, end) = (pair[0].at.as_nanos(), pair[1].at.as_nanos());
        let mut window = Window { start, end, counted: pair[1].bytes.get() as f64, ..Window::default() };
        if end <= start || end - start > LONGEST_READING {
            continue;
        }
        while work.kernels.get(first_kernel).is_some_and(|kernel| kernel.0 + longest_kernel < start) {
            first_kernel += 1;
        }
        while work.copies.get(first_copy).is_some_and(|copy| copy.0 + longest_copy < start) {
            first_copy += 1;
        }
        window.add_kernels(&work.kernels[first_kernel..]);
        window.add_copies(&work.copies[first_copy..]);
        windows.push(window);
    }
    windows
}

/// The part of an event within a window.
fn part(window: &Window, start: Time, end: Time) -> f64 {
    let shared = (end.min(window.end) - start.max(window.start)).max(0);
    shared as f64 / (end - start).max(1) as f64
}

impl Window {
    fn is_idle(&self) -> bool {
        self.launches.is_empty() && self.h2d + self.d2h == 0.0
    }

    fn add_kernels(&mut self, kernels: &[(Time, Time, usize)]) {
        let mut by_group: BTreeMap<usize, f64> = BTreeMap::new();
        for &(start, end, group) in kernels.iter().take_while(|kernel| kernel.0 < self.end) {
            let share = part(self, start, end);
            if share > 0.0 {
                *by_group.entry(group).or_default() += share;
                self.busy += ((end - start) as f64 * share) as Time;
            }
        }
        self.launches = by_group.into_iter().collect();
    }

    fn add_copies(&mut self, copies: &[(Time, Time, f64, bool)]) {
        for &(start, end, bytes, to_device) in copies.iter().take_while(|copy| copy.0 < self.end) {
            let bytes = bytes * part(self, start, end);
            *if to_device { &mut self.h2d } else { &mut self.d2h } += bytes;
        }
    }
}

/// Bytes per launch of each group that explain the traffic best.
struct Fit {
    /// Counted and not explained by copies.
    unexplained: f64,
    /// Time in which kernels ran.
    busy: f64,
    columns: Vec<Column>,
    /// Whether the kernels of this process explain the traffic, and no other process uses the link.
    is_good: bool,
    /// Groups without which the error is much larger.
    needed: Vec<usize>,
}

/// One group in the fit.
struct Column {
    group: usize,
    /// Window and launches in it.
    entries: Vec<(usize, f64)>,
    /// The sum of their squares.
    square: f64,
    /// The most that the link carries in the time of a launch.
    most: f64,
    bytes: f64,
    launches: f64,
}

impl Fit {
    fn of(work: &DeviceWork, windows: &[Window], unexplained: impl Fn(&Window) -> f64) -> Self {
        let target: Vec<f64> = windows.iter().map(&unexplained).collect();
        let busy: Time = windows.iter().map(|window| window.busy).sum();
        let mut fit = Self {
            is_good: of_others(windows) < LEAST_TRAFFIC,
            unexplained: target.iter().sum(),
            busy: busy as f64,
            columns: columns(work, windows),
            needed: Vec::new(),
        };
        if fit.unexplained < LEAST_TRAFFIC * fit.busy.max(1.0) {
            return fit;
        }
        let error = fit.choose(&target);
        fit.is_good &= error <= FIT_WRONG * FIT_WRONG * squared(&target);
        fit
    }

    /// Adds one group after the other, as long as each explains much more: traffic of few kernels is likelier than of many.
    /// Returns the squared error.
    fn choose(&mut self, target: &[f64]) -> f64 {
        let all = squared(target);
        let mut chosen: Vec<usize> = Vec::new();
        let mut error = all;
        loop {
            let others = (0..self.columns.len()).filter(|index| !chosen.contains(index));
            let with = |index: usize| {
                let wanted: Vec<usize> = chosen.iter().copied().chain([index]).collect();
                (solved(&self.columns, target, &wanted), index)
            };
            let tried: Vec<(Solution, usize)> = others.map(with).collect();
            let least = tried.iter().map(|(solution, _)| solution.error).fold(f64::INFINITY, f64::min);
            if least > FIT_WORTH_ADDING * error {
                break;
            }
            // Several may explain the traffic alike. The likeliest one uses the link best: a kernel that reads host memory waits for it.
            let alike = |error: f64| error <= (NEEDED * least).max(FIT_PLAUSIBLE * FIT_PLAUSIBLE * all);
            let rate =
                |(solution, index): &(Solution, usize)| solution.bytes[*index] / self.columns[*index].most;
            let mut plausible: Vec<(Solution, usize)> =
                tried.into_iter().filter(|(solution, _)| alike(solution.error)).collect();
            plausible.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
            let is_certain = plausible.len() == 1;
            let Some((best, index)) = plausible.into_iter().next() else { break };
            if is_certain {
                self.needed.push(self.columns[index].group);
            }
            chosen.push(index);
            error = best.error;
            for (column, bytes) in self.columns.iter_mut().zip(&best.bytes) {
                column.bytes = *bytes;
            }
            if best.residual.iter().sum::<f64>() < FIT_EXPLAINED * self.unexplained {
                break;
            }
        }
        error
    }

    fn explained(&self) -> f64 {
        self.columns.iter().map(|column| column.bytes * column.launches).sum::<f64>().min(self.unexplained)
    }

    /// Groups that move bytes, most first; not those with hardly any of them.
    fn groups(&self) -> Vec<(usize, f64)> {
        let least = LEAST_CARRIED * self.explained();
        let mut carrying: Vec<&Column> =
            self.columns.iter().filter(|column| column.bytes * column.launches > least).collect();
        carrying.sort_by(|a, b| (b.bytes * b.launches).total_cmp(&(a.bytes * a.launches)));
        carrying.iter().map(|column| (column.group, column.bytes)).collect()
    }

    /// Counted bytes of each launch of a group.
    fn bytes_of(&self, group: usize) -> f64 {
        self.columns.iter().find(|column| column.group == group).map_or(0.0, |column| column.bytes)
    }
}

/// Traffic while this process did nothing on the device, in bytes per nanosecond: other processes use the link too.
fn of_others(windows: &[Window]) -> f64 {
    let first = windows.iter().position(|window| !window.is_idle()).unwrap_or(0);
    let last = windows.iter().rposition(|window| !window.is_idle()).unwrap_or(0);
    let idle = windows[first..windows.len().min(last + 1)].iter().filter(|window| window.is_idle());
    let (bytes, time) = idle
        .fold((0.0, 0), |(bytes, time), window| (bytes + window.counted, time + window.end - window.start));
    bytes / time.max(1) as f64
}

fn columns(work: &DeviceWork, windows: &[Window]) -> Vec<Column> {
    let mut entries: Vec<Vec<(usize, f64)>> = vec![Vec::new(); work.groups.len()];
    for (index, window) in windows.iter().enumerate() {
        for &(group, launches) in &window.launches {
            entries[group].push((index, launches));
        }
    }
    let all: Time = work.groups.iter().map(|group| group.total).sum();
    let is_long = |group: &Group| group.total as f64 >= LEAST_KERNEL_TIME * all as f64;
    let column = |(group, entries): (usize, Vec<(usize, f64)>)| {
        let of = &work.groups[group];
        let most = work.fastest * of.total as f64 / of.events.len() as f64;
        let launches = entries.iter().map(|(_, launches)| launches).sum();
        let square = entries.iter().map(|(_, launches)| launches * launches).sum();
        (is_long(of) && launches > 0.0).then_some(Column {
            group,
            entries,
            square,
            most,
            bytes: 0.0,
            launches,
        })
    };
    entries.into_iter().enumerate().filter_map(column).collect()
}

struct Solution {
    /// Per column.
    bytes: Vec<f64>,
    residual: Vec<f64>,
    /// Squared residual.
    error: f64,
}

/// Least squares within bounds with these columns alone, one after another.
fn solved(columns: &[Column], target: &[f64], wanted: &[usize]) -> Solution {
    let mut found = Solution { bytes: vec![0.0; columns.len()], residual: target.to_vec(), error: 0.0 };
    for _ in 0..PASSES {
        let mut moved = 0.0_f64;
        for &index in wanted {
            let column = &columns[index];
            let along: f64 =
                column.entries.iter().map(|(window, launches)| launches * found.residual[*window]).sum();
            let bytes = (found.bytes[index] + along / column.square).clamp(0.0, column.most);
            let change = bytes - found.bytes[index];
            found.bytes[index] = bytes;
            for (window, launches) in &column.entries {
                found.residual[*window] -= launches * change;
            }
            moved = moved.max(change.abs() / column.most.max(1.0));
        }
        if moved < 1e-4 {
            break;
        }
    }
    found.error = squared(&found.residual);
    found
}

fn squared(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}
