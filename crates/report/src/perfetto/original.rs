//! The original tracks: every event that was read, on its thread or stream.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};

use busbound_cause::Host;
use busbound_trace::{Event, EventKind, Label, Place, Trace};
use serde_json::{Value, json};

use super::rows::Rows;
use super::{Events, Track};

/// Ids that are text, negative or too large get numbers from here on: Perfetto reads ids over 32 bits as 0.
const ASSIGNED: i64 = 1_900_000_000;

/// Threads for further rows of streams have ids from here on.
const ROWS: i64 = 1_950_000_000;

/// The ids of processes and threads in the output.
pub(super) struct Ids {
    processes: HashMap<Label, i64>,
    threads: HashMap<(i64, Label), i64>,
    rows: Rows,
    /// The threads of further rows, by stream.
    further: HashMap<Place, i64>,
}

impl Ids {
    fn of(trace: &Trace) -> Self {
        let mut ids = Self {
            processes: HashMap::new(),
            threads: HashMap::new(),
            rows: Rows::of(trace),
            further: HashMap::new(),
        };
        let mut next_row = ROWS;
        for track in trace.tracks() {
            let (process, thread) = match track.place() {
                Place::Thread { process, thread } => (process, thread),
                Place::Stream { device, stream } => (Label::Number(device.into()), Label::Number(stream)),
            };
            let next = ASSIGNED + ids.processes.len() as i64;
            let process = *ids.processes.entry(process).or_insert_with(|| fitting(process).unwrap_or(next));
            let next = ASSIGNED + ids.threads.len() as i64;
            ids.threads.entry((process, thread)).or_insert_with(|| fitting(thread).unwrap_or(next));
            ids.further.insert(track.place(), next_row);
            next_row += ids.rows.count(track.place()) as i64 - 1;
        }
        ids
    }

    /// Where an event is drawn.
    fn of_event(&self, event: &Event<'_>) -> Track {
        self.row(event.place(), self.rows.row(event.id()))
    }

    /// A row of a track; zero is the track itself.
    fn row(&self, place: Place, row: usize) -> Track {
        let track = self.track(place);
        match self.further.get(&place).filter(|_| row > 0) {
            Some(first) => Track { thread: first + row as i64 - 1, ..track },
            None => track,
        }
    }

    fn track(&self, place: Place) -> Track {
        let (process, thread) = match place {
            Place::Thread { process, thread } => (process, thread),
            Place::Stream { device, stream } => (Label::Number(device.into()), Label::Number(stream)),
        };
        let process = self.processes.get(&process).copied().unwrap_or(ASSIGNED);
        Track { process, thread: self.threads.get(&(process, thread)).copied().unwrap_or(ASSIGNED) }
    }
}

fn fitting(label: Label) -> Option<i64> {
    match label {
        Label::Number(number) => Some(number).filter(|number| (0..ASSIGNED).contains(number)),
        Label::Text(_) => None,
    }
}

pub(super) fn devices(trace: &Trace) -> Vec<Value> {
    let gpus = trace.origin().gpus.iter();
    gpus.map(|gpu| {
        let mut device = json!({"id": gpu.id, "name": gpu.name});
        if let Some(memory) = gpu.memory {
            device["totalGlobalMem"] = memory.get().into();
        }
        device
    })
    .collect()
}

pub(super) fn write<W: Write>(events: &mut Events<W>, trace: &Trace) -> io::Result<()> {
    let mut processes = BTreeSet::new();
    let ids = Ids::of(trace);
    for track in trace.tracks() {
        let place = ids.track(track.place());
        match track.place() {
            Place::Thread { process, thread } => {
                if processes.insert(place.process) {
                    let name = trace.given_name(process, None).map(str::to_owned);
                    let name = name.unwrap_or_else(|| process.display(trace.names()));
                    events.process_name(place.process, &name)?;
                }
                if let Some(name) = trace.given_name(process, Some(thread)) {
                    events.thread_name(place, name)?;
                }
            }
            Place::Stream { device, stream } => {
                if processes.insert(place.process) {
                    let name = trace.origin().gpus.iter().find(|gpu| gpu.id == device);
                    let name = name
                        .map_or_else(|| format!("GPU {device}"), |gpu| format!("GPU {device}: {}", gpu.name));
                    events.process_name(place.process, &name)?;
                    events.sort_index(place.process, 5_000_000 + place.process)?;
                }
                let name = match stream {
                    -1 => "whole device".to_owned(),
                    stream => format!("stream {stream}"),
                };
                events.thread_name(place, &name)?;
                for row in 1..ids.rows.count(track.place()) {
                    events.thread_name(ids.row(track.place(), row), &format!("{name}, overlapping {row}"))?;
                }
            }
        }
    }
    for event in trace.events() {
        let when = (event.start().as_nanos(), event.duration().get());
        events.complete(ids.of_event(&event), category(event.kind()), event.name(), when, &args(&event))?;
    }
    arrows(events, trace, &ids)
}

/// Arrows from calls to the GPU work they launched. Each has its own id, because one graph launch starts many kernels.
/// They come after all events, because viewers resolve them against events already read.
fn arrows<W: Write>(events: &mut Events<W>, trace: &Trace, ids: &Ids) -> io::Result<()> {
    let host = Host::of(trace);
    let work = trace.events().filter(|event| event.kind().is_gpu_work());
    let joined = work.filter_map(|work| Some((host.call_behind(&work)?, work)));
    for (number, (call, work)) in (1..).zip(joined) {
        events.arrow("s", number, ids.of_event(&call), call.start().as_nanos())?;
        events.arrow("f", number, ids.of_event(&work), work.start().as_nanos())?;
    }
    Ok(())
}

/// The newest category name that profilers use for a kind.
fn category(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Operator => "cpu_op",
        EventKind::Annotation => "user_annotation",
        EventKind::GpuAnnotation => "gpu_user_annotation",
        EventKind::PythonFrame => "python_function",
        EventKind::RuntimeCall => "cuda_runtime",
        EventKind::DriverCall => "cuda_driver",
        EventKind::Kernel => "kernel",
        EventKind::Copy => "gpu_memcpy",
        EventKind::Memset => "gpu_memset",
        EventKind::Synchronization => "cuda_sync",
        EventKind::EventRecord => "cuda_event",
        EventKind::PageFault => "page_fault",
        EventKind::ProfilerOverhead => "overhead",
        EventKind::ProfilerSpan => "Trace",
        EventKind::Other => "other",
    }
}

/// The known attributes of an event, as JSON members.
fn args(event: &Event<'_>) -> String {
    let mut members: BTreeMap<&str, Value> = BTreeMap::new();
    if let Some(id) = event.external_id() {
        members.insert("External id", id.into());
    }
    if let Some(id) = event.correlation() {
        members.insert("correlation", id.into());
    }
    if let Place::Stream { device, stream } = event.place() {
        members.insert("device", device.into());
        members.insert("stream", stream.into());
    }
    if let Some(bytes) = event.transfer().and_then(|transfer| transfer.bytes) {
        members.insert("bytes", bytes.get().into());
        if event.duration().get() > 0 {
            let rate = bytes.get() as f64 / event.duration().get() as f64;
            members.insert("memory bandwidth (GB/s)", rate.into());
        }
    }
    if let Some(launch) = event.launch() {
        members.insert("grid", json!(launch.grid));
        members.insert("block", json!(launch.block));
        members.insert("registers per thread", launch.registers_per_thread.into());
        members.insert("shared memory", launch.shared_memory.into());
    }
    let mut text = String::new();
    for (name, value) in members {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}\"{name}\": {value}");
    }
    text
}
