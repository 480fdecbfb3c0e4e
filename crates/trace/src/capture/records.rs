//! What do the records of a recording say? Each becomes an event, or a fact that other records need.

use std::collections::BTreeMap;

use busbound_capture::format::{
    CLOCK_LIMIT_OF_GPU, CONFIDENTIAL, CPUS, FileCounts, HOST_MEMORY, Launch as RecordedLaunch, PINNED,
    PINNED_INCOMPLETE, POWER_LIMIT_OF_GPU, Record, SHARED_GPU, Stream, UNKNOWN_STREAM, VARIABLE, VERSION,
};

use super::accesses::access;
use super::numa::{host_node, numa};
use super::waits::Waits;
use crate::interval::Interval;
use crate::model::access::Access;
use crate::model::builder::TraceBuilder;
use crate::model::environment::Environment;
use crate::model::files::FileReads;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::link::LinkTraffic;
use crate::model::names::NameId;
use crate::model::numa::HostNode;
use crate::model::origin::{Distributed, Gpu, GpuLimits, RecordedLink};
use crate::model::size::Bytes;
use crate::model::stats::LossKind;
use crate::model::time::{Nanos, Timestamp};
use crate::model::track::TrackId;
use crate::model::transfer::{Direction, MemoryKind, Transfer};
use crate::symbols;

/// A recording while it is read.
pub(super) struct Recording<'a> {
    pub(super) trace: &'a mut TraceBuilder,
    /// By name id in the file: the name to display, and the name of the call without its version suffix.
    names: BTreeMap<u32, (NameId, NameId)>,
    process: i64,
    open_ranges: BTreeMap<u32, (u64, u32, u32)>,
    waits: Waits,
    facts: BTreeMap<Vec<u8>, String>,
    links: BTreeMap<u32, RecordedLink>,
    host_nodes: Vec<(u64, HostNode)>,
    accesses: Vec<(u64, Access)>,
    other_waits: Vec<i64>,
    /// When kernels were not recorded.
    kernels_off: Vec<Interval>,
    pub(super) has_ended: bool,
}

impl<'a> Recording<'a> {
    pub(super) fn new(trace: &'a mut TraceBuilder) -> Self {
        Self {
            trace,
            names: BTreeMap::new(),
            process: 0,
            open_ranges: BTreeMap::new(),
            waits: Waits::default(),
            facts: BTreeMap::new(),
            links: BTreeMap::new(),
            host_nodes: Vec::new(),
            accesses: Vec::new(),
            other_waits: Vec::new(),
            kernels_off: Vec::new(),
            has_ended: false,
        }
    }

    pub(super) fn add(&mut self, record: &Record<'_>) {
        self.trace.stats_mut().objects += 1;
        match *record {
            Record::Name { id, text } => self.add_name(id, text),
            Record::Fact { key, value } => self.add_fact(key, value),
            Record::Clock { at, unix_ns } => {
                self.trace.origin().base_time_ns = Some(unix_ns.wrapping_sub(at) as i64);
            }
            Record::Gpu { .. }
            | Record::Link { .. }
            | Record::LinkReading { .. }
            | Record::LinkBytes { .. } => {
                self.add_about_gpu(record);
            }
            Record::Thread { id, name } => {
                if let Some(&(name, _)) = self.names.get(&name) {
                    self.trace.name_thread(self.process, id, name);
                }
            }
            Record::Kernel { .. } | Record::Copy { .. } | Record::PeerCopy { .. } | Record::Memset { .. } => {
                self.add_work(record)
            }
            Record::Sync { start, end, correlation, stream, kind, event } => {
                self.waits.add(interval(start, end), correlation, stream, kind, event);
            }
            Record::EventRecord { correlation, stream, event } => {
                self.waits.add_event_record(event, correlation, stream);
            }
            Record::Call { .. }
            | Record::RangeStart { .. }
            | Record::RangeEnd { .. }
            | Record::Mark { .. }
            | Record::Overhead { .. } => self.add_on_host(record),
            Record::Dropped { count, .. } => {
                self.trace.stats_mut().lose_several(LossKind::DroppedRecord, count);
            }
            Record::FileReads { at, counts } => self.trace.file_reads(file_reads(at, counts)),
            Record::KernelsOff { start, end } => self.kernels_off.push(interval(start, end)),
            Record::HostNode { correlation, node } => {
                self.host_nodes.push((correlation.into(), host_node(node)));
            }
            Record::Access { correlation, stream, to, from } => {
                self.accesses.push((correlation.into(), access(stream, to, from)));
            }
            Record::OtherWait { stream: UNKNOWN_STREAM, .. } => self.other_waits.push(-1),
            Record::OtherWait { stream, .. } => self.other_waits.push(stream.into()),
            Record::Note { text } => {
                let text = String::from_utf8_lossy(text).into_owned();
                self.trace.origin().profiler_messages.push(text);
            }
            Record::End => self.has_ended = true,
        }
    }

