//! The kernels, compiled by the driver, and how to launch each.

use std::ffi::{CString, c_void};

use cudarc::driver::result;
use cudarc::driver::sys;

use super::memory::DeviceBuffer;
use super::scatter::BlockTable;
use super::stream::Stream;
use super::{CudaError, Gpu, Result};

/// Word `i` of filled memory; the kernels compute the same.
pub(crate) fn mix(i: u64) -> u64 {
    let product = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 32)
}

const THREADS: u32 = 256;

/// Which kernel draws as much power as a GEMM on this GPU?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matrix {
    /// Asynchronous products over shared memory: nothing less keeps Hopper's tensor cores busy.
    Hopper,
    /// Products in registers. Later chips have instructions that draw more power.
    Ampere,
    /// No bf16 tensor cores: plain arithmetic.
    None,
}

impl Matrix {
    fn of(compute_capability: (i32, i32)) -> Self {
        match compute_capability.0 {
            ..=7 => Self::None,
            9 => Self::Hopper,
            _ => Self::Ampere,
        }
    }

    fn ptx(self) -> Option<&'static str> {
        match self {
            Self::Hopper => Some(include_str!("hopper.ptx")),
            Self::Ampere => Some(include_str!("tensor.ptx")),
            Self::None => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Kernels {
    module: sys::CUmodule,
    tensor_module: Option<sys::CUmodule>,
    hold: sys::CUfunction,
    empty: sys::CUfunction,
    fill: sys::CUfunction,
    check: sys::CUfunction,
    copy: sys::CUfunction,
    blocks: sys::CUfunction,
    layer: sys::CUfunction,
    matrix: Matrix,
    like_a_gemm: bool,
    tensor: Option<sys::CUfunction>,
    multiprocessors: u32,
}

impl Kernels {
    pub(crate) fn load(gpu: &Gpu) -> Result<Self> {
        gpu.make_current()?;
        let module = load(include_str!("kernels.ptx"))?;
        let matrix = Matrix::of(gpu.compute_capability()?);
        // Without it, plain arithmetic is used; all other suites still run.
        let tensor_module = matrix.ptx().and_then(|ptx| load(ptx).ok());
        Ok(Self {
            module,
            tensor_module,
            hold: function(module, "hold")?,
            empty: function(module, "empty")?,
            fill: function(module, "fill")?,
            check: function(module, "check")?,
            copy: function(module, "copy")?,
            blocks: function(module, "blocks")?,
            layer: function(module, "layer")?,
            matrix,
            like_a_gemm: matches!(gpu.compute_capability()?.0, 8 | 9),
            tensor: tensor_module.map(|module| function(module, "tensor")).transpose()?,
            multiprocessors: gpu.multiprocessors()?,
        })
    }

    pub(crate) fn hold(&self, stream: &Stream, flag: u64, limit_ns: u64) -> Result<()> {
        launch(self.hold, stream, 1, 1, &mut [arg(&flag), arg(&limit_ns)])
    }

    pub(crate) fn empty(&self, stream: &Stream) -> Result<()> {
        launch(self.empty, stream, 1, 1, &mut [])
    }

    /// Writes the pattern of [`mix`], starting at `seed`.
    pub(crate) fn fill(&self, stream: &Stream, buffer: &DeviceBuffer, bytes: u64, seed: u64) -> Result<()> {
        buffer.ensure_within(0, bytes);
        let (words, count) = (buffer.at(0), bytes / 8);
        launch(self.fill, stream, self.all(), THREADS, &mut [arg(&words), arg(&count), arg(&seed)])
    }

    /// Whether memory contains what [`Kernels::fill`] writes.
    pub(crate) fn holds(
        &self,
        stream: &Stream,
        buffer: &DeviceBuffer,
        bytes: u64,
        seed: u64,
    ) -> Result<bool> {
        self.holds_at(stream, buffer, 0, bytes, seed)
    }

    /// The same from `at` on.
    pub(crate) fn holds_at(
        &self,
        stream: &Stream,
        buffer: &DeviceBuffer,
        at: u64,
        bytes: u64,
        seed: u64,
    ) -> Result<bool> {
        buffer.ensure_within(at, bytes);
        let wrong = DeviceBuffer::new(8)?;
        wrong.zero()?;
        let (words, count, counter) = (buffer.at(at), bytes / 8, wrong.at(0));
        let arguments = &mut [arg(&words), arg(&count), arg(&seed), arg(&counter)];
        launch(self.check, stream, self.all(), THREADS, arguments)?;
        stream.synchronize()?;
        Ok(wrong.words(1)? == [0])
    }

    /// Copies with the multiprocessors; either end may be in host memory.
    pub(crate) fn copy(&self, stream: &Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        let count = bytes / 16;
        let blocks = self.all().min(count.div_ceil(u64::from(THREADS)) as u32).max(1);
        launch(self.copy, stream, blocks, THREADS, &mut [arg(&to), arg(&from), arg(&count)])
    }

    /// Moves blocks of the same size with the multiprocessors, each as the table says; either end may be in host
    /// memory.
    pub(crate) fn blocks(&self, stream: &Stream, table: &BlockTable, block_bytes: u64) -> Result<()> {
        let (entries, count) = (table.device_pointer()?, block_bytes / 16);
        let parts = parts_of_a_block(self.all(), table.blocks(), block_bytes);
        let arguments = &mut [arg(&entries), arg(&count), arg(&parts)];
        launch(self.blocks, stream, table.blocks() * parts, THREADS, arguments)
    }

    /// Reads `bytes` of weights, then computes; folds the weights into the word at `seen`.
    pub(crate) fn layer(
        &self,
        stream: &Stream,
        weights: u64,
        bytes: u64,
        turns: u32,
        seen: u64,
    ) -> Result<()> {
        let count = bytes / 8;
        let arguments = &mut [arg(&weights), arg(&count), arg(&turns), arg(&seen)];
        launch(self.layer, stream, self.all(), THREADS, arguments)
    }

    /// Matrix products; arithmetic in registers if the GPU has no bf16 tensor cores.
    pub(crate) fn tensor(&self, stream: &Stream, random: &DeviceBuffer, turns: u32, seen: u64) -> Result<()> {
        random.ensure_within(0, TENSOR_BYTES);
        let words = random.at(0);
        let arguments = &mut [arg(&words), arg(&turns), arg(&seen)];
        match (self.tensor, self.matrix) {
            // One block fills the registers of a multiprocessor.
            (Some(tensor), Matrix::Hopper) => launch(tensor, stream, self.multiprocessors, 384, arguments),
            (Some(tensor), _) => launch(tensor, stream, self.multiprocessors * 4, THREADS, arguments),
            (None, _) => self.layer(stream, words, 0, turns, seen),
        }
    }

    /// Whether the matrix kernel draws as much power as a GEMM on this chip.
    pub(crate) fn are_like_a_gemm(&self) -> bool {
        self.tensor.is_some() && self.like_a_gemm
    }

    /// Enough blocks to fill the GPU.
    fn all(&self) -> u32 {
        self.multiprocessors * 8
    }
}

/// How many groups of threads move one block: enough to fill the GPU, but none without four iterations of work.
fn parts_of_a_block(groups: u32, blocks: u32, block_bytes: u64) -> u32 {
    let useful = block_bytes.div_ceil(u64::from(THREADS) * 16 * 4);
    (groups / blocks.max(1)).clamp(1, useful.clamp(1, u64::from(groups)) as u32)
}

/// Data that the matrix kernels read repeatedly: larger than the caches.
pub(crate) const TENSOR_BYTES: u64 = 64 << 20;

impl Drop for Kernels {
    fn drop(&mut self) {
        for module in self.tensor_module.into_iter().chain([self.module]) {
            // SAFETY: loaded in `load`, unloaded once.
            let _ = unsafe { result::module::unload(module) };
        }
    }
}

fn load(ptx: &str) -> Result<sys::CUmodule> {
    let text = CString::new(ptx).map_err(|_| CudaError::Driver("PTX with a zero byte".to_owned()))?;
    // SAFETY: the text ends with a zero byte and lives through the call.
    Ok(unsafe { result::module::load_data(text.as_ptr().cast())? })
}

fn function(module: sys::CUmodule, name: &str) -> Result<sys::CUfunction> {
    let name = CString::new(name).map_err(|_| CudaError::Driver("a name with a zero byte".to_owned()))?;
    // SAFETY: the module is loaded and outlives its functions: both belong to the same `Kernels`.
    Ok(unsafe { result::module::get_function(module, name)? })
}

/// The driver reads a parameter through a pointer.
fn arg<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

fn launch(
    function: sys::CUfunction,
    stream: &Stream,
    blocks: u32,
    threads: u32,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    // SAFETY: every argument points to a live value of the type that the kernel declares, and the driver has read all
    // of them when the call returns.
    unsafe { result::launch_kernel(function, (blocks, 1, 1), (threads, 1, 1), 0, stream.0, arguments) }
        .map_err(CudaError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_write_what_the_host_expects() {
        assert_eq!(mix(0), 0);
        assert_eq!(mix(1), 0x9E37_79B9_7F4A_7C15 ^ 0x9E37_79B9);
        // Every kernel under its lookup name.
        let has = |ptx: &str, name: &str| ptx.contains(&format!(".visible .entry {name}("));
        for name in ["hold", "empty", "fill", "check", "copy", "blocks", "layer"] {
            assert!(has(include_str!("kernels.ptx"), name), "{name}");
        }
        for (capability, matrix) in [
            ((7, 5), Matrix::None),
            ((8, 0), Matrix::Ampere),
            ((8, 9), Matrix::Ampere),
            ((9, 0), Matrix::Hopper),
            ((10, 0), Matrix::Ampere),
        ] {
            assert_eq!(Matrix::of(capability), matrix);
            assert!(matrix.ptx().is_none_or(|ptx| has(ptx, "tensor")));
        }
    }
    #[test]
    fn few_large_blocks_are_split_and_many_small_ones_are_not() {
        // 1056 groups fill an H200.
        assert_eq!(parts_of_a_block(1056, 16, 4 << 20), 66);
        assert_eq!(parts_of_a_block(1056, 16, 64 << 10), 4);
        assert_eq!(parts_of_a_block(1056, 16, 4 << 10), 1);
        assert_eq!(parts_of_a_block(1056, 4096, 4 << 20), 1);
    }
}
