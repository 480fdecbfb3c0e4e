//! From what CUPTI and NVML report to the records of one chunk.

#![expect(unsafe_code, reason = "names of CUPTI's records are addresses in this process")]

use std::collections::HashMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::cupti::Cupti;
use super::definitions::{Definitions, Described};
use super::layout::{Activity, Raw};
use super::library::text_at;
use super::nvml::{Counter, Gpu, Nvml};
use super::{environment, files, numa, pinned, placement, triggers, waits};
use crate::format::{
    CLOCK_LIMIT_OF_GPU, CONFIDENTIAL, ChunkWriter, NODE_OF_GPU, NODES_REFUSED, PINNED, PINNED_INCOMPLETE,
    POWER_LIMIT_OF_GPU, Record, SHARED_GPU, VERSION,
};

const MARKER_INSTANT: u32 = 1;
const MARKER_START: u32 = 2;
const MARKER_END: u32 = 4;

/// Kernels named in a dump because they had not finished.
const MOST_UNFINISHED: usize = 8;
/// Threads whose steps are timed.
const MOST_STEPPING: usize = 64;

/// What arrived since it was last taken.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) kernels: u64,
    pub(super) has_device_work: bool,
    /// The times from the start of one step to the start of the next.
    pub(super) steps: Vec<u64>,
}

pub(super) struct Collector {
    pub(super) cupti: Cupti,
    /// Where CUPTI was found, until it is written.
    place: Option<String>,
    counts_bytes: bool,
    pub(super) definitions: Definitions,
    pub(super) chunk: ChunkWriter,
    nvml: Option<Nvml>,
    gpus: Vec<Gpu>,
    arrived: Arrived,
    /// When the last step of each thread began.
    step_began: HashMap<u32, u64>,
    unfinished: Vec<String>,
    wanted_calls: HashMap<(bool, u32), bool>,
    /// Whether it is written that the kernel does not say where memory is.
    has_refusal: bool,
    /// Whether sizes of pinned memory are written that are all there are.
    has_pinned: bool,
}

impl Collector {
    /// Calls neither CUPTI nor NVML: until recording starts, the process is left alone.
    pub(super) fn new(cupti: Cupti, place: &str, counts_bytes: bool) -> Self {
        let mut definitions = Definitions::default();
        let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
        definitions.fact(b"process", std::process::id().to_string().as_bytes());
        definitions.fact(b"command", &words.join(&b' '));
        for key in ["RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"] {
            if let Some(value) = std::env::var_os(key) {
                definitions.fact(key.as_bytes(), value.as_encoded_bytes());
            }
        }
        for (key, value) in environment::facts() {
            definitions.fact(&key, &value);
        }
        Self {
            cupti,
            place: Some(place.to_owned()),
            counts_bytes,
            definitions,
            chunk: ChunkWriter::default(),
            nvml: None,
            gpus: Vec::new(),
            arrived: Arrived::default(),
            step_began: HashMap::new(),
            unfinished: Vec::new(),
            wanted_calls: HashMap::new(),
            has_refusal: false,
            has_pinned: false,
        }
    }

    /// What is known once CUPTI is subscribed.
    pub(super) fn prepare(&mut self) {
        if let Some(place) = self.place.take() {
            self.definitions.fact(b"cupti", format!("{} {place}", self.cupti.version()).as_bytes());
            self.nvml = if self.counts_bytes { Nvml::load() } else { None };
            if self.nvml.is_some_and(|nvml| nvml.is_confidential()) {
                self.definitions.fact(CONFIDENTIAL, b"on");
            }
            if let Some(driver) = self.nvml.and_then(|nvml| nvml.driver()) {
                self.definitions.fact(&[VERSION, b"driver"].concat(), driver.as_bytes());
            }
        }
    }

