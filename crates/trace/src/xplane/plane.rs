//! What happened on a device or on the host? The lines of one plane become tracks, and their events become events of
//! the trace.

use std::collections::BTreeMap;

use super::wire::{Fields, Value};
use crate::interval::Interval;
use crate::model::builder::TraceBuilder;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::memory::{MemoryOwner, MemorySample};
use crate::model::origin::{Gpu, GpuLimits};
use crate::model::size::Bytes;
use crate::model::stats::LossKind;
use crate::model::time::Timestamp;
use crate::model::track::{Label, TrackId};
use crate::model::transfer::{Direction, MemoryKind, Transfer};
use crate::reader::Watch;

/// Everything on the host is one process: a profile comes from one process.
const PROCESS: i64 = 0;

/// Events between two checks of memory use and of cancellation.
const EVENTS_BETWEEN_CHECKS: u64 = 4096;

/// Beyond this, sums of times could overflow; it is 73 years in nanoseconds.
const FURTHEST: u64 = 1 << 61;

/// What a plane describes, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Gpu(i32),
    Host,
    /// Tasks, HLO protos, TPUs: skipped.
    Other,
}

impl About {
    fn of(name: &str) -> Self {
        if let Some(rest) = name.strip_prefix("/device:GPU:") {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
            return digits.parse().map_or(Self::Other, Self::Gpu);
        }
        // CUDA and HIP calls are in separate planes until XLA merges them into the host plane.
        match name {
            "/host:CPU" | "/host:CUPTI" | "/host:ROCTRACER" => Self::Host,
            _ => Self::Other,
        }
    }
}

/// One event with the facts that are kept.
#[derive(Debug, Default)]
struct Draft<'a> {
    name: &'a str,
    offset_ps: u64,
    duration_ps: u64,
    correlation: Option<u64>,
    /// `kind_src:pinned kind_dst:device size:4096 dest:0 async:1`.
    memcpy: Option<&'a str>,
    memset: Option<&'a str>,
    /// `regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:256,1,1 occ_pct:50`.
    kernel: Option<&'a str>,
    /// The number of a `StepTraceAnnotation`.
    step: Option<u64>,
    /// One of its facts lost its name, so the kind of the event is unknown.
    is_obscure: bool,
    allocator: Option<&'a str>,
    allocation_bytes: i64,
    allocated: u64,
    reserved: u64,
}

/// Reads one plane into a trace.
pub(super) struct PlaneReader<'a, 't, 'w> {
    plane: &'a [u8],
    trace: &'t mut TraceBuilder,
    memory_bound: u64,
    watch: &'t mut Watch<'w>,
    names: BTreeMap<u64, &'a str>,
    facts: BTreeMap<u64, &'a str>,
    seen: u64,
    damaged: bool,
    full: bool,
    interrupted: bool,
}

impl<'a, 't, 'w> PlaneReader<'a, 't, 'w> {
    pub(super) fn new(
        plane: &'a [u8],
        trace: &'t mut TraceBuilder,
        memory_bound: u64,
        watch: &'t mut Watch<'w>,
    ) -> Self {
        Self {
            plane,
            trace,
            memory_bound,
            watch,
            names: BTreeMap::new(),
            facts: BTreeMap::new(),
            seen: 0,
            damaged: false,
            full: false,
            interrupted: false,
        }
    }

    /// Whether reading stopped at the memory limit.
    pub(super) fn has_stopped(&self) -> bool {
        self.full
    }

    /// Reads the plane; returns whether some of it is damaged.
    pub(super) fn read(&mut self) -> bool {
        let (mut name, mut lines, mut facts) = ("", Vec::new(), Vec::new());
        let mut fields = Fields::of(self.plane);
        for (number, value) in fields.by_ref() {
            match number {
                2 => name = value.text(),
                3 => lines.push(value.bytes()),
                4 => self.names.extend(entry(value)),
                5 => self.facts.extend(entry(value)),
                6 => facts.push(value.bytes()),
                _ => {}
            }
        }
        self.damaged |= fields.are_damaged();
        match About::of(name) {
            About::Gpu(device) => {
                self.add_gpu(device, &facts);
                for line in lines {
                    self.read_line(line, Some(device));
                }
            }
            About::Host => lines.into_iter().for_each(|line| self.read_line(line, None)),
            About::Other => {
                self.add_times(&facts);
                if !lines.is_empty() {
                    self.trace.skip(&format!("lines of plane {name}"), lines.len() as u64);
                }
            }
        }
        self.damaged
    }

