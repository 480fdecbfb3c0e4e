//! What does one record say, and how is it written?
//!
//! Long because every kind of record is in the type, in how it is written and in how it is read.

use super::number::{Bytes, put, put_signed, put_text};

/// One fact of a recording. Times are nanoseconds of CUPTI's clock; names are ids defined by [`Record::Name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    Name {
        id: u32,
        text: &'a [u8],
    },
    /// What is recorded: `key` is one of a few words, `value` its text.
    Fact {
        key: &'a [u8],
        value: &'a [u8],
    },
    /// The same moment on CUPTI's clock and in calendar time.
    Clock {
        at: u64,
        unix_ns: u64,
    },
    Gpu {
        id: u32,
        name: u32,
        memory: u64,
        multiprocessors: u32,
        capability: (u32, u32),
    },
    /// PCIe link of a GPU: generation and lanes, current and max.
    Link {
        gpu: u32,
        generation: u32,
        lanes: u32,
        max_generation: u32,
        max_lanes: u32,
    },
    Thread {
        id: u32,
        name: u32,
    },
    Kernel {
        start: u64,
        end: u64,
        on: Stream,
        correlation: u32,
        name: u32,
        launch: Launch,
    },
    Copy {
        start: u64,
        end: u64,
        on: Stream,
        correlation: u32,
        bytes: u64,
        kind: u8,
        from: u8,
        to: u8,
        flags: u8,
    },
    /// Between two devices.
    PeerCopy {
        start: u64,
        end: u64,
        on: Stream,
        correlation: u32,
        bytes: u64,
        from_device: u32,
        to_device: u32,
    },
    Memset {
        start: u64,
        end: u64,
        on: Stream,
        correlation: u32,
        bytes: u64,
        memory: u8,
    },
    Call {
        start: u64,
        end: u64,
        thread: u32,
        correlation: u32,
        name: u32,
        is_driver: bool,
        result: u32,
    },
    Sync {
        start: u64,
        end: u64,
        correlation: u32,
        stream: i64,
        kind: u32,
        event: u32,
    },
    EventRecord {
        correlation: u32,
        stream: u32,
        event: u32,
    },
    RangeStart {
        at: u64,
        id: u32,
        thread: u32,
        name: u32,
    },
    RangeEnd {
        at: u64,
        id: u32,
    },
    /// A mark without duration.
    Mark {
        at: u64,
        thread: u32,
        name: u32,
    },
    Overhead {
        start: u64,
        end: u64,
        kind: u32,
        thread: u32,
    },
    /// Records that CUPTI dropped because its buffers were full.
    Dropped {
        at: u64,
        count: u64,
    },
    /// Bytes that crossed the link in one direction since the previous record of this direction, from the driver's counters.
    LinkReading {
        at: u64,
        gpu: u32,
        to_host: bool,
        bytes: u64,
    },
    /// The same for both directions, as older versions wrote it.
    LinkBytes {
        at: u64,
        gpu: u32,
        to_device: u64,
        to_host: u64,
    },
    /// What the process has read from files since it started, and the CPU time and page faults of all of its threads.
    FileReads {
        at: u64,
        counts: FileCounts,
    },
    /// Kernels and the calls that launch them were not recorded in this time.
    KernelsOff {
        start: u64,
        end: u64,
    },
    /// The NUMA node of the host memory that the copy with this correlation reads or writes, or [`SEVERAL_NODES`].
    HostNode {
        correlation: u32,
        node: u32,
    },
    /// The memory that the copy or memset with this correlation reads and writes, by its first addresses; its size is that of
    /// the copy. `from` is 0 for a memset. `stream` is one of [`streams`].
    Access {
        correlation: u32,
        stream: u8,
        to: u64,
        from: u64,
    },
    /// A stream waits for something else than an event from here on: a value in memory, a semaphore, a function of the host.
    OtherWait {
        correlation: u32,
        stream: u32,
    },
    Note {
        text: &'a [u8],
    },
    /// The recording ended normally.
    End,
}

/// Which streams wait for each other by themselves? The number of each kind in [`Record::Access`].
pub mod streams {
    /// Created before the recording began.
    pub const UNKNOWN: u8 = 0;
    /// The legacy default stream: waits for all blocking streams, and they for it.
    pub const LEGACY: u8 = 1;
    pub const BLOCKING: u8 = 2;
    pub const NON_BLOCKING: u8 = 3;
}

/// In [`Record::EventRecord`] and [`Record::OtherWait`]: CUPTI does not say which stream it was.
pub const UNKNOWN_STREAM: u32 = u32::MAX;

