//! What does the driver report about one GPU now?

use std::fs;

use busbound_machine::live::{Bus, BusSource, GpuLost, GpuNow, MemoryNow, NvLinksNow, ProcessNow};
use busbound_machine::topology::MAX_NVLINKS;
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use super::clocks;
use crate::telemetry::link_of;
use crate::wiring::address;

/// What does not change about a GPU, kept for the time when it no longer answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity {
    index: u32,
    uuid: Option<String>,
    name: Option<String>,
    address: Option<String>,
}

impl Identity {
    pub(super) fn of(index: u32, device: Option<&Device<'_>>) -> Self {
        let Some(device) = device else { return Self { index, ..Self::default() } };
        Self {
            index: device.index().unwrap_or(index),
            uuid: device.uuid().ok(),
            name: device.name().ok(),
            address: device.pci_info().ok().map(|info| address(&info)),
        }
    }

    /// The GPU without any figures.
    pub(super) fn now(&self, lost: Option<GpuLost>) -> GpuNow {
        let Self { index, uuid, name, address } = self.clone();
        GpuNow { index, uuid, name, address, lost, ..GpuNow::default() }
    }
}

/// What an error says about the GPU itself; `None` if it is only about the figure that was asked for.
pub(super) fn lost(error: &NvmlError) -> Option<GpuLost> {
    match error {
        NvmlError::GpuLost => Some(GpuLost::GpuIsLost),
        NvmlError::NotFound => Some(GpuLost::NotFound),
        NvmlError::ResetRequired => Some(GpuLost::ResetRequired),
        _ => None,
    }
}

/// Everything except the traffic.
pub(super) fn read(device: &Device<'_>, identity: &Identity) -> GpuNow {
    // These are about the whole GPU, so that an error tells if it is there. Old drivers lack the first call.
    let (memory, busy) = (device.memory_info(), device.utilization_rates());
    let gone = memory.as_ref().err().and_then(lost).or_else(|| busy.as_ref().err().and_then(lost));
    if gone.is_some() {
        return identity.now(gone);
    }
    let busy = busy.ok();
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
    GpuNow {
        link: link_of(device),
        gpu_busy_percent: busy.as_ref().map(|busy| busy.gpu),
        memory_busy_percent: busy.map(|busy| busy.memory),
        memory: memory.ok().map(|memory| MemoryNow { used_bytes: memory.used, total_bytes: memory.total }),
        power_watts: device.power_usage().ok().map(watts),
        power_limit_watts: device.enforced_power_limit().ok().map(watts),
        sm_mhz: device.clock_info(Clock::SM).ok(),
        max_sm_mhz: device.max_clock_info(Clock::SM).ok(),
        throttled_by: device.current_throttle_reasons().ok().map(clocks::describe),
        pcie_replays: device.pcie_replay_counter().ok().map(u64::from),
        nvlinks: nvlinks(device),
        processes: processes(device),
        ..identity.now(None)
    }
}

/// The traffic of 20 ms in each direction: the driver takes that long to answer. It reports kB.
pub(super) fn window(device: &Device<'_>) -> Bus {
    let rate = |counter| device.pcie_throughput(counter).ok().map(|kilobytes| f64::from(kilobytes) * 1e3);
    let (received, sent) = (rate(PcieUtilCounter::Receive), rate(PcieUtilCounter::Send));
    let is_known = received.is_some() || sent.is_some();
    Bus {
        source: if is_known { BusSource::Window20Ms } else { BusSource::Unavailable },
        to_device_bytes_per_s: received,
        to_host_bytes_per_s: sent,
        ..Bus::default()
    }
}

/// `None` on a GPU without NVLink.
fn nvlinks(device: &Device<'_>) -> Option<NvLinksNow> {
    let states: Vec<bool> =
        (0..MAX_NVLINKS).map_while(|link| device.link_wrapper_for(link).is_active().ok()).collect();
    let active = states.iter().filter(|is_active| **is_active).count() as u32;
    (!states.is_empty()).then_some(NvLinksNow { active, received_bytes_per_s: None, sent_bytes_per_s: None })
}

/// Processes with the most memory first.
fn processes(device: &Device<'_>) -> Option<Vec<ProcessNow>> {
    let compute = device.running_compute_processes().ok();
    let graphics = device.running_graphics_processes().ok();
    let is_known = compute.is_some() || graphics.is_some();
    let mut all: Vec<ProcessNow> = Vec::new();
    for process in compute.into_iter().chain(graphics).flatten() {
        // A process that uses compute and graphics is in both lists.
        if all.iter().all(|known| known.pid != process.pid) {
            all.push(named(device, &process));
        }
    }
    all.sort_by_key(|process| (std::cmp::Reverse(process.memory_bytes), process.pid));
    is_known.then_some(all)
}

fn named(device: &Device<'_>, process: &ProcessInfo) -> ProcessNow {
    let memory_bytes = match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    };
    ProcessNow { pid: process.pid, name: process_name(device, process.pid), memory_bytes }
}

/// The name in /proc is shortest; for a process in another container's namespace, only the driver knows it.
fn process_name(device: &Device<'_>, pid: u32) -> Option<String> {
    let own = fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned());
    let own = own.filter(|name| !name.is_empty());
    own.or_else(|| {
        let path = device.nvml().sys_process_name(pid, 256).ok()?;
        path.rsplit('/').next().map(str::to_owned).filter(|name| !name.is_empty())
    })
}
