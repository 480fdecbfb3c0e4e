//! The reader of `busbound record`'s own files.
//!
//! Chunks come in the order in which CUPTI handed its buffers over, so names precede their use and times do not rise; what
//! needs another record (the end of a range, the event that was waited for) is joined at the end.

pub(crate) mod names;

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;

use busbound_capture::format::{Chunk, ChunkReader, Record, Records, Stream};

use crate::model::events::Row;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::names::NameId;
use crate::model::origin::{Distributed, Gpu, RecordedLink, SourceFormat};
use crate::model::size::Bytes;
use crate::model::stats::LossKind;
use crate::model::sync::Synchronisation;
use crate::model::time::{Nanos, Timestamp};
use crate::model::trace::Trace;
use crate::model::track::{Label, Place};
use crate::model::transfer::{Direction, MemoryKind, Transfer};

/// Reads a recording to its end or to the memory bound; what is damaged is passed over and counted.
pub(crate) fn read(source: impl Read, memory_bound: u64, tick: &mut dyn FnMut() -> ControlFlow<()>) -> Trace {
    let mut chunks = ChunkReader::new(source);
    let mut reading = Reading::default();
    let stats = |reading: &mut Reading, what, at, bytes| reading.trace.stats.lose(what, at, bytes);
    let mut end = 0;
    loop {
        if tick().is_break() {
            break;
        }
        match chunks.next_chunk() {
            Ok(Some(Chunk::Whole { at, payload })) => {
                end = at + payload.len() as u64;
                reading.trace.stats.json_bytes = end;
                let mut records = Records::of(&payload);
                records.by_ref().for_each(|record| reading.add(&record));
                if records.unread() > 0 {
                    stats(&mut reading, LossKind::DamagedChunk, at, records.unread() as u64);
                }
            }
            Ok(Some(Chunk::Damaged(damage))) => {
                stats(&mut reading, LossKind::DamagedChunk, damage.at, damage.bytes);
            }
            Ok(Some(Chunk::Cut(damage))) => {
                stats(&mut reading, LossKind::EndsInsideChunk, damage.at, damage.bytes);
                break;
            }
            Ok(None) => {
                if !reading.has_ended {
                    stats(&mut reading, LossKind::EndsWithoutMark, end, 0);
                }
                break;
            }
            Err(_) => {
                stats(&mut reading, LossKind::ReadError, end, 0);
                break;
            }
        }
        if reading.trace.heap_bytes() as u64 > memory_bound {
            stats(&mut reading, LossKind::MemoryBound, end, 0);
            break;
        }
    }
    reading.finish()
}

#[derive(Default)]
struct Reading {
    trace: Trace,
    /// By the numbers of the file.
    names: HashMap<u32, NameId>,
    calls: HashMap<u32, NameId>,
    process: i64,
    open_ranges: HashMap<u32, (u64, u32, u32)>,
    /// Event records as (event, correlation, stream), and waits that name an event.
    event_records: Vec<(u32, u32, u32)>,
    waits: Vec<Wait>,
    facts: HashMap<Vec<u8>, String>,
    links: HashMap<u32, RecordedLink>,
    has_ended: bool,
}

#[derive(Clone, Copy)]
struct Wait {
    start: u64,
    end: u64,
    correlation: u32,
    stream: i64,
    kind: u32,
    event: u32,
}

/// As CUPTI numbers them.
const STREAM_WAIT_EVENT: u32 = 2;
const EVENT_SYNC: u32 = 1;