    /// The same moment on both clocks: a file needs one.
    pub(super) fn clock(&mut self) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        self.chunk.add(&Record::Clock { at: self.cupti.now(), unix_ns });
    }

    pub(super) fn take_arrived(&mut self) -> Arrived {
        std::mem::take(&mut self.arrived)
    }

    /// Kernels that had been delivered without an end, by name.
    pub(super) fn take_unfinished(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unfinished)
    }

    pub(super) fn waits(&mut self) {
        for record in waits::take() {
            self.chunk.add(&record);
        }
        self.pinned();
        if !self.has_refusal
            && let Some(why) = placement::refusal()
        {
            self.has_refusal = true;
            self.definitions.fact(NODES_REFUSED, why.as_bytes());
        }
    }

    /// Sizes of pinned memory, once if they were not all seen.
    fn pinned(&mut self) {
        for (size, count) in pinned::news() {
            let key = [PINNED, size.to_string().as_bytes()].concat();
            self.definitions.fact(&key, count.to_string().as_bytes());
            self.has_pinned = true;
        }
        if self.has_pinned && !pinned::is_complete() {
            self.has_pinned = false;
            self.definitions.fact(PINNED_INCOMPLETE, b"yes");
        }
    }

    /// Reads the counters of the links, which wrap: see [`Nvml::crossed`].
    pub(super) fn count(&mut self) {
        let Some(nvml) = self.nvml else { return };
        for gpu in &mut self.gpus {
            for counter in Counter::BOTH {
                let Some(bytes) = nvml.crossed(gpu, counter) else { continue };
                let (at, to_host) = (self.cupti.now(), matches!(counter, Counter::ToHost));
                self.chunk.add(&Record::LinkReading { at, gpu: gpu.id, to_host, bytes });
            }
        }
    }

    /// What the process has read from files until now.
    pub(super) fn files(&mut self) {
        if self.counts_bytes
            && let Some(counts) = files::counts()
        {
            self.chunk.add(&Record::FileReads { at: self.cupti.now(), counts });
        }
    }

    /// Records each link whose state has changed; with `all`, each link.
    pub(super) fn links(&mut self, all: bool) {
        let Some(nvml) = self.nvml else { return };
        for gpu in &mut self.gpus {
            let link = nvml.link(gpu).filter(|link| all || gpu.link != Some(*link));
            if let Some(link @ [generation, lanes, max_generation, max_lanes]) = link {
                gpu.link = Some(link);
                self.chunk.add(&Record::Link { gpu: gpu.id, generation, lanes, max_generation, max_lanes });
            }
            if !gpu.is_shared && nvml.is_shared(gpu) {
                gpu.is_shared = true;
                self.chunk.add(&shared(&gpu.id.to_string()));
            }
        }
    }

    /// The links as they were last seen, for a file that begins now.
    pub(super) fn state_of_links(&self, chunk: &mut ChunkWriter) {
        for gpu in &self.gpus {
            if let Some([generation, lanes, max_generation, max_lanes]) = gpu.link {
                chunk.add(&Record::Link { gpu: gpu.id, generation, lanes, max_generation, max_lanes });
            }
            if gpu.is_shared {
                chunk.add(&shared(&gpu.id.to_string()));
            }
        }
    }

    pub(super) fn lost(&mut self) {
        let count = self.cupti.dropped() + waits::take_lost();
        if count > 0 {
            let at = self.cupti.now();
            self.chunk.add(&Record::Dropped { at, count });
        }
    }

    /// Text of the record being read.
    fn name_at(&mut self, address: usize) -> u32 {
        // SAFETY: CUPTI keeps the names in its records as long as the process runs.
        self.definitions.name(unsafe { text_at(address) })
    }

    /// Reads a record of a buffer.
    pub(super) fn add(&mut self, raw: Raw<'_>) {
        let Some(record) = raw.activity().and_then(|activity| self.record(activity)) else { return };
        let is_kernel = matches!(record, Record::Kernel { .. });
        self.arrived.kernels += u64::from(is_kernel);
        self.arrived.has_device_work |= is_kernel
            || matches!(record, Record::Copy { .. } | Record::PeerCopy { .. } | Record::Memset { .. });
        self.chunk.add(&record);
    }

    fn record(&mut self, activity: Activity) -> Option<Record<'static>> {
        Some(match activity {
            Activity::Ready(record) => record,
            Activity::Kernel { end: 0, name, .. } => {
                self.add_unfinished(name);
                return None;
            }
            Activity::Kernel { start, end, on, correlation, name, launch } => {
                Record::Kernel { start, end, on, correlation, name: self.name_at(name), launch }
            }
            Activity::Call { callback, is_driver, .. } if !self.is_wanted((is_driver, callback)) => {
                return None;
            }
            Activity::Call { start, end, thread, correlation, callback, is_driver, result } => {
                self.definitions.thread(thread);
                let cupti = self.cupti;
                let name =
                    self.definitions.call((is_driver, callback), || cupti.call_name(is_driver, callback));
                Record::Call { start, end, thread, correlation, name, is_driver, result }
            }
            Activity::Marker { at, id, flags, thread, name } if flags & MARKER_START != 0 => {
                self.definitions.thread(thread);
                self.add_step(at, thread, name);
                Record::RangeStart { at, id, thread, name: self.name_at(name) }
            }
            Activity::Marker { at, id, flags, .. } if flags & MARKER_END != 0 => Record::RangeEnd { at, id },
            Activity::Marker { at, thread, flags, name, .. } if flags & MARKER_INSTANT != 0 => {
                Record::Mark { at, thread, name: self.name_at(name) }
            }
            Activity::Marker { .. } => return None,
            Activity::Device { id, name, memory, multiprocessors, capability, uuid } => {
                // SAFETY: as in `name_at`.
                let name = unsafe { text_at(name) }.to_vec();
                self.gpu(Described { id, name, memory, multiprocessors, capability }, uuid);
                return None;
            }
        })
    }

    /// Where calls cannot be selected one by one, CUPTI records all of them.
    fn is_wanted(&mut self, call: (bool, u32)) -> bool {
        let cupti = self.cupti;
        *self.wanted_calls.entry(call).or_insert_with(|| cupti.is_wanted(call.0, call.1))
    }

    pub(super) fn gpu(&mut self, gpu: Described, uuid: [u8; 16]) {
        let id = gpu.id;
        self.definitions.gpu(gpu);
        if let Some(nvml) = self.nvml
            && !self.gpus.iter().any(|gpu| gpu.id == id)
            && let Some(gpu) = nvml.gpu(id, uuid)
        {
            let root = Path::new("/");
            let address = nvml.address(&gpu).filter(|_| numa::has_several(root));
            for (key, value) in [
                (NODE_OF_GPU, address.and_then(|address| numa::node_of_gpu(root, &address))),
                (CLOCK_LIMIT_OF_GPU, nvml.max_clock(&gpu)),
                (POWER_LIMIT_OF_GPU, nvml.power_limit(&gpu)),
            ] {
                let Some(value) = value else { continue };
                let key = [key, id.to_string().as_bytes()].concat();
                self.definitions.fact(&key, value.to_string().as_bytes());
            }
            self.gpus.push(gpu);
            self.links(false);
        }
    }

    fn add_unfinished(&mut self, name: usize) {
        // SAFETY: as in `name_at`.
        let name = String::from_utf8_lossy(unsafe { text_at(name) }).into_owned();
        if self.unfinished.len() < MOST_UNFINISHED && !self.unfinished.contains(&name) {
            self.unfinished.push(name);
        }
    }

    fn add_step(&mut self, at: u64, thread: u32, name: usize) {
        // SAFETY: as in `name_at`.
        if !triggers::is_step(unsafe { text_at(name) }) {
            return;
        }
        if self.step_began.len() >= MOST_STEPPING {
            self.step_began.clear();
        }
        if let Some(before) = self.step_began.insert(thread, at) {
            self.arrived.steps.push(at.saturating_sub(before));
        }
    }
}

/// Says that other processes use a GPU.
fn shared(gpu: &str) -> Record<'_> {
    Record::Fact { key: SHARED_GPU, value: gpu.as_bytes() }
}