/// The key of a fact: a GPU that other processes use too.
pub const SHARED_GPU: &[u8] = b"shared gpu";
/// The key of a fact about a variable of the environment begins with this; its name follows.
pub const VARIABLE: &[u8] = b"variable ";
/// The key of a fact about the version of a package begins with this; its name follows: `torch`.
pub const VERSION: &[u8] = b"version ";
/// The key of the fact that says how many CPUs the process may run on.
pub const CPUS: &[u8] = b"cpus";
/// The key of the fact that says how many bytes of host memory the process may use.
pub const HOST_MEMORY: &[u8] = b"host memory";
/// The key of the fact that lists the NUMA nodes of the machine: `0,1`. If only one of them has CPUs, only that one.
pub const NODES: &[u8] = b"numa nodes";
/// The key of a fact about a node begins with this; the node follows. Its distances to all nodes, in the order of [`NODES`].
pub const DISTANCES_OF_NODE: &[u8] = b"numa distances of ";
/// The key of the fact that lists the nodes of the CPUs that the process may run on.
pub const CPU_NODES: &[u8] = b"numa nodes of cpus";
/// The key of a fact about a GPU begins with this; the GPU follows. The node that it is attached to.
pub const NODE_OF_GPU: &[u8] = b"numa node of gpu ";
/// The key of a fact about a GPU begins with this; the GPU follows. The highest clock of its multiprocessors in MHz.
pub const CLOCK_LIMIT_OF_GPU: &[u8] = b"clock limit of gpu ";
/// The key of a fact about a GPU begins with this; the GPU follows. The power in milliwatts that the driver keeps it below.
pub const POWER_LIMIT_OF_GPU: &[u8] = b"power limit of gpu ";
/// The key of the fact that says why the nodes of host memory are unknown.
pub const NODES_REFUSED: &[u8] = b"numa nodes of memory refused";
/// The key of the fact that says that the system is in confidential computing.
pub const CONFIDENTIAL: &[u8] = b"confidential computing";
/// The key of a fact about pinned or managed memory begins with this; the size of allocations in bytes follows. How many there were: the
/// last one counts.
pub const PINNED: &[u8] = b"pinned ";
/// The key of the fact that says that there may have been other allocations.
pub const PINNED_INCOMPLETE: &[u8] = b"pinned memory not seen";
/// Instead of a node: pages of the same buffer are on different nodes.
pub const SEVERAL_NODES: u32 = u32::MAX;

/// What the kernel counts for a process, from its start on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileCounts {
    /// Bytes that calls like `read` returned, from disk or from the page cache. Not those of mapped files.
    pub read: u64,
    /// Bytes that came from a disk, also for mapped files.
    pub disk: u64,
    /// Page faults that waited for a disk, and those that did not.
    pub major_faults: u64,
    pub minor_faults: u64,
    /// CPU time in nanoseconds: of the program, and of the kernel on its behalf.
    pub user: u64,
    pub system: u64,
}

impl FileCounts {
    fn all(self) -> [u64; 6] {
        [self.read, self.disk, self.major_faults, self.minor_faults, self.user, self.system]
    }
}

/// Where device work ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub device: u32,
    pub stream: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u32,
    pub shared_memory: u32,
}