    fn add_name(&mut self, id: u32, text: &[u8]) {
        let shown = symbols::shown(text);
        let names = (self.trace.name(&shown), self.trace.name(symbols::call(&shown)));
        self.names.insert(id, names);
    }

    fn add_fact(&mut self, key: &[u8], value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        if key == SHARED_GPU {
            self.trace.origin().shared_gpus.extend(value.parse::<i32>().ok());
        }
        if key == b"process" {
            self.process = value.parse().unwrap_or(0);
        }
        self.facts.insert(key.to_vec(), value);
    }

    fn add_about_gpu(&mut self, record: &Record<'_>) {
        match *record {
            Record::Gpu { id, name, memory, multiprocessors, capability } => {
                let name = self.name(name);
                let gpu = Gpu {
                    id: device(id),
                    name: self.trace.names().get(name).to_owned(),
                    memory: Some(Bytes::new(memory)),
                    multiprocessors: Some(multiprocessors),
                    compute_capability: Some(capability),
                    link: self.links.get(&id).copied(),
                    // Known at the end.
                    limits: GpuLimits::default(),
                };
                self.trace.gpu(gpu);
            }
            Record::Link { gpu, generation, lanes, max_generation, max_lanes } => {
                let most = (max_generation, max_lanes);
                let seen = RecordedLink { generation, lanes, most_generation: most.0, most_lanes: most.1 };
                self.add_link(gpu, seen);
            }
            Record::LinkReading { at, gpu, to_host, bytes } => self.add_reading(at, gpu, to_host, bytes),
            Record::LinkBytes { at, gpu, to_device, to_host } => {
                self.add_reading(at, gpu, false, to_device);
                self.add_reading(at, gpu, true, to_host);
            }
            _ => {}
        }
    }

    fn add_reading(&mut self, at: u64, gpu: u32, to_host: bool, bytes: u64) {
        let direction = if to_host { Direction::DeviceToHost } else { Direction::HostToDevice };
        self.trace.link_traffic(LinkTraffic {
            at: timestamp(at),
            gpu: device(gpu),
            direction,
            bytes: Bytes::new(bytes),
        });
    }

    /// A link saves power while it is unused, so the fastest state seen counts.
    fn add_link(&mut self, gpu: u32, seen: RecordedLink) {
        let best = self.links.entry(gpu).or_insert(seen);
        if (seen.generation, seen.lanes) > (best.generation, best.lanes) {
            *best = seen;
        }
        let best = *best;
        let known = &mut self.trace.origin().gpus;
        if let Some(known) = known.iter_mut().find(|known| known.id == device(gpu)) {
            known.link = Some(best);
        }
    }