impl Reading {
    fn add(&mut self, record: &Record<'_>) {
        self.trace.stats.objects += 1;
        match *record {
            Record::Name { id, text } => {
                let name = names::shown(text);
                self.names.insert(id, self.trace.names.intern(&name));
                self.calls.insert(id, self.trace.names.intern(names::call(&name)));
            }
            Record::Fact { key, value } => {
                self.facts.insert(key.to_vec(), String::from_utf8_lossy(value).into_owned());
                if key == b"process" {
                    self.process = String::from_utf8_lossy(value).parse().unwrap_or(0);
                }
            }
            Record::Clock { at, unix_ns } => {
                self.trace.origin.base_time_ns = Some(unix_ns.wrapping_sub(at) as i64);
            }
            Record::Gpu { id, name, memory, multiprocessors, capability } => {
                let name = self.names.get(&name).map_or("", |name| self.trace.names.get(*name)).to_owned();
                let gpu = Gpu {
                    id: i32::try_from(id).unwrap_or(0),
                    name,
                    memory: Some(Bytes::new(memory)),
                    multiprocessors: Some(multiprocessors),
                    compute_capability: Some(capability),
                    link: self.links.get(&id).copied(),
                };
                if !self.trace.origin.gpus.iter().any(|known| known.id == gpu.id) {
                    self.trace.origin.gpus.push(gpu);
                }
            }
            Record::Link { gpu, generation, lanes, max_generation, max_lanes } => {
                let seen = RecordedLink {
                    generation,
                    lanes,
                    most_generation: max_generation,
                    most_lanes: max_lanes,
                };
                let best = self.links.entry(gpu).or_insert(seen);
                if (seen.generation, seen.lanes) > (best.generation, best.lanes) {
                    *best = seen;
                }
                let (best, id) = (*best, i32::try_from(gpu).unwrap_or(0));
                if let Some(gpu) = self.trace.origin.gpus.iter_mut().find(|known| known.id == id) {
                    gpu.link = Some(best);
                }
                let text = format!(
                    "PCIe {} x{} of at most {max_generation} x{max_lanes}",
                    best.generation, best.lanes
                );
                self.trace.origin.versions.insert(format!("link of GPU {gpu}"), text);
            }
            Record::Thread { id, name } => {
                if let Some(&name) = self.names.get(&name) {
                    let thread = Some(Label::Number(id.into()));
                    self.trace.given_names.insert((Label::Number(self.process), thread), name);
                }
            }
            Record::Kernel { start, end, on, correlation, name, launch } => {
                let name = self.name(name);
                self.push(EventKind::Kernel, name, of_stream(on), start, end, Some(correlation));
                self.trace.events.set_launch(Launch {
                    grid: launch.grid,
                    block: launch.block,
                    registers_per_thread: launch.registers,
                    shared_memory: launch.shared_memory,
                });
            }
            Record::Copy { start, end, on, correlation, bytes, kind, from, to, .. } => {
                let (direction, word) = direction(kind);
                let (src, dst) = (memory(from), memory(to));
                let name = format!("Memcpy {word} ({} -> {})", memory_word(from), memory_word(to));
                let name = self.trace.names.intern(&name);
                self.push(EventKind::Copy, name, of_stream(on), start, end, Some(correlation));
                self.trace.events.set_transfer(Transfer {
                    bytes: Some(Bytes::new(bytes)),
                    direction,
                    src,
                    dst,
                });
            }
            Record::PeerCopy { start, end, on, correlation, bytes, .. } => {
                let name = self.trace.names.intern("Memcpy PtoP (Device -> Device)");
                self.push(EventKind::Copy, name, of_stream(on), start, end, Some(correlation));
                let (direction, device) = (Direction::PeerToPeer, MemoryKind::Device);
                let bytes = Some(Bytes::new(bytes));
                self.trace.events.set_transfer(Transfer { bytes, direction, src: device, dst: device });
            }
            Record::Memset { start, end, on, correlation, bytes, memory: kind } => {
                let name = self.trace.names.intern(&format!("Memset ({})", memory_word(kind)));
                self.push(EventKind::Memset, name, of_stream(on), start, end, Some(correlation));
                let (direction, kind) = (Direction::Unknown, memory(kind));
                let bytes = Some(Bytes::new(bytes));
                self.trace.events.set_transfer(Transfer { bytes, direction, src: kind, dst: kind });
            }
            Record::Call { start, end, thread, correlation, name, is_driver, .. } => {
                let kind = if is_driver { EventKind::DriverCall } else { EventKind::RuntimeCall };
                let name = self.calls.get(&name).copied().unwrap_or(NameId::EMPTY);
                self.push(kind, name, self.of_thread(thread), start, end, Some(correlation));
            }
            Record::Sync { start, end, correlation, stream, kind, event } => {
                self.waits.push(Wait { start, end, correlation, stream, kind, event });
            }
            Record::EventRecord { correlation, stream, event } => {
                self.event_records.push((event, correlation, stream));
            }
            Record::RangeStart { at, id, thread, name } => {
                self.open_ranges.insert(id, (at, thread, name));
            }
            Record::RangeEnd { at, id } => {
                if let Some((start, thread, name)) = self.open_ranges.remove(&id) {
                    let name = self.name(name);
                    self.push(EventKind::Annotation, name, self.of_thread(thread), start, at, None);
                }
            }
            Record::Mark { at, thread, name } => {
                let name = self.name(name);
                self.push(EventKind::Annotation, name, self.of_thread(thread), at, at, None);
            }
            Record::Overhead { start, end, thread, .. } => {
                let name = self.trace.names.intern("CUPTI");
                self.push(EventKind::ProfilerOverhead, name, self.of_thread(thread), start, end, None);
            }
            Record::Dropped { count, .. } => self.trace.stats.lose_several(LossKind::DroppedRecord, count),
            Record::LinkBytes { .. } => {
                *self
                    .trace
                    .stats
                    .not_kept
                    .entry("readings of the link's counters".to_owned())
                    .or_default() += 1;
            }
            Record::Note { text } => {
                self.trace.origin.profiler_messages.push(String::from_utf8_lossy(text).into_owned());
            }
            Record::End => self.has_ended = true,
        }
    }

