//! Which offsets do the fields of CUPTI's records have? New versions add fields at the end, so the offsets of fields
//! since CUDA 11 are valid for 12 and 13: only these are read. CUPTI itself gives the length of a record.

use crate::format::{Launch, Record, Stream};

/// The activity kinds that are enabled.
pub mod kind {
    pub const MEMCPY: u32 = 1;
    pub const MEMSET: u32 = 2;
    pub const DRIVER: u32 = 4;
    pub const RUNTIME: u32 = 5;
    pub const DEVICE: u32 = 8;
    pub const KERNEL: u32 = 10;
    pub const MARKER: u32 = 12;
    pub const OVERHEAD: u32 = 17;
    pub const MEMCPY_PEER: u32 = 22;
}

/// A record as CUPTI wrote it, up to the end of its buffer.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    pub bytes: &'a [u8],
}

/// What a record says: ready to write, or with something that must be looked up in the process. `name` is an address
/// in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    Ready(Record<'static>),
    Kernel { start: u64, end: u64, on: Stream, correlation: u32, name: usize, launch: Launch },
    Call { start: u64, end: u64, thread: u32, correlation: u32, callback: u32, is_driver: bool, result: u32 },
    Marker { at: u64, id: u32, flags: u32, thread: u32, name: usize },
    Device { id: u32, name: usize, memory: u64, multiprocessors: u32, capability: (u32, u32), uuid: [u8; 16] },
}

/// The CUPTI object kind of a thread: its process id and thread id follow.
const OBJECT_THREAD: u32 = 2;

impl Raw<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_ne_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes.get(at..at + 8)?.try_into().ok()?))
    }

    fn address(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u64(at)?).ok()
    }

    pub fn kind(&self) -> Option<u32> {
        self.u32(0)
    }

    /// Device and stream, with the context between them.
    fn stream(&self, at: usize) -> Option<Stream> {
        Some(Stream { device: self.u32(at)?, stream: self.u32(at + 8)? })
    }

    fn three(&self, at: usize) -> Option<[u32; 3]> {
        Some([self.u32(at)?, self.u32(at + 4)?, self.u32(at + 8)?])
    }

    /// `None` for a kind that was not enabled, or a record that is cut.
    pub fn activity(&self) -> Option<Activity> {
        Some(match self.kind()? {
            kind::KERNEL => Activity::Kernel {
                start: self.u64(16)?,
                end: self.u64(24)?,
                on: self.stream(40)?,
                correlation: self.u32(92)?,
                name: self.address(104)?,
                launch: Launch {
                    grid: self.three(52)?,
                    block: self.three(64)?,
                    registers: self.u16(6)?.into(),
                    shared_memory: self.u32(76)?.saturating_add(self.u32(80)?),
                },
            },
            kind::MEMCPY => Activity::Ready(Record::Copy {
                start: self.u64(16)?,
                end: self.u64(24)?,
                on: self.stream(32)?,
                correlation: self.u32(44)?,
                bytes: self.u64(8)?,
                kind: self.byte(4)?,
                from: self.byte(5)?,
                to: self.byte(6)?,
                flags: self.byte(7)?,
            }),
            kind::MEMCPY_PEER => Activity::Ready(Record::PeerCopy {
                start: self.u64(16)?,
                end: self.u64(24)?,
                on: self.stream(32)?,
                correlation: self.u32(60)?,
                bytes: self.u64(8)?,
                from_device: self.u32(44)?,
                to_device: self.u32(52)?,
            }),
            kind::MEMSET => Activity::Ready(Record::Memset {
                start: self.u64(16)?,
                end: self.u64(24)?,
                on: self.stream(32)?,
                correlation: self.u32(44)?,
                bytes: self.u64(8)?,
                memory: self.byte(50)?,
            }),
            kind @ (kind::RUNTIME | kind::DRIVER) => Activity::Call {
                start: self.u64(8)?,
                end: self.u64(16)?,
                thread: self.u32(28)?,
                correlation: self.u32(32)?,
                callback: self.u32(4)?,
                is_driver: kind == kind::DRIVER,
                result: self.u32(36)?,
            },
            kind::MARKER => Activity::Marker {
                at: self.u64(8)?,
                id: self.u32(16)?,
                flags: self.u32(4)?,
                thread: if self.u32(20)? == OBJECT_THREAD { self.u32(28)? } else { 0 },
                name: self.address(40)?,
            },
            kind::OVERHEAD => Activity::Ready(Record::Overhead {
                start: self.u64(24)?,
                end: self.u64(32)?,
                kind: self.u32(4)?,
                thread: if self.u32(8)? == OBJECT_THREAD { self.u32(16)? } else { 0 },
            }),
            kind::DEVICE => Activity::Device {
                id: self.u32(112)?,
                name: self.address(136)?,
                memory: self.u64(16)?,
                multiprocessors: self.u32(44)?,
                capability: (self.u32(104)?, self.u32(108)?),
                uuid: self.bytes.get(120..136)?.try_into().ok()?,
            },
            _ => return None,
        })
    }
}
