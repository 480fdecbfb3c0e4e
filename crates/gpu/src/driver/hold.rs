//! Work that is queued behind a held stream starts at once when it is let go: the cost of queueing it stays
//! out of its time.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Result;
use super::kernels::Kernels;
use super::memory::HostBuffer;
use super::stream::Stream;
use busbound_machine::bench::Memory;

/// Should the host be gone, the GPU is free again after this long.
const LIMIT_NS: u64 = 2_000_000_000;

/// A flag in mapped memory that a kernel on the GPU watches.
#[derive(Debug)]
pub(crate) struct Hold {
    flag: HostBuffer,
}

impl Hold {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { flag: HostBuffer::new(4096, Memory::Pinned)? })
    }

    /// Holds the stream while `queue` fills it, then lets go, also where `queue` fails.
    pub(crate) fn behind<T>(
        &self,
        kernels: &Kernels,
        stream: &Stream,
        queue: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.set(0);
        kernels.hold(stream, self.flag.device_pointer()?, LIMIT_NS)?;
        let queued = queue();
        self.set(1);
        queued
    }

    fn set(&self, value: u32) {
        // SAFETY: the buffer holds more than four bytes, is aligned to a page, and lives as long as `self`;
        // host and GPU both reach it by single whole-word accesses only.
        let flag = unsafe { AtomicU32::from_ptr(self.flag.pointer().cast()) };
        flag.store(value, Ordering::SeqCst);
    }
}
