//! How is this machine wired? GPUs, switches and host bridges, and the connections between them.
//!
//! The tree comes from sysfs ([`from_sysfs`]), from NCCL's topology file ([`from_nccl`]) or, without a hierarchy, from
//! saved `nvidia-smi topo -m` output ([`from_smi`]). [`Found::topology`] interprets it without I/O.

mod judge;
pub(crate) mod nccl;
mod nccl_paths;
mod remark;
mod remarks;
mod saved;
pub(crate) mod smi;
pub(crate) mod sysfs;
mod traffic;

use serde::{Deserialize, Serialize};

pub use nccl::{NcclError, from_nccl};
pub use remark::Remark;
pub use saved::{SavedError, gpu_places, saved_topology};
pub use smi::from_smi;
pub use sysfs::from_sysfs;
pub use traffic::{
    Assumption, GpuTraffic, Meeting, NoTraffic, PeerRoute, SharedWire, TrafficKind, TrafficPlan, Via,
};

use crate::link::PcieLink;

pub const TOPOLOGY_SCHEMA: &str = "busbound.topology/1";

/// The source of a tree that Linux lists.
pub(crate) const SYSFS: &str = "sysfs";

/// The largest number of NVLinks of any GPU, and the most that NVML can enumerate.
pub const MAX_NVLINKS: u32 = 18;

/// Index of a device in the list of PCI devices.
pub type DeviceIndex = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DeviceKind {
    Gpu,
    Nic,
    Nvme,
    /// A port of a switch, or a root port.
    Bridge,
    NvSwitch,
    Other,
}

/// One PCI device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PciDevice {
    /// `0000:17:00.0`.
    pub address: String,
    pub kind: DeviceKind,
    /// The name from the driver or the PCI id catalog; `null` if neither has one.
    pub name: Option<String>,
    /// The bridge above; `null` directly below a host bridge.
    pub parent: Option<DeviceIndex>,
    /// `pci0000:16`: the same for all devices below one host bridge.
    pub host_bridge: String,
    /// `null` if the system reports −1 or nothing.
    pub numa: Option<u32>,
    pub cpus: Option<String>,
    pub link: Option<HopLink>,
    /// Whether access control (ACS) redirects peer traffic upstream; `null` if that cannot be read.
    pub acs: Option<bool>,
}

/// A link's current state and its maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopLink {
    pub generation: u8,
    pub lanes: u8,
    pub max_generation: u8,
    pub max_lanes: u8,
}

impl HopLink {
    /// GB/s in one direction at the current speed and width.
    pub fn now_gbps(self) -> f64 {
        PcieLink { generation: self.generation, lanes: self.lanes }.peak_gbps()
    }

    /// The link under load: at the maximum speed with the current lanes.
    pub fn under_load(self) -> PcieLink {
        PcieLink { generation: self.max_generation, lanes: self.lanes }
    }

    /// GB/s in one direction under load.
    pub fn under_load_gbps(self) -> f64 {
        self.under_load().peak_gbps()
    }
}

/// What a path between two devices crosses, closest first; named as in `nvidia-smi topo -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Connection {
    /// Bonded NVLinks.
    #[serde(rename = "NV")]
    NvLink(u32),
    /// One PCIe switch.
    #[serde(rename = "PIX")]
    Pix,
    /// Several PCIe switches.
    #[serde(rename = "PXB")]
    Pxb,
    /// A host bridge.
    #[serde(rename = "PHB")]
    Phb,
    /// Host bridges of one NUMA node.
    #[serde(rename = "NODE")]
    Node,
    /// The link between sockets.
    #[serde(rename = "SYS")]
    Sys,
}

impl Connection {
    pub fn word(self) -> String {
        match self {
            Self::NvLink(links) => format!("NV{links}"),
            Self::Pix => "PIX".to_owned(),
            Self::Pxb => "PXB".to_owned(),
            Self::Phb => "PHB".to_owned(),
            Self::Node => "NODE".to_owned(),
            Self::Sys => "SYS".to_owned(),
        }
    }