    /// A fact of the plane or of an event: its name and its value. Texts by reference are resolved.
    fn fact(&self, message: &'a [u8]) -> (&'a str, Value<'a>) {
        let (mut name, mut value) = ("", Value::Number(0));
        for (number, field) in Fields::of(message) {
            match number {
                1 => name = self.facts.get(&field.number()).copied().unwrap_or_default(),
                7 => {
                    let text = self.facts.get(&field.number()).copied().unwrap_or_default();
                    value = Value::Bytes(text.as_bytes());
                }
                _ => value = field,
            }
        }
        (name, value)
    }

    fn add_gpu(&mut self, device: i32, facts: &[&'a [u8]]) {
        let facts: BTreeMap<_, _> = facts.iter().map(|fact| self.fact(fact)).collect();
        let number = |name| facts.get(name).map(|value: &Value<'_>| value.number());
        let small = |name| number(name).and_then(|number| u32::try_from(number).ok());
        let Some(vendor) = facts.get("device_vendor").map(|vendor| vendor.text()) else { return };
        // For an unused GPU, only the vendor is recorded.
        let Some(memory) = number("memory_size") else { return };
        self.trace.gpu(Gpu {
            id: device,
            name: format!("{vendor} GPU"),
            memory: Some(Bytes::new(memory)),
            multiprocessors: small("core_count"),
            compute_capability: small("compute_cap_major").zip(small("compute_cap_minor")),
            link: None,
            limits: GpuLimits::default(),
        });
    }

    fn add_times(&mut self, facts: &[&'a [u8]]) {
        for fact in facts {
            if let ("profile_start_time", value) = self.fact(fact) {
                self.trace.origin().base_time_ns = i64::try_from(value.number()).ok();
            }
        }
    }

    fn read_line(&mut self, line: &'a [u8], device: Option<i32>) {
        if self.full || self.interrupted {
            return;
        }
        let (mut id, mut name, mut shown, mut begin, mut events) = (0, "", "", 0, Vec::new());
        let mut fields = Fields::of(line);
        for (number, value) in fields.by_ref() {
            match number {
                1 => id = value.signed(),
                2 => name = value.text(),
                3 => begin = value.signed(),
                4 => events.push(value.bytes()),
                11 => shown = value.text(),
                _ => {}
            }
        }
        self.damaged |= fields.are_damaged();
        self.trace.stats_mut().objects += events.len() as u64;
        let track = match (device, stream_of(name)) {
            (Some(device), Some(stream)) => self.trace.stream(device, stream),
            // XLA's own summaries of the streams: modules, operations, steps.
            (Some(_), None) => {
                return self.trace.skip(&format!("events of line {name}"), events.len() as u64);
            }
            (None, _) => {
                let thread = if shown.is_empty() { name } else { shown };
                self.trace.name_thread(PROCESS, id, thread);
                self.trace.thread(Label::from(PROCESS), id)
            }
        };
        for event in events {
            self.read_event(event, begin, track, device.is_some());
            self.look();
            if self.full || self.interrupted {
                return;
            }
        }
    }

    fn look(&mut self) {
        self.seen += 1;
        if self.seen.is_multiple_of(EVENTS_BETWEEN_CHECKS) {
            self.interrupted |= self.watch.tick().is_break();
            let left = self.memory_bound.saturating_sub(self.plane.len() as u64);
            self.full |= self.trace.is_full(left);
        }
    }

    fn read_event(&mut self, message: &'a [u8], begin: i64, track: TrackId, is_on_device: bool) {
        let mut draft = Draft::default();
        let mut fields = Fields::of(message);
        for (number, value) in fields.by_ref() {
            match number {
                1 => draft.name = self.names.get(&value.number()).copied().unwrap_or_default(),
                2 => draft.offset_ps = value.number(),
                3 => draft.duration_ps = value.number(),
                4 => self.add_fact(&mut draft, value.bytes()),
                // A count without a time.
                5 => return self.trace.skip("events with only a count", 1),
                _ => {}
            }
        }
        self.damaged |= fields.are_damaged();
        if draft.name.is_empty() || draft.is_obscure {
            return self.trace.skip("events whose names are cut off", 1);
        }
        let Some(time) = interval(begin, &draft) else {
            return self.trace.stats_mut().lose_several(LossKind::UnusableRow, 1);
        };
        if is_on_device { self.add_work(&draft, track, time) } else { self.add_on_host(&draft, track, time) }
    }

    fn add_fact(&self, draft: &mut Draft<'a>, message: &'a [u8]) {
        let (name, value) = self.fact(message);
        match name {
            "" => draft.is_obscure = true,
            "correlation_id" => draft.correlation = Some(value.number()).filter(|id| *id > 0),
            "memcpy_details" => draft.memcpy = Some(value.text()),
            "Memset_details" | "memset_details" => draft.memset = Some(value.text()),
            "kernel_details" => draft.kernel = Some(value.text()),
            "step_num" => draft.step = Some(value.number()),
            "allocator_name" => draft.allocator = Some(value.text()),
            "allocation_bytes" => draft.allocation_bytes = value.signed(),
            "bytes_allocated" => draft.allocated = value.number(),
            "bytes_reserved" => draft.reserved = value.number(),
            _ => {}
        }
    }

    fn add_work(&mut self, draft: &Draft<'_>, track: TrackId, time: Interval) {
        let bytes = |details: Option<&str>| detail(details?, "size")?.parse().ok().map(Bytes::new);
        let event = match draft.name {
            name if name.starts_with("Memcpy") || is_rocms_copy(name) => {
                self.trace.copy(track, transfer(name, draft.memcpy.unwrap_or_default()), time)
            }
            "Memset" => self.trace.memset(track, MemoryKind::Device, bytes(draft.memset), time),
            name if name.starts_with("Memory") => self.trace.event(EventKind::Other, track, name, time),
            name => self.trace.kernel(track, name.strip_suffix(".kd").unwrap_or(name), time),
        };
        let event = event.correlation(draft.correlation);
        if let Some(details) = draft.kernel {
            event.launch(launch(details));
        }
    }

    /// Calls have a correlation; Python frames begin with a dollar sign; the rest are annotations by XLA and the
    /// program.
    fn add_on_host(&mut self, draft: &Draft<'_>, track: TrackId, time: Interval) {
        let name = draft.name;
        if let Some(allocator) = draft.allocator {
            return self.add_memory(draft, allocator, time.start);
        }
        if draft.correlation.is_some() {
            let is_drivers = name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(char::is_uppercase));
            let kind = if is_drivers { EventKind::DriverCall } else { EventKind::RuntimeCall };
            self.trace.event(kind, track, call(name), time).correlation(draft.correlation);
        } else if let Some(frame) = name.strip_prefix('$') {
            self.trace.python_frame(track, frame, time);
        } else if let Some(step) = draft.step {
            // By its number, as in XLA's own views: the name is usually "train".
            self.trace.annotation(track, &format!("step {step}"), time);
        } else {
            self.trace.operator(track, name, time);
        }
    }

    fn add_memory(&mut self, draft: &Draft<'_>, allocator: &str, at: Timestamp) {
        // `GPU_0_bfc`; all other allocators are on the host.
        let device = allocator.strip_prefix("GPU_").and_then(|rest| rest.split('_').next()?.parse().ok());
        let is_release = draft.name.starts_with("MemoryDeallocation");
        self.trace.memory_sample(MemorySample {
            at,
            owner: device.map_or(MemoryOwner::Host, MemoryOwner::Device),
            change: if is_release { -draft.allocation_bytes } else { draft.allocation_bytes },
            allocated: draft.allocated,
            reserved: draft.reserved,
        });
    }
}

/// A kernel may have any name, even one that begins like this.
fn is_rocms_copy(name: &str) -> bool {
    ["CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice"].contains(&name)
}

/// Some versions name the launch of a kernel after the kernel, and a copy call after the copy.
fn call(name: &str) -> &str {
    let is_interface = ["cu", "hip"].iter().any(|of| name.starts_with(of)) || name.starts_with("Mem");
    match name {
        _ if is_interface => name,
        _ if is_rocms_copy(name) => "MemcpyAsync",
        _ => "LaunchKernel",
    }
}

/// An entry of a plane's table of names: its id, and the name in its message.
fn entry(value: Value<'_>) -> Option<(u64, &str)> {
    let (mut id, mut name) = (0, None);
    for (number, value) in Fields::of(value.bytes()) {
        match number {
            1 => id = value.number(),
            2 => name = Fields::of(value.bytes()).find(|(field, _)| *field == 2).map(|(_, name)| name.text()),
            _ => {}
        }
    }
    Some((id, name?))
}

/// The number of a stream: `Stream #17(Kernel)`, `Stream #2`.
fn stream_of(line: &str) -> Option<i64> {
    let rest = line.strip_prefix("Stream #")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Picoseconds since the start of the line, converted to nanoseconds of the profile.
fn interval(begin: i64, draft: &Draft<'_>) -> Option<Interval> {
    let at = |picoseconds: u64| {
        let nanos = begin.checked_add(i64::try_from(picoseconds / 1_000).ok()?)?;
        (nanos.unsigned_abs() < FURTHEST).then(|| Timestamp::from_nanos(nanos))
    };
    Some(Interval::new(at(draft.offset_ps)?, at(draft.offset_ps.checked_add(draft.duration_ps)?)?))
}

/// The value of a key in `key:value key:value`.
fn detail<'d>(details: &'d str, key: &str) -> Option<&'d str> {
    details
        .split_whitespace()
        .find_map(|pair| pair.split_once(':').filter(|(known, _)| *known == key))
        .map(|(_, value)| value)
}

/// The direction is in the event's name; memory kinds and size are in its details.
fn transfer(name: &str, details: &str) -> Transfer {
    let direction = match name {
        "MemcpyH2D" | "CopyHostToDevice" => Direction::HostToDevice,
        "MemcpyD2H" | "CopyDeviceToHost" => Direction::DeviceToHost,
        "MemcpyD2D" | "CopyDeviceToDevice" => Direction::DeviceToDevice,
        "MemcpyP2P" => Direction::PeerToPeer,
        "MemcpyH2H" => Direction::HostToHost,
        _ => Direction::Unknown,
    };
    let memory = |key| match detail(details, key) {
        Some("pageable") => MemoryKind::Pageable,
        Some("pinned") => MemoryKind::Pinned,
        Some("device" | "array" | "device_static") => MemoryKind::Device,
        Some("managed" | "managed_static") => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    };
    let bytes = detail(details, "size").and_then(|size| size.parse().ok()).map(Bytes::new);
    Transfer { bytes, direction, src: memory("kind_src"), dst: memory("kind_dst") }
}

fn launch(details: &str) -> Launch {
    let number = |key| detail(details, key).and_then(|number| number.parse().ok()).unwrap_or(0);
    let sides = |key| {
        let mut sides = [0; 3];
        for (side, text) in sides.iter_mut().zip(detail(details, key).unwrap_or_default().split(',')) {
            *side = text.parse().unwrap_or(0);
        }
        sides
    };
    Launch {
        grid: sides("grid"),
        block: sides("block"),
        registers_per_thread: number("regs"),
        // CUDA's static and dynamic shared memory, or HIP's group memory.
        shared_memory: number("static_shared") + number("dynamic_shared") + number("group_mem"),
    }
}