    fn add_work(&mut self, record: &Record<'_>) {
        match *record {
            Record::Kernel { start, end, on, correlation, name, launch } => {
                let (stream, name) = (self.stream(on), self.name(name));
                let kernel = self.trace.kernel(stream, name, interval(start, end));
                kernel.correlation(u64::from(correlation)).launch(geometry(launch));
            }
            Record::Copy { start, end, on, correlation, bytes, kind, from, to, .. } => {
                let (direction, bytes) = (direction(kind), Some(Bytes::new(bytes)));
                let transfer = Transfer { bytes, direction, src: memory(from), dst: memory(to) };
                let stream = self.stream(on);
                let copy = self.trace.copy(stream, transfer, interval(start, end));
                copy.correlation(u64::from(correlation));
            }
            Record::PeerCopy { start, end, on, correlation, bytes, .. } => {
                let stream = self.stream(on);
                let copy = self.trace.copy(stream, Transfer::peer_to_peer(bytes), interval(start, end));
                copy.correlation(u64::from(correlation));
            }
            Record::Memset { start, end, on, correlation, bytes, memory: kind } => {
                let (stream, bytes) = (self.stream(on), Some(Bytes::new(bytes)));
                let memset = self.trace.memset(stream, memory(kind), bytes, interval(start, end));
                memset.correlation(u64::from(correlation));
            }
            _ => {}
        }
    }

    fn add_on_host(&mut self, record: &Record<'_>) {
        match *record {
            Record::Call { start, end, thread, correlation, name, is_driver, .. } => {
                let kind = if is_driver { EventKind::DriverCall } else { EventKind::RuntimeCall };
                let name = self.names.get(&name).map_or(NameId::EMPTY, |(_, call)| *call);
                let thread = self.thread(thread);
                let call = self.trace.event(kind, thread, name, interval(start, end));
                call.correlation(u64::from(correlation));
            }
            Record::RangeStart { at, id, thread, name } => {
                self.open_ranges.insert(id, (at, thread, name));
            }
            Record::RangeEnd { at, id } => {
                if let Some((start, thread, name)) = self.open_ranges.remove(&id) {
                    let (thread, name) = (self.thread(thread), self.name(name));
                    self.trace.annotation(thread, name, interval(start, at));
                }
            }
            Record::Mark { at, thread, name } => {
                let (thread, name) = (self.thread(thread), self.name(name));
                self.trace.annotation(thread, name, interval(at, at));
            }
            Record::Overhead { start, end, thread, .. } => {
                let thread = self.thread(thread);
                self.trace.event(EventKind::ProfilerOverhead, thread, "CUPTI", interval(start, end));
            }
            _ => {}
        }
    }

    fn name(&self, id: u32) -> NameId {
        self.names.get(&id).map_or(NameId::EMPTY, |(shown, _)| *shown)
    }

    fn thread(&mut self, thread: u32) -> TrackId {
        self.trace.thread(self.process, thread)
    }

    fn stream(&mut self, on: Stream) -> TrackId {
        self.trace.stream(device(on.device), on.stream.into())
    }

    /// Joins what needs all records.
    pub(super) fn finish(self) {
        self.waits.resolve(self.trace);
        count_kernels_off(self.trace, &self.kernels_off);
        self.trace.host_nodes(self.host_nodes);
        self.trace.accesses(self.accesses, self.other_waits);
        let origin = self.trace.origin();
        origin.trace_name = self.facts.get(b"command".as_slice()).cloned();
        if let Some(cupti) = self.facts.get(b"cupti".as_slice()) {
            origin.versions.insert("cupti".to_owned(), cupti.clone());
        }
        origin.environment = environment(&self.facts);
        origin.numa = numa(&self.facts);
        origin.pinned_sizes = pinned_sizes(&self.facts);
        origin.is_confidential = self.facts.contains_key(CONFIDENTIAL);
        for gpu in &mut origin.gpus {
            gpu.limits = limits(&self.facts, gpu.id);
        }
        let number = |key: &[u8]| self.facts.get(key).and_then(|text| text.parse().ok());
        let (rank, world_size) = (number(b"RANK"), number(b"WORLD_SIZE"));
        if rank.is_some() || world_size.is_some() {
            origin.distributed = Some(Distributed { rank, world_size, backend: None });
        }
    }
}

/// `None` if the recorder did not see all allocations.
fn pinned_sizes(facts: &BTreeMap<Vec<u8>, String>) -> Option<BTreeMap<u64, u32>> {
    let size_of = |key: &[u8]| std::str::from_utf8(key.strip_prefix(PINNED)?).ok()?.parse::<u64>().ok();
    let sizes: BTreeMap<u64, u32> =
        facts.iter().filter_map(|(key, count)| Some((size_of(key)?, count.parse().ok()?))).collect();
    (!sizes.is_empty() && !facts.contains_key(PINNED_INCOMPLETE)).then_some(sizes)
}