impl Record<'_> {
    /// The time that records of a chunk are encoded relative to.
    fn moment(&self) -> Option<u64> {
        match *self {
            Self::Kernel { start, .. }
            | Self::Copy { start, .. }
            | Self::PeerCopy { start, .. }
            | Self::Memset { start, .. }
            | Self::Call { start, .. }
            | Self::Sync { start, .. }
            | Self::Overhead { start, .. }
            | Self::KernelsOff { start, .. } => Some(start),
            Self::Clock { at, .. }
            | Self::RangeStart { at, .. }
            | Self::RangeEnd { at, .. }
            | Self::Mark { at, .. }
            | Self::Dropped { at, .. }
            | Self::LinkReading { at, .. }
            | Self::FileReads { at, .. }
            | Self::LinkBytes { at, .. } => Some(at),
            _ => None,
        }
    }

    /// Appends the record; `before` is the time of the previous record in the chunk.
    pub(super) fn write(&self, out: &mut Vec<u8>, before: &mut u64) {
        out.push(self.tag());
        if let Some(at) = self.moment() {
            put_signed(out, at.wrapping_sub(*before) as i64);
            *before = at;
        }
        let mut all = |values: &[u64]| values.iter().for_each(|value| put(out, *value));
        let length = |start: u64, end: u64| end.saturating_sub(start);
        match *self {
            Self::Name { id, text } => {
                all(&[id.into()]);
                put_text(out, text);
            }
            Self::Fact { key, value } => {
                put_text(out, key);
                put_text(out, value);
            }
            Self::Clock { unix_ns, .. } => all(&[unix_ns]),
            Self::Gpu { id, name, memory, multiprocessors, capability } => all(&[
                id.into(),
                name.into(),
                memory,
                multiprocessors.into(),
                capability.0.into(),
                capability.1.into(),
            ]),
            Self::Link { gpu, generation, lanes, max_generation, max_lanes } => {
                all(&[gpu, generation, lanes, max_generation, max_lanes].map(u64::from));
            }
            Self::Thread { id, name } => all(&[id.into(), name.into()]),
            Self::Kernel { .. } | Self::Copy { .. } | Self::PeerCopy { .. } | Self::Memset { .. } => {
                self.write_work(out);
            }
            Self::Call { start, end, thread, correlation, name, is_driver, result } => all(&[
                length(start, end),
                thread.into(),
                correlation.into(),
                name.into(),
                is_driver.into(),
                result.into(),
            ]),
            Self::Sync { start, end, correlation, stream, kind, event } => {
                all(&[length(start, end), correlation.into(), kind.into(), event.into()]);
                put_signed(out, stream);
            }
            Self::EventRecord { correlation, stream, event } => {
                all(&[correlation, stream, event].map(u64::from));
            }
            Self::RangeStart { id, thread, name, .. } => all(&[id, thread, name].map(u64::from)),
            Self::RangeEnd { id, .. } => all(&[id.into()]),
            Self::Mark { thread, name, .. } => all(&[thread, name].map(u64::from)),
            Self::Overhead { start, end, kind, thread } => {
                all(&[length(start, end), kind.into(), thread.into()]);
            }
            Self::Dropped { count, .. } => all(&[count]),
            Self::LinkBytes { gpu, to_device, to_host, .. } => all(&[gpu.into(), to_device, to_host]),
            Self::LinkReading { gpu, to_host, bytes, .. } => all(&[gpu.into(), to_host.into(), bytes]),
            Self::FileReads { counts, .. } => all(&counts.all()),
            Self::KernelsOff { start, end } => all(&[length(start, end)]),
            Self::HostNode { correlation, node } => all(&[correlation, node].map(u64::from)),
            Self::Access { correlation, stream, to, from } => {
                all(&[correlation.into(), stream.into(), to, from]);
            }
            Self::OtherWait { correlation, stream } => all(&[correlation, stream].map(u64::from)),
            Self::Note { text } => put_text(out, text),
            Self::End => {}
        }
    }

    /// Appends what a record of device work says, after its start.
    fn write_work(&self, out: &mut Vec<u8>) {
        let mut all = |values: &[u64]| values.iter().for_each(|value| put(out, *value));
        let length = |start: u64, end: u64| end.saturating_sub(start);
        match *self {
            Self::Kernel { start, end, on, correlation, name, launch } => {
                let Launch { grid, block, registers, shared_memory } = launch;
                all(&[
                    length(start, end),
                    on.device.into(),
                    on.stream.into(),
                    correlation.into(),
                    name.into(),
                ]);
                [grid, block].into_iter().for_each(|three| all(&three.map(u64::from)));
                all(&[registers.into(), shared_memory.into()]);
            }
            Self::Copy { start, end, on, correlation, bytes, kind, from, to, flags } => all(&[
                length(start, end),
                on.device.into(),
                on.stream.into(),
                correlation.into(),
                bytes,
                kind.into(),
                from.into(),
                to.into(),
                flags.into(),
            ]),
            Self::PeerCopy { start, end, on, correlation, bytes, from_device, to_device } => all(&[
                length(start, end),
                on.device.into(),
                on.stream.into(),
                correlation.into(),
                bytes,
                from_device.into(),
                to_device.into(),
            ]),
            Self::Memset { start, end, on, correlation, bytes, memory } => all(&[
                length(start, end),
                on.device.into(),
                on.stream.into(),
                correlation.into(),
                bytes,
                memory.into(),
            ]),
            _ => {}
        }
    }

    fn tag(&self) -> u8 {
        match self {
            Self::Name { .. } => 1,
            Self::Fact { .. } => 2,
            Self::Clock { .. } => 3,
            Self::Gpu { .. } => 4,
            Self::Link { .. } => 5,
            Self::Thread { .. } => 6,
            Self::Kernel { .. } => 7,
            Self::Copy { .. } => 8,
            Self::PeerCopy { .. } => 9,
            Self::Memset { .. } => 10,
            Self::Call { .. } => 11,
            Self::Sync { .. } => 12,
            Self::EventRecord { .. } => 13,
            Self::RangeStart { .. } => 14,
            Self::RangeEnd { .. } => 15,
            Self::Mark { .. } => 16,
            Self::Overhead { .. } => 17,
            Self::Dropped { .. } => 18,
            Self::LinkBytes { .. } => 19,
            Self::Note { .. } => 20,
            Self::End => 21,
            Self::LinkReading { .. } => 22,
            Self::KernelsOff { .. } => 23,
            Self::HostNode { .. } => 24,
            Self::Access { .. } => 25,
            Self::OtherWait { .. } => 26,
            Self::FileReads { .. } => 27,
        }
    }
}

