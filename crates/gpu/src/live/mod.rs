//! What does the driver report about every GPU now? Nothing is written to a GPU, and no privileges are needed.

mod byte_counters;
mod clocks;
mod device;
mod gpm;

use std::sync::OnceLock;
use std::time::Instant;

use busbound_machine::live::{Bus, BusSource, Snapshot};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use self::byte_counters::ByteCounters;
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
    devices: Vec<Device<'static>>,
    driver: Option<String>,
    counters: ByteCounters,
    gpm: Vec<Gpm>,
    last: Instant,
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
        let devices: Vec<Device<'static>> = (0..count).filter_map(|i| nvml.device_by_index(i).ok()).collect();
        if devices.is_empty() {
            return Err(LiveError::NoGpu);
        }
        let counters = ByteCounters::start(nvml, &devices).map_err(LiveError::NoThread)?;
        let gpm = devices.iter().map(|device| Gpm::start(nvml, device)).collect();
        Ok(Self { driver: nvml.sys_driver_version().ok(), counters, gpm, devices, last: Instant::now() })
    }

    /// What happened since the last reading. `at` is the current date.
    pub fn read(&mut self, at: String) -> Snapshot {
        let traffic = self.counters.take();
        let interval_s = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        let mut gpus = Vec::new();
        for ((device, gpm), counted) in self.devices.iter().zip(&mut self.gpm).zip(traffic) {
            let averages = gpm.read(device);
            let mut gpu = device::read(device);
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
            gpus.push(gpu);
        }
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
