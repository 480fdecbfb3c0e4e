//! The part of the CUDA driver that the benchmarks need. Everything that must be freed frees itself.

#![expect(unsafe_code, reason = "the driver is a C library; each block says why the call is sound")]

mod hold;
mod kernels;
mod memory;
mod scatter;
mod stream;

use std::ffi::c_int;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

pub(crate) use hold::Hold;
pub(crate) use kernels::{Kernels, TENSOR_BYTES, mix};
pub(crate) use memory::{DeviceBuffer, HostBuffer, ManagedBuffer, held_at_most};
pub(crate) use scatter::{BatchCall, BlockTable, Span, copy_on_host};
pub(crate) use stream::{Event, Stream};

/// Why a GPU cannot be used, or stopped being usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    #[error(
        "no NVIDIA driver found (libcuda cannot be loaded): `busbound bench` needs a machine with an NVIDIA GPU"
    )]
    NoDriver,
    #[error("the NVIDIA driver finds no GPU: {0}")]
    NoGpu(String),
    #[error("no GPU {wanted}: CUDA shows {count}, numbered from 0")]
    NoSuchGpu { wanted: u32, count: u32 },
    #[error("the CUDA driver failed: {0}")]
    Driver(String),
    #[error("cannot allocate {0} bytes of host memory")]
    HostMemory(u64),
    #[error(
        "CUDA_LAUNCH_BLOCKING is set: every launch would wait for the GPU and all times would be wrong; unset it"
    )]
    LaunchBlocking,
    #[error("stopped")]
    Stopped,
}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        let name = error.error_name().ok().map(|name| name.to_string_lossy().into_owned());
        let text = error.error_string().ok().map(|text| text.to_string_lossy().into_owned());
        Self::Driver(match (name, text) {
            (Some(name), Some(text)) => format!("{text} ({name})"),
            _ => format!("{error:?}"),
        })
    }
}

pub(crate) type Result<T> = std::result::Result<T, CudaError>;

/// The number of GPUs.
///
/// # Errors
/// Without a driver or a GPU.
pub(crate) fn gpus() -> Result<u32> {
    // SAFETY: it only tries to load the library; its initializers are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let sentence = |error: DriverError| match CudaError::from(error) {
        CudaError::Driver(text) => CudaError::NoGpu(text),
        other => other,
    };
    result::init().map_err(sentence)?;
    match result::device::get_count().map_err(sentence)? {
        count if count > 0 => Ok(count as u32),
        _ => Err(CudaError::NoGpu("it lists no devices".to_owned())),
    }
}

/// The newest CUDA version that the driver supports.
pub(crate) fn cuda_version() -> String {
    let mut version: c_int = 0;
    // SAFETY: the pointer is to a live integer; `gpus` has loaded the library.
    let answer = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    match answer.result() {
        Ok(()) => format!("{}.{}", version / 1000, version % 1000 / 10),
        Err(_) => "unknown".to_owned(),
    }
}

/// One GPU, current for this thread.
#[derive(Debug)]
pub(crate) struct Gpu {
    ordinal: u32,
    device: sys::CUdevice,
    context: sys::CUcontext,
}

impl Gpu {
    pub(crate) fn open(ordinal: u32) -> Result<Self> {
        let count = gpus()?;
        if ordinal >= count {
            return Err(CudaError::NoSuchGpu { wanted: ordinal, count });
        }
        let device = result::device::get(ordinal as c_int)?;
        // SAFETY: the driver just returned this device; Drop releases what is retained.
        let context = unsafe { result::primary_ctx::retain(device)? };
        let gpu = Self { ordinal, device, context };
        gpu.make_current()?;
        Ok(gpu)
    }

    /// The number that CUDA gives it in this process.
    pub(crate) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    pub(crate) fn make_current(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(CudaError::from)
    }

    pub(crate) fn name(&self) -> Result<String> {
        Ok(result::device::get_name(self.device)?)
    }

    /// As in sysfs and NVML.
    pub(crate) fn pci_address(&self) -> Result<String> {
        let part = |attribute| self.attribute(attribute).map(|value| value as u32);
        Ok(format!(
            "{:04x}:{:02x}:{:02x}.0",
            part(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            part(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            part(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?
        ))
    }

    /// Different for every GPU, and for every instance of a divided one.
    pub(crate) fn uuid(&self) -> Result<String> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the driver returned this device, and the pointer is to a live UUID.
        unsafe { sys::cuDeviceGetUuid_v2(&raw mut uuid, self.device) }.result()?;
        Ok(uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect())
    }

    pub(crate) fn multiprocessors(&self) -> Result<u32> {
        Ok(self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32)
    }

    /// Major and minor, e.g. 9 and 0.
    pub(crate) fn compute_capability(&self) -> Result<(i32, i32)> {
        Ok((
            self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    /// Whether managed memory migrates while both sides may access it.
    pub(crate) fn migrates(&self) -> Result<bool> {
        Ok(self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? != 0)
    }

    fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<i32> {
        // SAFETY: the driver returned this device.
        Ok(unsafe { result::device::get_attribute(self.device, attribute)? })
    }

    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.make_current()?;
        let (free, total) = result::mem_get_info()?;
        Ok((free as u64, total as u64))
    }

    /// Whether this GPU can read and write the other's memory; enables peer access if so.
    pub(crate) fn reaches(&self, other: &Self) -> Result<bool> {
        let mut able: c_int = 0;
        // SAFETY: the driver returned both devices, and the pointer is to a live integer.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut able, self.device, other.device) }.result()?;
        if able == 0 {
            return Ok(false);
        }
        self.make_current()?;
        // SAFETY: the other context is retained as long as `other` lives.
        let answer = unsafe { sys::cuCtxEnablePeerAccess(other.context, 0) };
        match answer {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            answer => Ok(answer.result().map(|()| true)?),
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`, released once here.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}