/// The records of one payload, in order. Ends early at the first invalid one, which a matching checksum rules out
/// unless a newer version wrote it.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: Bytes<'a>,
    before: u64,
}

impl<'a> Records<'a> {
    pub fn of(payload: &'a [u8]) -> Self {
        Self { bytes: Bytes { rest: payload }, before: 0 }
    }

    /// Unread bytes: after the last record, those that could not be read.
    pub fn unread(&self) -> usize {
        self.bytes.rest.len()
    }

    fn moment(&mut self) -> Option<u64> {
        self.before = self.before.wrapping_add(self.bytes.signed()? as u64);
        Some(self.before)
    }

    /// Start, end, and where it ran.
    fn work(&mut self) -> Option<(u64, u64, Stream, u32)> {
        let (start, end) = self.span()?;
        let on = Stream { device: self.bytes.small()?, stream: self.bytes.small()? };
        Some((start, end, on, self.bytes.small()?))
    }

    /// Start and end.
    fn span(&mut self) -> Option<(u64, u64)> {
        let start = self.moment()?;
        Some((start, start.checked_add(self.bytes.number()?)?))
    }

    fn byte(&mut self) -> Option<u8> {
        u8::try_from(self.bytes.number()?).ok()
    }

    fn read(&mut self) -> Option<Record<'a>> {
        match self.byte()? {
            1 => Some(Record::Name { id: self.bytes.small()?, text: self.bytes.text()? }),
            2 => Some(Record::Fact { key: self.bytes.text()?, value: self.bytes.text()? }),
            3 => Some(Record::Clock { at: self.moment()?, unix_ns: self.bytes.number()? }),
            4 => self.gpu(),
            5 => self.link(),
            6 => Some(Record::Thread { id: self.bytes.small()?, name: self.bytes.small()? }),
            7 => self.kernel(),
            8 => self.copy(),
            9 => self.peer_copy(),
            10 => self.memset(),
            11 => self.call(),
            12 => self.sync(),
            13 => self.event_record(),
            14 => self.range_start(),
            15 => Some(Record::RangeEnd { at: self.moment()?, id: self.bytes.small()? }),
            16 => self.mark(),
            17 => self.overhead(),
            18 => Some(Record::Dropped { at: self.moment()?, count: self.bytes.number()? }),
            19 => self.link_bytes(),
            20 => Some(Record::Note { text: self.bytes.text()? }),
            21 => Some(Record::End),
            22 => self.link_reading(),
            23 => self.span().map(|(start, end)| Record::KernelsOff { start, end }),
            24 => Some(Record::HostNode { correlation: self.bytes.small()?, node: self.bytes.small()? }),
            25 => self.access(),
            26 => Some(Record::OtherWait { correlation: self.bytes.small()?, stream: self.bytes.small()? }),
            27 => self.file_reads(),
            _ => None,
        }
    }

    fn file_reads(&mut self) -> Option<Record<'a>> {
        let at = self.moment()?;
        let mut next = || self.bytes.number();
        let counts = FileCounts {
            read: next()?,
            disk: next()?,
            major_faults: next()?,
            minor_faults: next()?,
            user: next()?,
            system: next()?,
        };
        Some(Record::FileReads { at, counts })
    }

    fn access(&mut self) -> Option<Record<'a>> {
        let (correlation, stream) = (self.bytes.small()?, self.byte()?);
        Some(Record::Access { correlation, stream, to: self.bytes.number()?, from: self.bytes.number()? })
    }

    fn gpu(&mut self) -> Option<Record<'a>> {
        Some(Record::Gpu {
            id: self.bytes.small()?,
            name: self.bytes.small()?,
            memory: self.bytes.number()?,
            multiprocessors: self.bytes.small()?,
            capability: (self.bytes.small()?, self.bytes.small()?),
        })
    }

    fn link(&mut self) -> Option<Record<'a>> {
        Some(Record::Link {
            gpu: self.bytes.small()?,
            generation: self.bytes.small()?,
            lanes: self.bytes.small()?,
            max_generation: self.bytes.small()?,
            max_lanes: self.bytes.small()?,
        })
    }

    fn kernel(&mut self) -> Option<Record<'a>> {
        let (start, end, on, correlation) = self.work()?;
        let name = self.bytes.small()?;
        let three = |bytes: &mut Bytes<'a>| Some([bytes.small()?, bytes.small()?, bytes.small()?]);
        let launch = Launch {
            grid: three(&mut self.bytes)?,
            block: three(&mut self.bytes)?,
            registers: self.bytes.small()?,
            shared_memory: self.bytes.small()?,
        };
        Some(Record::Kernel { start, end, on, correlation, name, launch })
    }

    fn copy(&mut self) -> Option<Record<'a>> {
        let (start, end, on, correlation) = self.work()?;
        let bytes = self.bytes.number()?;
        let (kind, from, to, flags) = (self.byte()?, self.byte()?, self.byte()?, self.byte()?);
        Some(Record::Copy { start, end, on, correlation, bytes, kind, from, to, flags })
    }

    fn peer_copy(&mut self) -> Option<Record<'a>> {
        let (start, end, on, correlation) = self.work()?;
        let bytes = self.bytes.number()?;
        let (from_device, to_device) = (self.bytes.small()?, self.bytes.small()?);
        Some(Record::PeerCopy { start, end, on, correlation, bytes, from_device, to_device })
    }

    fn memset(&mut self) -> Option<Record<'a>> {
        let (start, end, on, correlation) = self.work()?;
        let (bytes, memory) = (self.bytes.number()?, self.byte()?);
        Some(Record::Memset { start, end, on, correlation, bytes, memory })
    }

    fn call(&mut self) -> Option<Record<'a>> {
        let (start, end) = self.span()?;
        Some(Record::Call {
            start,
            end,
            thread: self.bytes.small()?,
            correlation: self.bytes.small()?,
            name: self.bytes.small()?,
            is_driver: self.bytes.number()? != 0,
            result: self.bytes.small()?,
        })
    }

    fn sync(&mut self) -> Option<Record<'a>> {
        let (start, end) = self.span()?;
        let (correlation, kind, event) = (self.bytes.small()?, self.bytes.small()?, self.bytes.small()?);
        Some(Record::Sync { start, end, correlation, stream: self.bytes.signed()?, kind, event })
    }

    fn event_record(&mut self) -> Option<Record<'a>> {
        Some(Record::EventRecord {
            correlation: self.bytes.small()?,
            stream: self.bytes.small()?,
            event: self.bytes.small()?,
        })
    }

    fn range_start(&mut self) -> Option<Record<'a>> {
        let at = self.moment()?;
        let (id, thread, name) = (self.bytes.small()?, self.bytes.small()?, self.bytes.small()?);
        Some(Record::RangeStart { at, id, thread, name })
    }

    fn mark(&mut self) -> Option<Record<'a>> {
        Some(Record::Mark { at: self.moment()?, thread: self.bytes.small()?, name: self.bytes.small()? })
    }

    fn overhead(&mut self) -> Option<Record<'a>> {
        let (start, end) = self.span()?;
        Some(Record::Overhead { start, end, kind: self.bytes.small()?, thread: self.bytes.small()? })
    }

    fn link_bytes(&mut self) -> Option<Record<'a>> {
        let (at, gpu) = (self.moment()?, self.bytes.small()?);
        Some(Record::LinkBytes { at, gpu, to_device: self.bytes.number()?, to_host: self.bytes.number()? })
    }

    fn link_reading(&mut self) -> Option<Record<'a>> {
        let (at, gpu) = (self.moment()?, self.bytes.small()?);
        let (to_host, bytes) = (self.bytes.number()? != 0, self.bytes.number()?);
        Some(Record::LinkReading { at, gpu, to_host, bytes })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if self.bytes.rest.is_empty() {
            return None;
        }
        let (bytes, before) = (self.bytes, self.before);
        let record = self.read();
        if record.is_none() {
            (self.bytes, self.before) = (bytes, before);
        }
        record
    }
}
