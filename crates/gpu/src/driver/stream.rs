//! GPU streams, and events in them.

use std::ffi::c_void;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::memory::{DeviceBuffer, HostBuffer, ManagedBuffer};
use super::{CudaError, Gpu, Result};

#[derive(Debug)]
pub(crate) struct Stream(pub(super) sys::CUstream);

impl Stream {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(result::stream::create(result::stream::StreamKind::NonBlocking)?))
    }

    /// For libraries that queue their own work.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.0.cast()
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.0) }.map_err(CudaError::from)
    }

    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: stream and event live as long as their borrows.
        unsafe { result::stream::wait_event(self.0, event.0, flags) }.map_err(CudaError::from)
    }

    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        // SAFETY: stream and event live as long as their borrows.
        unsafe { result::event::record(event.0, self.0) }.map_err(CudaError::from)
    }

    /// Queues a copy to the device; with pageable memory it returns when the host's part is done.
    pub(crate) fn to_device(
        &self,
        to: &DeviceBuffer,
        to_at: u64,
        from: &HostBuffer,
        from_at: u64,
        bytes: u64,
    ) -> Result<()> {
        to.ensure_within(to_at, bytes);
        from.ensure_within(from_at, bytes);
        // SAFETY: both ranges are within their buffers, which outlive the stream's work: every caller synchronizes
        // before it drops them.
        let answer = unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                to.at(to_at),
                from.pointer().add(from_at as usize).cast_const(),
                bytes as usize,
                self.0,
            )
        };
        answer.result().map_err(CudaError::from)
    }

    pub(crate) fn to_host(
        &self,
        to: &HostBuffer,
        to_at: u64,
        from: &DeviceBuffer,
        from_at: u64,
        bytes: u64,
    ) -> Result<()> {
        to.ensure_within(to_at, bytes);
        from.ensure_within(from_at, bytes);
        // SAFETY: as in `to_device`; no reference to the host's bytes is alive while the copy runs.
        let answer = unsafe {
            sys::cuMemcpyDtoHAsync_v2(
                to.pointer().add(to_at as usize),
                from.at(from_at),
                bytes as usize,
                self.0,
            )
        };
        answer.result().map_err(CudaError::from)
    }

    pub(crate) fn on_device(&self, to: &DeviceBuffer, from: &DeviceBuffer, bytes: u64) -> Result<()> {
        to.ensure_within(0, bytes);
        from.ensure_within(0, bytes);
        // SAFETY: both ranges are within their buffers.
        let answer = unsafe { sys::cuMemcpyDtoDAsync_v2(to.at(0), from.at(0), bytes as usize, self.0) };
        answer.result().map_err(CudaError::from)
    }

    pub(crate) fn to_peer(
        &self,
        to: &DeviceBuffer,
        to_gpu: &Gpu,
        from: &DeviceBuffer,
        from_gpu: &Gpu,
        bytes: u64,
    ) -> Result<()> {
        to.ensure_within(0, bytes);
        from.ensure_within(0, bytes);
        // SAFETY: both ranges are within buffers of these contexts.
        let answer = unsafe {
            sys::cuMemcpyPeerAsync(
                to.at(0),
                to_gpu.context,
                from.at(0),
                from_gpu.context,
                bytes as usize,
                self.0,
            )
        };
        answer.result().map_err(CudaError::from)
    }

    /// Migrates managed memory to the device, or back to the host.
    pub(crate) fn migrate(&self, buffer: &ManagedBuffer, bytes: u64, to: Option<&Gpu>) -> Result<()> {
        buffer.ensure_within(bytes);
        // The driver's device number for the host.
        let place = to.map_or(-1, |gpu| gpu.device);
        // SAFETY: the range is within the buffer.
        let answer =
            unsafe { sys::cuMemPrefetchAsync(buffer.device_pointer(), bytes as usize, place, self.0) };
        answer.result().map_err(CudaError::from)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once. The driver finishes work that is still queued.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

#[derive(Debug)]
pub(crate) struct Event(sys::CUevent);

impl Event {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?))
    }

    /// Nanoseconds from an earlier event to this one; both must have completed.
    pub(crate) fn ns_since(&self, start: &Self) -> Result<u64> {
        // SAFETY: both events live as long as their borrows.
        let ms = unsafe { result::event::elapsed(start.0, self.0)? };
        // The clock resolution is 0.5 µs: a time of zero is too short to measure.
        Ok(((f64::from(ms) * 1e6).round() as u64).max(1))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}
