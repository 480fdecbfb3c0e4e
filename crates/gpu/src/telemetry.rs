//! What does the driver report about the GPU under load: link, clock, power?

use busbound_machine::bench::{LinkSeen, PowerSample};
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::{Device, Nvml};

/// NVML for one GPU. If it does not respond, the values are unknown.
#[derive(Debug)]
pub(crate) struct Telemetry {
    nvml: Nvml,
    index: u32,
}

impl Telemetry {
    /// For the GPU at this PCI address: CUDA and NVML may number GPUs differently.
    pub(crate) fn of(pci_address: &str) -> Option<Self> {
        let nvml = Nvml::init().ok()?;
        let index = nvml.device_by_pci_bus_id(pci_address).ok()?.index().ok()?;
        Some(Self { nvml, index })
    }

    pub(crate) fn driver(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    pub(crate) fn power_limit_watts(&self) -> Option<f64> {
        let device = self.nvml.device_by_index(self.index).ok()?;
        device.enforced_power_limit().ok().map(|milliwatts| f64::from(milliwatts) / 1e3)
    }

    pub(crate) fn link(&self) -> Option<LinkSeen> {
        let device = self.nvml.device_by_index(self.index).ok()?;
        link_of(&device)
    }

    pub(crate) fn power(&self) -> Option<PowerSample> {
        let device = self.nvml.device_by_index(self.index).ok()?;
        Some(PowerSample {
            sm_mhz: device.clock_info(Clock::SM).ok()?,
            watts: f64::from(device.power_usage().ok()?) / 1e3,
        })
    }
}

/// The current state of the GPU's own link.
pub(crate) fn link_of(device: &Device<'_>) -> Option<LinkSeen> {
    Some(LinkSeen {
        generation: device.current_pcie_link_gen().ok()?,
        lanes: device.current_pcie_link_width().ok()?,
        max_generation: device.max_pcie_link_gen().ok()?,
        max_lanes: device.max_pcie_link_width().ok()?,
    })
}
