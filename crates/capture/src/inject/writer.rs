//! The writer thread: takes filled buffers, converts their records, and appends chunks to the file.

#![expect(unsafe_code, reason = "names of CUPTI's records are addresses in this process")]

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::cupti::Cupti;
use super::layout::{Activity, Raw};
use super::library::text_at;
use super::nvml::{Counter, Gpu, Nvml};
use super::waits;
use crate::format::{ChunkWriter, MAGIC, Record};

/// Messages to the thread.
pub(super) enum Message {
    /// A buffer that CUPTI has filled, with its valid length.
    Buffer(Box<[u64]>, usize),
    /// The process ends: write what is left, and signal when done.
    End(std::sync::mpsc::Sender<()>),
}

/// Complete data is written at least this often.
const FLUSHED_EVERY: Duration = Duration::from_millis(400);
/// How often the link's counters are read. They wrap, see [`Nvml::crossed`]; and kernels that read host memory leave no other
/// trace of it, so a reading must not span many of them. Much more often would hurt: a reading takes 0.3 to 0.5 ms, and a kernel
/// that reads host memory meanwhile takes half as long again (docs/results/zero_copy.md).
const COUNTED_EVERY: Duration = Duration::from_millis(8);
/// Links change their speed with the load.
const LINK_ASKED_EVERY: Duration = Duration::from_secs(1);
/// A chunk is written when it reaches this size. Damage loses a whole chunk, about a thousand events of this size.
const CHUNK: usize = 32 << 10;

const MARKER_INSTANT: u32 = 1;
const MARKER_START: u32 = 2;
const MARKER_END: u32 = 4;

/// When recording starts and ends, relative to the start of the process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) delay: Duration,
    pub(super) duration: Option<Duration>,
}

pub(super) struct Writer {
    cupti: Cupti,
    /// `None` after a write error.
    file: Option<File>,
    written: u64,
    chunk: ChunkWriter,
    names: HashMap<Vec<u8>, u32>,
    calls: HashMap<(bool, u32), u32>,
    threads: HashSet<u32>,
    nvml: Option<Nvml>,
    gpus: Vec<Gpu>,
}

impl Writer {
    /// Starts the file: what is recorded.
    pub(super) fn new(cupti: Cupti, mut file: File, place: &str) -> std::io::Result<Self> {
        file.write_all(MAGIC)?;
        let mut writer = Self {
            cupti,
            file: Some(file),
            written: MAGIC.len() as u64,
            chunk: ChunkWriter::default(),
            names: HashMap::new(),
            calls: HashMap::new(),
            threads: HashSet::new(),
            nvml: Nvml::load(),
            gpus: Vec::new(),
        };
        let command = fs::read("/proc/self/cmdline").unwrap_or_default();
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
        writer.fact("process", std::process::id().to_string().as_bytes());
        writer.fact("command", &words.join(&b' '));
        writer.fact("cupti", format!("{} {place}", cupti.version()).as_bytes());
        for key in ["RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"] {
            if let Some(value) = std::env::var_os(key) {
                writer.fact(key, value.as_encoded_bytes());
            }
        }
        writer.clock();
        writer.write();
        Ok(writer)
    }

    fn fact(&mut self, key: &str, value: &[u8]) {
        self.chunk.add(&Record::Fact { key: key.as_bytes(), value });
    }

    pub(super) fn note(&mut self, text: &str) {
        self.chunk.add(&Record::Note { text: text.as_bytes() });
    }

