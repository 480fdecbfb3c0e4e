//! What did a copy move? Direction, memory kinds and bytes of GPU copies and memsets.

use serde::{Deserialize, Serialize};

use crate::model::size::Bytes;

/// Direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    #[serde(rename = "h2d")]
    HostToDevice,
    #[serde(rename = "d2h")]
    DeviceToHost,
    /// Within one device.
    #[serde(rename = "d2d")]
    DeviceToDevice,
    /// Between two devices.
    #[serde(rename = "p2p")]
    PeerToPeer,
    #[serde(rename = "h2h")]
    HostToHost,
    #[serde(rename = "unknown")]
    Unknown,
}

/// The kind of memory at one end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryKind {
    /// Ordinary host memory: the driver stages it through pinned buffers.
    Pageable,
    /// Page-locked host memory.
    Pinned,
    Device,
    Managed,
    /// Host memory of unknown kind, as AMD traces write it.
    Unknown,
}

impl MemoryKind {
    /// Its name in sentences and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Device => "device",
            Self::Managed => "managed",
            Self::Unknown => "unknown",
        }
    }

    /// As in the names of copies.
    fn label(self) -> &'static str {
        match self {
            Self::Pageable => "Pageable",
            Self::Pinned => "Pinned",
            Self::Device => "Device",
            Self::Managed => "Managed",
            Self::Unknown => "Unknown",
        }
    }
}

/// The facts of one copy or memset on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// `None` if not recorded, as in AMD traces.
    pub bytes: Option<Bytes>,
    pub direction: Direction,
    pub src: MemoryKind,
    pub dst: MemoryKind,
}

impl Transfer {
    /// From host memory of a kind to the device.
    pub fn host_to_device(from: MemoryKind, bytes: u64) -> Self {
        let direction = Direction::HostToDevice;
        Self { bytes: Some(Bytes::new(bytes)), direction, src: from, dst: MemoryKind::Device }
    }

    /// From the device to host memory of a kind.
    pub fn device_to_host(to: MemoryKind, bytes: u64) -> Self {
        let direction = Direction::DeviceToHost;
        Self { bytes: Some(Bytes::new(bytes)), direction, src: MemoryKind::Device, dst: to }
    }

    /// Within one device.
    pub fn device_to_device(bytes: u64) -> Self {
        let (direction, device) = (Direction::DeviceToDevice, MemoryKind::Device);
        Self { bytes: Some(Bytes::new(bytes)), direction, src: device, dst: device }
    }

    /// Between two devices.
    pub fn peer_to_peer(bytes: u64) -> Self {
        Self { direction: Direction::PeerToPeer, ..Self::device_to_device(bytes) }
    }

    /// A memset: nothing moves, memory of this kind is written.
    pub fn memset(memory: MemoryKind, bytes: Option<Bytes>) -> Self {
        Self { bytes, direction: Direction::Unknown, src: memory, dst: memory }
    }
}

/// The names that profilers show for transfers.
impl Transfer {
    /// `Memcpy HtoD (Pinned -> Device)`.
    pub(crate) fn copy_label(&self) -> String {
        let direction = match self.direction {
            Direction::HostToDevice => "HtoD",
            Direction::DeviceToHost => "DtoH",
            Direction::DeviceToDevice => "DtoD",
            Direction::PeerToPeer => "PtoP",
            Direction::HostToHost => "HtoH",
            Direction::Unknown => "Unknown",
        };
        format!("Memcpy {direction} ({} -> {})", self.src.label(), self.dst.label())
    }

    /// `Memset (Device)`.
    pub(crate) fn memset_label(&self) -> String {
        format!("Memset ({})", self.dst.label())
    }
}
