//! Where does the measuring thread run, and on which machine?

use std::path::Path;

use busbound_machine::bench::Identity;

use crate::driver::{Gpu, Result, cuda_version};
use crate::host;
use crate::telemetry::Telemetry;

/// The CPUs next to a GPU, and whether this thread is bound to them.
pub(super) struct Seat {
    place: host::Place,
    pinned: bool,
}

impl Seat {
    /// Binds this thread to the CPUs next to the GPU at this address.
    pub(super) fn near(pci_address: &str) -> Self {
        let place = host::place_of(Path::new("/"), pci_address);
        #[cfg(target_os = "linux")]
        let pinned = place.cpus.as_deref().is_some_and(crate::affinity::pin_to);
        // Other systems do not say which CPUs are close.
        #[cfg(not(target_os = "linux"))]
        let pinned = false;
        Self { place, pinned }
    }

    pub(super) fn identity(&self, gpu: &Gpu, gpus: u32, telemetry: Option<&Telemetry>) -> Result<Identity> {
        Ok(Identity {
            gpu: gpu.name()?,
            pci_address: gpu.pci_address()?,
            gpus,
            driver: telemetry.and_then(Telemetry::driver).unwrap_or_else(|| "unknown".to_owned()),
            cuda: cuda_version(),
            memory_bytes: gpu.memory()?.1,
            multiprocessors: gpu.multiprocessors()?,
            power_limit_watts: telemetry.and_then(Telemetry::power_limit_watts),
            link: None,
            host_cpu: host::cpu_name(),
            host_memory_bytes: host::memory(),
            kernel: host::kernel(),
            numa_node: self.place.numa_node,
            pinned_to_cpus: self.place.cpus.clone().filter(|_| self.pinned),
            virtual_machine: host::is_virtual(),
        })
    }
}