    /// `NV18`, `PIX` and so on.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "PIX" => Self::Pix,
            "PXB" => Self::Pxb,
            "PHB" => Self::Phb,
            "NODE" => Self::Node,
            "SYS" | "SOC" => Self::Sys,
            _ => Self::NvLink(word.strip_prefix("NV")?.parse().ok()?),
        })
    }
}

/// Two devices and the connection between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    pub a: String,
    pub b: String,
    pub connection: Connection,
    /// Peer access by kind, as the driver reports it; empty if not queried. Only moving data proves it.
    pub peer_access: Vec<PeerAccess>,
}

impl Pair {
    /// Whether the driver refuses that the GPUs read or write each other's memory.
    pub fn is_refused(&self) -> bool {
        self.peer_access
            .iter()
            .any(|access| ["read", "write"].contains(&access.kind.as_str()) && access.is_refused())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeerAccess {
    /// `read`, `write`, `nvlink`, `atomics`, `prop`.
    pub kind: String,
    /// `ok`, or why not.
    pub status: String,
}

impl PeerAccess {
    pub fn is_granted(&self) -> bool {
        self.status == "ok"
    }

    /// What the driver does not know is not refused.
    pub fn is_refused(&self) -> bool {
        !self.is_granted() && self.status != "unknown"
    }
}

/// How DMA addresses are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Iommu {
    Off,
    /// Present, but addresses pass through unchanged.
    PassThrough,
    Translating,
    Unknown,
}

/// The machine as it was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topology {
    pub schema: &'static str,
    /// `sysfs`, `NCCL topology file`, `nvidia-smi topo -m`.
    pub source: String,
    pub devices: Vec<PciDevice>,
    pub gpus: Vec<GpuPlace>,
    pub pairs: Vec<Pair>,
    /// Where NVSwitches connect all GPUs: GB/s in one direction between two halves of them.
    pub bisection_gbps: Option<f64>,
    pub numa_nodes: Option<u32>,
    pub iommu: Iommu,
    /// `null` if it cannot be determined.
    pub virtual_machine: Option<String>,
    pub is_virtual: bool,
    /// Bytes that may be pinned; `null` if unlimited or unknown.
    pub pinned_limit: Option<u64>,
    pub memory_limit: Option<u64>,
    pub driver: bool,
    /// The maker of the processors, as `/proc/cpuinfo` spells it; `null` if unknown. NCCL's defaults depend on it.
    pub processor: Option<String>,
    pub remarks: Vec<Remark>,
}

/// A GPU and its path to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuPlace {
    pub index: u32,
    pub address: String,
    pub name: Option<String>,
    /// The rank that uses it, if NCCL's file says so.
    #[serde(default)]
    pub rank: Option<u32>,
    pub numa: Option<u32>,
    pub cpus: Option<String>,
    /// The command that binds a process to its NUMA node; `null` if the machine has one node or it is unknown.
    pub numactl: Option<String>,
    /// From the GPU up to the root, one hop per link.
    pub path: Vec<Hop>,
    /// The hop with the lowest rate under load.
    pub narrowest: Option<usize>,
    /// The rate of that hop under load, GB/s in one direction.
    pub host_gbps: Option<f64>,
    /// NVLinks to all peers.
    pub nvlinks: u32,
    /// The peak of these links together, GB/s in one direction; `null` if their generation is not known.
    #[serde(default)]
    pub nvlink_gbps: Option<f64>,
    /// GPUs that share its PCIe uplink to the host, including itself.
    pub sharing: u32,
    /// Devices on the same switch: NICs and NVMe drives that can reach it without the host.
    pub beside: Vec<String>,
    /// The GPU itself.
    #[serde(default)]
    pub facts: DeviceFacts,
}

