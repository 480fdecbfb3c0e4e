//! Work queued behind a held stream starts all at the same time when the stream is released: its time does not
//! include the cost of queueing.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Result;
use super::kernels::Kernels;
use super::memory::HostBuffer;
use super::stream::Stream;
use busbound_machine::bench::Memory;

/// If the host dies, the GPU is free again after this long.
const LIMIT_NS: u64 = 2_000_000_000;

/// A flag in mapped memory that a kernel on the GPU polls.
#[derive(Debug)]
pub(crate) struct Hold {
    flag: HostBuffer,
}

impl Hold {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { flag: HostBuffer::new(4096, Memory::Pinned)? })
    }

    /// Holds the stream while `queue` fills it, then releases it, also if `queue` fails.
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
        // SAFETY: the buffer has more than four bytes, is page aligned, and lives as long as `self`; host and GPU
        // access it only with single-word loads and stores.
        let flag = unsafe { AtomicU32::from_ptr(self.flag.pointer().cast()) };
        flag.store(value, Ordering::SeqCst);
    }
}
