//! Memory on host and device. Buffers free themselves.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use busbound_machine::bench::Memory;
use cudarc::driver::result;
use cudarc::driver::sys;

use super::{CudaError, Result};

const PAGE: usize = 4096;

/// Bytes allocated now and at the peak, on one side.
struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

impl Held {
    const fn new() -> Self {
        Self { now: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    fn take(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

static DEVICE: Held = Held::new();
static HOST: Held = Held::new();

/// Peak bytes allocated, on the device and on the host.
pub(crate) fn held_at_most() -> (u64, u64) {
    (DEVICE.most.load(Ordering::Relaxed), HOST.most.load(Ordering::Relaxed))
}

#[derive(Debug)]
pub(crate) struct DeviceBuffer {
    pointer: sys::CUdeviceptr,
    bytes: u64,
}

impl DeviceBuffer {
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        // SAFETY: a plain allocation; Drop frees it.
        let pointer = unsafe { result::malloc_sync(bytes as usize)? };
        DEVICE.take(bytes);
        Ok(Self { pointer, bytes })
    }

    pub(crate) fn zero(&self) -> Result<()> {
        // SAFETY: the range is the buffer.
        unsafe { result::memset_d8_sync(self.pointer, 0, self.bytes as usize) }?;
        // It runs on the default stream, which our streams do not wait for.
        // SAFETY: the default stream always exists.
        unsafe { result::stream::synchronize(std::ptr::null_mut()) }.map_err(CudaError::from)
    }

    /// The 64-bit words at its start.
    pub(crate) fn words(&self, count: usize) -> Result<Vec<u64>> {
        self.ensure_within(0, 8 * count as u64);
        let mut words = vec![0u64; count];
        // SAFETY: the buffer has that many words.
        unsafe { result::memcpy_dtoh_sync(&mut words, self.pointer)? };
        Ok(words)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn at(&self, offset: u64) -> sys::CUdeviceptr {
        self.pointer + offset
    }

    /// Guards against bugs here: an out-of-bounds copy must not happen.
    pub(super) fn ensure_within(&self, at: u64, bytes: u64) {
        assert!(at + bytes <= self.bytes, "{bytes} bytes at {at} of a device buffer of {}", self.bytes);
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        let _ = unsafe { result::free_sync(self.pointer) };
        DEVICE.give_back(self.bytes);
    }
}

/// Host memory of one kind.
#[derive(Debug)]
pub(crate) struct HostBuffer {
    pointer: *mut c_void,
    bytes: u64,
    memory: Memory,
}

impl HostBuffer {
    /// Zeroed, so that every page is resident before anything is timed.
    pub(crate) fn new(bytes: u64, memory: Memory) -> Result<Self> {
        let pointer = match memory {
            Memory::Pinned | Memory::WriteCombined => {
                let flags = match memory {
                    Memory::WriteCombined => {
                        sys::CU_MEMHOSTALLOC_WRITECOMBINED | sys::CU_MEMHOSTALLOC_DEVICEMAP
                    }
                    _ => sys::CU_MEMHOSTALLOC_DEVICEMAP,
                };
                // SAFETY: a plain allocation; Drop frees it.
                unsafe { result::malloc_host(bytes as usize, flags)? }
            }
            Memory::Pageable | Memory::Registered => {
                // SAFETY: the layout is not empty: no caller asks for zero bytes.
                let pointer = unsafe { alloc_zeroed(layout(bytes)) }.cast::<c_void>();
                if pointer.is_null() {
                    return Err(CudaError::HostMemory(bytes));
                }
                pointer
            }
            Memory::Managed => unreachable!("managed memory is a ManagedBuffer"),
        };
        HOST.take(bytes);
        // Until it is registered it is pageable: if registering fails, it is freed as pageable memory.
        let mut buffer = Self { pointer, bytes, memory };
        // SAFETY: the allocation is that long and nothing else refers to it yet.
        unsafe { std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes as usize) };
        if memory == Memory::Registered {
            buffer.memory = Memory::Pageable;
            // SAFETY: the range is the allocation, in whole pages.
            unsafe { sys::cuMemHostRegister_v2(pointer, bytes as usize, sys::CU_MEMHOSTREGISTER_DEVICEMAP) }
                .result()?;
            buffer.memory = Memory::Registered;
        }
        Ok(buffer)
    }

    /// Its address for kernels; only page-locked memory has one.
    pub(crate) fn device_pointer(&self) -> Result<sys::CUdeviceptr> {
        let mut pointer: sys::CUdeviceptr = 0;
        // SAFETY: the memory was allocated or registered as mapped; else the driver returns an error.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut pointer, self.pointer, 0) }.result()?;
        Ok(pointer)
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: the allocation is page aligned, initialized, and borrowed mutably with `self`; callers have
        // synchronized, so the GPU does not write to it.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.cast::<u64>(), (self.bytes / 8) as usize) }
    }

    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: as above, shared.
        unsafe { std::slice::from_raw_parts(self.pointer.cast::<u64>(), (self.bytes / 8) as usize) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    pub(super) fn ensure_within(&self, at: u64, bytes: u64) {
        assert!(at + bytes <= self.bytes, "{bytes} bytes at {at} of a host buffer of {}", self.bytes);
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        HOST.give_back(self.bytes);
        match self.memory {
            Memory::Pinned | Memory::WriteCombined => {
                // SAFETY: allocated by the driver in `new`, freed once.
                let _ = unsafe { result::free_host(self.pointer) };
            }
            _ => {
                if self.memory == Memory::Registered {
                    // SAFETY: registered in `new`, undone once.
                    let _ = unsafe { sys::cuMemHostUnregister(self.pointer) };
                }
                // SAFETY: allocated in `new` with this layout, freed once.
                unsafe { dealloc(self.pointer.cast(), layout(self.bytes)) };
            }
        }
    }
}

/// Whole pages. Callers never ask for a size that no allocation can have.
fn layout(bytes: u64) -> Layout {
    Layout::from_size_align((bytes as usize).next_multiple_of(PAGE), PAGE)
        .unwrap_or(Layout::new::<[u8; PAGE]>())
}

/// Memory that migrates.
#[derive(Debug)]
pub(crate) struct ManagedBuffer(DeviceBuffer);

impl ManagedBuffer {
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        let flags = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
        // SAFETY: a plain allocation, freed like device memory.
        let pointer = unsafe { result::malloc_managed(bytes as usize, flags)? };
        DEVICE.take(bytes);
        Ok(Self(DeviceBuffer { pointer, bytes }))
    }

    pub(crate) fn as_device(&self) -> &DeviceBuffer {
        &self.0
    }

    pub(super) fn device_pointer(&self) -> sys::CUdeviceptr {
        self.0.pointer
    }

    pub(super) fn ensure_within(&self, bytes: u64) {
        self.0.ensure_within(0, bytes);
    }
}