    fn name(&self, id: u32) -> NameId {
        self.names.get(&id).copied().unwrap_or(NameId::EMPTY)
    }

    fn of_thread(&self, thread: u32) -> Place {
        Place::Thread { process: Label::Number(self.process), thread: Label::Number(thread.into()) }
    }

    fn push(
        &mut self,
        kind: EventKind,
        name: NameId,
        place: Place,
        start: u64,
        end: u64,
        correlation: Option<u32>,
    ) {
        let (start, end) = (i64::try_from(start).unwrap_or(0), i64::try_from(end).unwrap_or(0));
        self.trace.events.push(Row {
            kind,
            name,
            track: self.trace.tracks.intern(place),
            start: Timestamp::from_nanos(start),
            duration: Nanos::new((end - start).max(0)),
            correlation: correlation.map(u64::from),
            external: None,
        });
        self.trace.stats.events += 1;
    }

    fn finish(mut self) -> Trace {
        self.lay_waits();
        let origin = &mut self.trace.origin;
        origin.format = SourceFormat::BusboundCapture;
        origin.trace_name = self.facts.get(b"command".as_slice()).cloned();
        if let Some(cupti) = self.facts.get(b"cupti".as_slice()) {
            origin.versions.insert("cupti".to_owned(), cupti.clone());
        }
        let number = |key: &[u8]| self.facts.get(key).and_then(|text| text.parse().ok());
        let (rank, world_size) = (number(b"RANK"), number(b"WORLD_SIZE"));
        if rank.is_some() || world_size.is_some() {
            origin.distributed = Some(Distributed { rank, world_size, backend: None });
        }
        self.trace
    }

    /// Waits name an event; what was waited for is its last record before them.
    fn lay_waits(&mut self) {
        self.event_records.sort_unstable();
        let device = self.trace.origin.gpus.first().map_or(0, |gpu| gpu.id);
        for wait in std::mem::take(&mut self.waits) {
            let what = match wait.kind {
                EVENT_SYNC => "Event Sync",
                STREAM_WAIT_EVENT => "Stream Wait Event",
                3 => "Stream Sync",
                4 => "Context Sync",
                _ => "Sync",
            };
            let names_event = matches!(wait.kind, EVENT_SYNC | STREAM_WAIT_EVENT);
            let after =
                self.event_records.partition_point(|record| *record < (wait.event, wait.correlation, 0));
            let record = after.checked_sub(1).map(|last| self.event_records[last]);
            let record = record.filter(|(event, ..)| names_event && *event == wait.event);
            let name = self.trace.names.intern(what);
            let place = Place::Stream { device, stream: wait.stream };
            self.push(EventKind::Synchronisation, name, place, wait.start, wait.end, Some(wait.correlation));
            self.trace.events.set_sync(Synchronisation {
                what: name,
                waits_on_stream: record.map(|(_, _, stream)| stream.into()),
                waits_on_record: record.map(|(_, correlation, _)| correlation.into()),
                waits_on_event: names_event.then_some(wait.event.into()),
            });
        }
    }
}

fn of_stream(on: Stream) -> Place {
    Place::Stream { device: i32::try_from(on.device).unwrap_or(0), stream: on.stream.into() }
}

/// CUPTI's kinds of copies, with the words that profilers write for them.
fn direction(kind: u8) -> (Direction, &'static str) {
    match kind {
        1 => (Direction::HostToDevice, "HtoD"),
        2 => (Direction::DeviceToHost, "DtoH"),
        3 => (Direction::HostToDevice, "HtoA"),
        4 => (Direction::DeviceToHost, "AtoH"),
        5 => (Direction::DeviceToDevice, "AtoA"),
        6 => (Direction::DeviceToDevice, "AtoD"),
        7 => (Direction::DeviceToDevice, "DtoA"),
        8 => (Direction::DeviceToDevice, "DtoD"),
        9 => (Direction::HostToHost, "HtoH"),
        10 => (Direction::PeerToPeer, "PtoP"),
        _ => (Direction::Unknown, "Unknown"),
    }
}

fn memory(kind: u8) -> MemoryKind {
    match kind {
        1 => MemoryKind::Pageable,
        2 => MemoryKind::Pinned,
        3 | 4 | 6 => MemoryKind::Device,
        5 | 7 => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

fn memory_word(kind: u8) -> &'static str {
    match kind {
        1 => "Pageable",
        2 => "Pinned",
        3 => "Device",
        4 => "Array",
        5 => "Managed",
        6 => "Device Static",
        7 => "Managed Static",
        _ => "Unknown",
    }
}
