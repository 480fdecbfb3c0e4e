//! What does the driver say of every GPU now? Nothing is written to a GPU, and no rights are needed.

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

/// Why there is nothing to watch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    #[error("there is no NVIDIA driver here: its library libnvidia-ml.so.1 cannot be loaded")]
    NoLibrary,
    #[error("NVIDIA's driver does not answer: {0}")]
    NoDriver(NvmlError),
    #[error("NVIDIA's driver does not list its GPUs: {0}")]
    NotListed(NvmlError),
    #[error("NVIDIA's driver knows no GPU here")]
    NoGpu,
    #[error("cannot start a thread for the byte counters: {0}")]
    NoThread(std::io::Error),
}

/// Held until the process ends: samples of GPM borrow it, and so does the thread that reads counters.
static NVML: OnceLock<Nvml> = OnceLock::new();

fn nvml() -> Result<&'static Nvml, NvmlError> {
    if let Some(nvml) = NVML.get() {
        return Ok(nvml);
    }
    let nvml = Nvml::init()?;
    Ok(NVML.get_or_init(|| nvml))
}

/// Watches all GPUs; each reading tells of the time since the one before.
#[derive(Debug)]
pub struct Sampler {
    devices: Vec<Device<'static>>,
    driver: Option<String>,
    counters: ByteCounters,
    gpm: Vec<Gpm>,
    last: Instant,
}

impl Sampler {
    /// Begins to watch.
    ///
    /// # Errors
    /// Where there is no driver or no GPU.
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

    /// What happened since the last reading. `at` is the date of now.
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

    /// On a machine with a driver it answers, on one without it says so; it never panics.
    #[test]
    fn without_a_driver_there_is_a_sentence() {
        match Sampler::start() {
            Ok(mut sampler) => assert!(!sampler.read(String::new()).gpus.is_empty()),
            Err(error) => assert!(error.to_string().contains("NVIDIA"), "{error}"),
        }
    }
}