    fn clock(&mut self) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        self.chunk.add(&Record::Clock { at: self.cupti.now(), unix_ns });
    }

    /// Runs until the process ends.
    pub(super) fn run(mut self, messages: &Receiver<Message>, window: Window, has_begun: bool) {
        let begun = Instant::now();
        let mut recording = has_begun;
        let mut is_over = false;
        let (mut flushed, mut counted, mut link_asked) = (begun, begun, begun);
        loop {
            match messages.recv_timeout(COUNTED_EVERY) {
                Ok(Message::Buffer(buffer, valid)) => self.buffer(buffer, valid),
                Ok(Message::End(done)) => {
                    while let Ok(Message::Buffer(buffer, valid)) = messages.try_recv() {
                        self.buffer(buffer, valid);
                    }
                    self.waits();
                    self.count();
                    self.lost();
                    self.chunk.add(&Record::End);
                    self.write();
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.waits();
            if !recording && !is_over && begun.elapsed() >= window.delay {
                for kind in self.cupti.begin(waits::calls(&self.cupti)) {
                    self.note(&format!("CUPTI does not record activity kind {kind} here"));
                }
                recording = true;
            }
            if recording && window.duration.is_some_and(|duration| begun.elapsed() >= window.delay + duration)
            {
                self.cupti.end(waits::calls(&self.cupti));
                self.cupti.flush(true);
                (recording, is_over) = (false, true);
            }
            if recording && counted.elapsed() >= COUNTED_EVERY {
                counted = Instant::now();
                self.count();
            }
            if link_asked.elapsed() >= LINK_ASKED_EVERY {
                link_asked = Instant::now();
                self.links();
            }
            if flushed.elapsed() >= FLUSHED_EVERY {
                flushed = Instant::now();
                // Buffers arrive through the callback, in this thread's own channel.
                self.cupti.flush(false);
                self.lost();
                self.write();
            }
        }
    }

    fn waits(&mut self) {
        for record in waits::take() {
            self.chunk.add(&record);
        }
    }

    fn count(&mut self) {
        let Some(nvml) = self.nvml else { return };
        for gpu in &mut self.gpus {
            for counter in Counter::BOTH {
                let Some(bytes) = nvml.crossed(gpu, counter) else { continue };
                let (at, to_host) = (self.cupti.now(), matches!(counter, Counter::ToHost));
                self.chunk.add(&Record::LinkReading { at, gpu: gpu.id, to_host, bytes });
            }
        }
    }

    /// Records each link whose state has changed.
    fn links(&mut self) {
        let Some(nvml) = self.nvml else { return };
        for gpu in &mut self.gpus {
            let link = nvml.link(gpu).filter(|link| gpu.link != Some(*link));
            if let Some(link @ [generation, lanes, max_generation, max_lanes]) = link {
                gpu.link = Some(link);
                self.chunk.add(&Record::Link { gpu: gpu.id, generation, lanes, max_generation, max_lanes });
            }
        }
    }

    fn lost(&mut self) {
        let count = self.cupti.dropped();
        if count > 0 {
            let at = self.cupti.now();
            self.chunk.add(&Record::Dropped { at, count });
        }
    }

    /// A chunk is written in one call: completely, or not at all.
    fn write(&mut self) {
        let (Some(chunk), Some(file)) = (self.chunk.take(), &mut self.file) else { return };
        if file.write_all(&chunk).is_ok() {
            self.written += chunk.len() as u64;
        } else {
            // A full disk ends the recording but not the program; a partial chunk is useless.
            let _ = file.set_len(self.written);
            self.file = None;
        }
    }

    fn name(&mut self, text: &[u8]) -> u32 {
        if let Some(&id) = self.names.get(text) {
            return id;
        }
        let id = u32::try_from(self.names.len() + 1).unwrap_or(u32::MAX);
        self.chunk.add(&Record::Name { id, text });
        self.names.insert(text.to_vec(), id);
        id
    }

    /// Text of the record being read.
    fn name_at(&mut self, address: usize) -> u32 {
        // SAFETY: CUPTI keeps the names in its records as long as the process runs.
        let text = unsafe { text_at(address) }.to_vec();
        self.name(&text)
    }

    fn call_name(&mut self, is_driver: bool, callback: u32) -> u32 {
        if let Some(&id) = self.calls.get(&(is_driver, callback)) {
            return id;
        }
        let text = self.cupti.call_name(is_driver, callback);
        let id = self.name(&text);
        self.calls.insert((is_driver, callback), id);
        id
    }

    fn thread(&mut self, id: u32) {
        if self.threads.insert(id)
            && let Ok(text) = fs::read(format!("/proc/self/task/{id}/comm"))
        {
            let name = self.name(text.trim_ascii_end());
            self.chunk.add(&Record::Thread { id, name });
        }
    }

    fn buffer(&mut self, mut buffer: Box<[u64]>, valid: usize) {
        // SAFETY: any u64 is eight bytes, and the slice covers the same memory.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<u8>(), valid.min(buffer.len() * 8))
        };
        for at in self.cupti.records(bytes) {
            if let Some(activity) = (Raw { bytes: &bytes[at..] }).activity() {
                self.activity(activity);
            }
            if self.chunk.len() >= CHUNK {
                self.write();
            }
        }
        super::keep(buffer);
    }

    fn activity(&mut self, activity: Activity) {
        let record = match activity {
            Activity::Ready(record) => record,
            Activity::Kernel { start, end, on, correlation, name, launch } => {
                Record::Kernel { start, end, on, correlation, name: self.name_at(name), launch }
            }
            Activity::Call { start, end, thread, correlation, callback, is_driver, result } => {
                self.thread(thread);
                let name = self.call_name(is_driver, callback);
                Record::Call { start, end, thread, correlation, name, is_driver, result }
            }
            Activity::Marker { at, id, flags, thread, name } if flags & MARKER_START != 0 => {
                self.thread(thread);
                Record::RangeStart { at, id, thread, name: self.name_at(name) }
            }
            Activity::Marker { at, id, flags, .. } if flags & MARKER_END != 0 => Record::RangeEnd { at, id },
            Activity::Marker { at, thread, flags, name, .. } if flags & MARKER_INSTANT != 0 => {
                Record::Mark { at, thread, name: self.name_at(name) }
            }
            Activity::Marker { .. } => return,
            Activity::Device { id, name, memory, multiprocessors, capability, uuid } => {
                let name = self.name_at(name);
                if let Some(nvml) = self.nvml
                    && !self.gpus.iter().any(|gpu| gpu.id == id)
                    && let Some(gpu) = nvml.gpu(id, uuid)
                {
                    self.gpus.push(gpu);
                    self.links();
                }
                Record::Gpu { id, name, memory, multiprocessors, capability }
            }
        };
        self.chunk.add(&record);
    }
}
