//! What does the driver report about every GPU now? Nothing is written to a GPU, and no privileges are needed.

mod byte_counters;
mod clocks;
mod device;
mod gpm;

use std::sync::OnceLock;
use std::time::Instant;

use busbound_machine::live::{Bus, BusSource, GpuLost, GpuNow, Snapshot, Traffic};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use self::byte_counters::ByteCounters;
use self::device::Identity;
use self::gpm::Gpm;

/// Why no GPU can be monitored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    #[error("no NVIDIA driver found: libnvidia-ml.so.1 cannot be loaded")]
    NoLibrary,
    #[error("the NVIDIA driver does not respond: {0}")]
    NoDriver(NvmlError),
    #[error("the NVIDIA driver cannot list its GPUs: {0}")]
    NotListed(NvmlError),
    #[error("the NVIDIA driver finds no GPU")]
    NoGpu,
    #[error("cannot start a thread for the byte counters: {0}")]
    NoThread(std::io::Error),
}

/// Kept until the process ends: GPM samples borrow it, and so does the thread that reads counters.
static NVML: OnceLock<Nvml> = OnceLock::new();

fn nvml() -> Result<&'static Nvml, NvmlError> {
    if let Some(nvml) = NVML.get() {
        return Ok(nvml);
    }
    let nvml = Nvml::init()?;
    Ok(NVML.get_or_init(|| nvml))
}

/// Monitors all GPUs; each reading covers the time since the previous one.
#[derive(Debug)]
pub struct Sampler {
    gpus: Vec<Gpu>,
    driver: Option<String>,
    counters: ByteCounters,
    last: Instant,
}

/// One GPU of the driver's list.
#[derive(Debug)]
struct Gpu {
    identity: Identity,
    access: Result<(Device<'static>, Gpm), GpuLost>,
}

impl Gpu {
    /// `None` for a GPU that we may not ask.
    fn at(nvml: &'static Nvml, index: u32) -> Option<Self> {
        match nvml.device_by_index(index) {
            Ok(device) => {
                let (identity, gpm) = (Identity::of(index, Some(&device)), Gpm::start(nvml, &device));
                Some(Self { identity, access: Ok((device, gpm)) })
            }
            Err(error) => {
                let lost = device::lost(&error)?;
                Some(Self { identity: Identity::of(index, None), access: Err(lost) })
            }
        }
    }

    fn read(&mut self, counted: Option<(Traffic, Traffic)>) -> GpuNow {
        let (device, gpm) = match &mut self.access {
            Ok((device, gpm)) => (&*device, gpm),
            Err(lost) => return self.identity.now(Some(*lost)),
        };
        let averages = gpm.read(device);
        let mut gpu = device::read(device, &self.identity);
        if gpu.lost.is_some() {
            return gpu;
        }
        gpu.bus = match counted {
            Some((to_device, to_host)) => Bus {
                source: BusSource::ByteCounters,
                to_device_bytes_per_s: to_device.bytes_per_s().map(f64::round),
                to_host_bytes_per_s: to_host.bytes_per_s().map(f64::round),
                unknown_share: to_device.unknown_share().max(to_host.unknown_share()),
                ..Bus::default()
            },
            None => averages.bus().unwrap_or_else(|| device::window(device)),
        };
        if let Some(nvlinks) = &mut gpu.nvlinks {
            nvlinks.received_bytes_per_s = averages.nvlink_received;
            nvlinks.sent_bytes_per_s = averages.nvlink_sent;
        }
        gpu
    }
}

impl Sampler {
    /// Starts monitoring.
    ///
    /// # Errors
    /// If there is no driver or no GPU.
    pub fn start() -> Result<Self, LiveError> {
        let nvml = nvml().map_err(|error| match error {
            NvmlError::LibloadingError(_) => LiveError::NoLibrary,
            error => LiveError::NoDriver(error),
        })?;
        let count = nvml.device_count().map_err(LiveError::NotListed)?;
        let gpus: Vec<Gpu> = (0..count).filter_map(|index| Gpu::at(nvml, index)).collect();
        if gpus.is_empty() {
            return Err(LiveError::NoGpu);
        }
        let devices: Vec<Option<&Device<'static>>> =
            gpus.iter().map(|gpu| gpu.access.as_ref().ok().map(|(device, _)| device)).collect();
        let counters = ByteCounters::start(nvml, &devices).map_err(LiveError::NoThread)?;
        Ok(Self { driver: nvml.sys_driver_version().ok(), counters, gpus, last: Instant::now() })
    }

    /// What happened since the last reading. `at` is the current date.
    pub fn read(&mut self, at: String) -> Snapshot {
        let traffic = self.counters.take();
        let interval_s = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        let gpus = self.gpus.iter_mut().zip(traffic).map(|(gpu, counted)| gpu.read(counted)).collect();
        let interval_s = (interval_s * 1e6).round() / 1e6;
        Snapshot { driver: self.driver.clone(), ..Snapshot::new(at, interval_s, gpus) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a driver it returns data, without one it returns an error; it never panics.
    #[test]
    fn without_a_driver_there_is_an_error_message() {
        match Sampler::start() {
            Ok(mut sampler) => assert!(!sampler.read(String::new()).gpus.is_empty()),
            Err(error) => assert!(error.to_string().contains("NVIDIA"), "{error}"),
        }
    }
}