/// What the driver reports about a GPU itself, or NCCL's file; the rest is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Compute capability, major and minor.
    pub capability: Option<(u32, u32)>,
    pub memory_bytes: Option<u64>,
    /// Streaming multiprocessors.
    pub multiprocessors: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop {
    pub address: String,
    pub link: HopLink,
}

/// A GPU as its driver reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverGpu {
    pub address: String,
    pub name: Option<String>,
    pub facts: DeviceFacts,
}

/// What a reader found, before interpretation.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub(crate) source: String,
    /// Whether ports list the link below them, as in sysfs.
    pub(crate) links_at_both_ends: bool,
    pub(crate) devices: Vec<PciDevice>,
    /// The rank that uses each GPU.
    pub(crate) ranks: Vec<(DeviceIndex, u32)>,
    /// What is known about each GPU itself.
    pub(crate) facts: Vec<(DeviceIndex, DeviceFacts)>,
    /// Bonded NVLinks between two GPUs, by their addresses.
    pub(crate) nvlinks: Vec<(String, String, u32)>,
    /// Pairs as another tool reported them.
    pub(crate) printed_pairs: Vec<Pair>,
    pub(crate) numa_nodes: Option<u32>,
    pub(crate) iommu: Option<Iommu>,
    pub(crate) virtual_machine: Option<String>,
    pub(crate) is_virtual: bool,
    pub(crate) pinned_limit: Option<u64>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) driver: bool,
    pub(crate) processor: Option<String>,
}

impl Found {
    /// Adds what the driver's library reports: NVLinks, peer access, names, memory and so on.
    pub fn with_driver(
        mut self,
        nvlinks: Vec<(String, String, u32)>,
        pairs: Vec<Pair>,
        gpus: &[DriverGpu],
    ) -> Self {
        self.nvlinks.extend(nvlinks);
        self.printed_pairs.extend(pairs);
        for (index, device) in self.devices.iter_mut().enumerate() {
            if let Some(gpu) = gpus.iter().find(|gpu| gpu.address == device.address) {
                device.name = gpu.name.clone().or(device.name.take());
                self.facts.push((index, gpu.facts));
            }
        }
        self.driver = true;
        self
    }

    /// Interprets what was found.
    pub fn topology(self) -> Topology {
        judge::topology(self)
    }
}

/// `32.0 GT/s PCIe` → 5.
pub(crate) fn generation_of(speed: &str) -> Option<u8> {
    let rate: f64 = speed.split_whitespace().next()?.parse().ok()?;
    Some(match rate {
        r if r < 2.0 => return None,
        r if r < 3.0 => 1,
        r if r < 6.0 => 2,
        r if r < 10.0 => 3,
        r if r < 20.0 => 4,
        r if r < 40.0 => 5,
        _ => 6,
    })
}

/// PCI vendor IDs.
const NVIDIA: u32 = 0x10de;
pub(crate) const AMD: u32 = 0x1002;

/// The kind of a device, by PCI class and vendor.
pub(crate) fn kind_of(class: u32, vendor: u32) -> DeviceKind {
    match (class >> 16, class >> 8) {
        // 3D and VGA controllers from NVIDIA and AMD, and AMD's processing accelerators.
        (0x03, _) if [NVIDIA, AMD].contains(&vendor) => DeviceKind::Gpu,
        (0x12, _) if vendor == AMD => DeviceKind::Gpu,
        (_, 0x0604) => DeviceKind::Bridge,
        (_, 0x0680) if vendor == NVIDIA => DeviceKind::NvSwitch,
        (0x02, _) => DeviceKind::Nic,
        (_, 0x0108) => DeviceKind::Nvme,
        _ => DeviceKind::Other,
    }
}

/// The path from a device up to the last one below its host bridge, starting with the device.
fn ancestors(devices: &[PciDevice], device: DeviceIndex) -> Vec<DeviceIndex> {
    let mut path = vec![device];
    while let Some(parent) = devices[path[path.len() - 1]].parent.filter(|parent| !path.contains(parent)) {
        path.push(parent);
    }
    path
}
