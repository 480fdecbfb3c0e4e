//! Many blocks that lie apart: the driver's batch call, the table that a kernel reads, and copies by the host.

use std::ffi::{c_int, c_uint, c_void};

use busbound_machine::bench::Memory;
use cudarc::driver::sys;

use super::memory::{DeviceBuffer, HostBuffer};
use super::stream::Stream;
use super::{CudaError, Result};

/// A block in host memory and its place in device memory, as offsets into two buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) host: u64,
    pub(crate) device: u64,
}

/// The driver's call for a list of copies, if it has one (since CUDA 12.8).
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchCall(Function);

/// As in CUDA 12.8; later versions of the header leave out the index of the copy that failed.
type Function = unsafe extern "C" fn(
    *mut sys::CUdeviceptr,
    *mut sys::CUdeviceptr,
    *mut usize,
    usize,
    *mut Attributes,
    *mut usize,
    usize,
    *mut usize,
    sys::CUstream,
) -> sys::CUresult;

/// `CUmemcpyAttributes`. The hints are for managed memory and stay empty.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    source_access_order: c_uint,
    source_hint: [c_int; 2],
    destination_hint: [c_int; 2],
    flags: c_uint,
}

/// The source is read in stream order, as by `cuMemcpyAsync`.
const STREAM_ORDER: c_uint = 1;
const SINCE: c_int = 12_080;

impl BatchCall {
    pub(crate) fn find() -> Option<Self> {
        let mut version: c_int = 0;
        // SAFETY: the pointer is to a live integer. Drivers before CUDA 12 lack the lookup below.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().ok().filter(|()| version >= SINCE)?;
        let mut found: *mut c_void = std::ptr::null_mut();
        let mut status = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        let name = c"cuMemcpyBatchAsync";
        // SAFETY: the name ends with a zero byte, and both pointers are to live values.
        let answer =
            unsafe { sys::cuGetProcAddress_v2(name.as_ptr(), &raw mut found, SINCE, 0, &raw mut status) };
        if answer != sys::CUresult::CUDA_SUCCESS || found.is_null() {
            return None;
        }
        // SAFETY: the driver says that this is the function as of CUDA 12.8, whose type this is.
        Some(Self(unsafe { std::mem::transmute::<*mut c_void, Function>(found) }))
    }

    pub(crate) fn to_device(
        self,
        stream: &Stream,
        to: &DeviceBuffer,
        from: &HostBuffer,
        spans: &[Span],
        block_bytes: u64,
    ) -> Result<()> {
        let (device, host) = ends(to, from, spans, block_bytes);
        self.call(stream, device, host, block_bytes)
    }

    pub(crate) fn to_host(
        self,
        stream: &Stream,
        to: &HostBuffer,
        from: &DeviceBuffer,
        spans: &[Span],
        block_bytes: u64,
    ) -> Result<()> {
        let (device, host) = ends(from, to, spans, block_bytes);
        self.call(stream, host, device, block_bytes)
    }

    fn call(self, stream: &Stream, mut to: Vec<u64>, mut from: Vec<u64>, bytes: u64) -> Result<()> {
        let mut sizes = vec![bytes as usize; to.len()];
        let mut attributes = Attributes { source_access_order: STREAM_ORDER, ..Attributes::default() };
        let (mut from_first, mut failed) = (0usize, 0usize);
        // SAFETY: the three lists have the same length, the attributes apply from copy 0 on, and `ends` checked that
        // all blocks are within their buffers, which outlive the stream's work: every caller synchronizes.
        let answer = unsafe {
            (self.0)(
                to.as_mut_ptr(),
                from.as_mut_ptr(),
                sizes.as_mut_ptr(),
                sizes.len(),
                &raw mut attributes,
                &raw mut from_first,
                1,
                &raw mut failed,
                stream.0,
            )
        };
        answer.result().map_err(CudaError::from)
    }
}

/// The addresses on the device and on the host.
fn ends(device: &DeviceBuffer, host: &HostBuffer, spans: &[Span], block_bytes: u64) -> (Vec<u64>, Vec<u64>) {
    let base = host.pointer() as u64;
    let addresses = spans.iter().map(|span| {
        device.ensure_within(span.device, block_bytes);
        host.ensure_within(span.host, block_bytes);
        (device.at(span.device), base + span.host)
    });
    addresses.unzip()
}

/// The table of the kernel `blocks`: pairs of addresses in pinned memory, which the kernel reads in place.
#[derive(Debug)]
pub(crate) struct BlockTable {
    entries: HostBuffer,
    blocks: u32,
}

impl BlockTable {
    pub(crate) fn new(most_blocks: u32) -> Result<Self> {
        Ok(Self { entries: HostBuffer::new(u64::from(most_blocks) * 16, Memory::Pinned)?, blocks: 0 })
    }

    /// Sets the addresses to write to and to read from. The caller guarantees that they are valid while a kernel uses
    /// them, and that no kernel uses the table now.
    pub(crate) fn set(&mut self, moves: impl ExactSizeIterator<Item = (u64, u64)>) {
        self.blocks = moves.len() as u32;
        let words = self.entries.words_mut();
        assert!(words.len() >= 2 * moves.len(), "more blocks than the table has entries");
        for (entry, (to, from)) in words.chunks_exact_mut(2).zip(moves) {
            entry.copy_from_slice(&[to, from]);
        }
    }

    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    pub(super) fn device_pointer(&self) -> Result<u64> {
        self.entries.device_pointer()
    }
}

/// Copies on the host; the buffers must be different ones.
pub(crate) fn copy_on_host(to: &HostBuffer, to_at: u64, from: &HostBuffer, from_at: u64, bytes: u64) {
    to.ensure_within(to_at, bytes);
    from.ensure_within(from_at, bytes);
    assert!(!std::ptr::eq(to, from), "the ranges may overlap");
    // SAFETY: both ranges are within their allocations, which are different; callers have synchronized, so the GPU
    // uses neither.
    unsafe {
        let source = from.pointer().cast::<u8>().add(from_at as usize);
        let target = to.pointer().cast::<u8>().add(to_at as usize);
        std::ptr::copy_nonoverlapping(source, target, bytes as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout that the driver reads.
    #[test]
    fn the_attributes_are_24_bytes_like_those_of_the_driver() {
        assert_eq!((size_of::<Attributes>(), align_of::<Attributes>()), (24, 4));
        assert_eq!(std::mem::offset_of!(Attributes, flags), 20);
    }

    /// Pageable memory is the only kind that needs no driver.
    #[test]
    fn a_host_copy_moves_exactly_its_block() {
        let mut from = HostBuffer::new(4096, Memory::Pageable).unwrap();
        from.words_mut().iter_mut().enumerate().for_each(|(i, word)| *word = i as u64 + 1);
        let to = HostBuffer::new(4096, Memory::Pageable).unwrap();
        copy_on_host(&to, 64, &from, 1024, 16);
        assert_eq!(to.words()[7..11], [0, 129, 130, 0]);
    }
}