/// What the recorder wrote about a GPU.
fn limits(facts: &BTreeMap<Vec<u8>, String>, gpu: i32) -> GpuLimits {
    let number =
        |key: &[u8]| -> Option<u32> { facts.get(&[key, gpu.to_string().as_bytes()].concat())?.parse().ok() };
    GpuLimits {
        clock_mhz: number(CLOCK_LIMIT_OF_GPU),
        power_watts: number(POWER_LIMIT_OF_GPU).map(|milliwatts| milliwatts.div_ceil(1000)),
    }
}

/// What the recorder wrote about the process; `None` in recordings that are older.
fn environment(facts: &BTreeMap<Vec<u8>, String>) -> Option<Environment> {
    let cpus = facts.get(CPUS).and_then(|text| text.parse().ok());
    let memory = facts.get(HOST_MEMORY).and_then(|text| text.parse().ok());
    let of_kind = |kind: &[u8]| -> BTreeMap<String, String> {
        let name = |key: &[u8]| Some(String::from_utf8_lossy(key.strip_prefix(kind)?).into_owned());
        facts.iter().filter_map(|(key, value)| Some((name(key)?, value.clone()))).collect()
    };
    let (variables, versions) = (of_kind(VARIABLE), of_kind(VERSION));
    let is_recorded = cpus.is_some() || !variables.is_empty();
    let variables = Some(variables);
    is_recorded.then(|| Environment { versions, variables, cpus, memory, ..Environment::default() })
}

fn file_reads(at: u64, counts: FileCounts) -> FileReads {
    let nanos = |nanos: u64| Nanos::new(i64::try_from(nanos).unwrap_or(i64::MAX));
    FileReads {
        at: timestamp(at),
        read: Bytes::new(counts.read),
        disk: Bytes::new(counts.disk),
        major_faults: counts.major_faults,
        minor_faults: counts.minor_faults,
        user: nanos(counts.user),
        system: nanos(counts.system),
    }
}

/// How long kernels were not recorded, and how long the recording is.
fn count_kernels_off(trace: &mut TraceBuilder, times: &[Interval]) {
    let events = &trace.trace.events;
    let starts = events.start.iter().copied().chain(times.iter().map(|time| time.start));
    let ends = events.start.iter().copied().chain(times.iter().map(|time| time.end));
    let (Some(first), Some(last), false) = (starts.min(), ends.max(), times.is_empty()) else { return };
    let nanos = |time: Interval| u64::try_from(time.length().get()).unwrap_or(0);
    let off = times.iter().map(|time| nanos(*time)).sum();
    let stats = trace.stats_mut();
    stats.lost_work.kernels_off.add(off, nanos(Interval::new(first, last)));
    stats.lose_several(LossKind::NotCollected, 1);
}

fn device(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(0)
}

fn timestamp(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(0))
}

fn interval(start: u64, end: u64) -> Interval {
    Interval::new(timestamp(start), timestamp(end))
}

fn geometry(launch: RecordedLaunch) -> Launch {
    Launch {
        grid: launch.grid,
        block: launch.block,
        registers_per_thread: launch.registers,
        shared_memory: launch.shared_memory,
    }
}

/// CUPTI's copy kinds.
fn direction(kind: u8) -> Direction {
    match kind {
        1 | 3 => Direction::HostToDevice,
        2 | 4 => Direction::DeviceToHost,
        5..=8 => Direction::DeviceToDevice,
        9 => Direction::HostToHost,
        10 => Direction::PeerToPeer,
        _ => Direction::Unknown,
    }
}

/// CUPTI's memory kinds. Arrays and static variables count as the memory that holds them.
fn memory(kind: u8) -> MemoryKind {
    match kind {
        1 => MemoryKind::Pageable,
        2 => MemoryKind::Pinned,
        3 | 4 | 6 => MemoryKind::Device,
        5 | 7 => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}
