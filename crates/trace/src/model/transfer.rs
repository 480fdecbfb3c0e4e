//! What did a copy move? Direction, memory kinds and bytes of GPU copies and memsets.

use serde::{Deserialize, Serialize};

use crate::model::size::Bytes;

/// Which way a copy went.
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

/// What sort of memory one end of a copy was in.
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
    /// Host memory of a kind the trace does not tell, as AMD traces write it.
    Unknown,
}

impl MemoryKind {
    /// The word for it in sentences and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Device => "device",
            Self::Managed => "managed",
            Self::Unknown => "unknown",
        }
    }
}

/// The facts of one copy or memset on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// `None` where the trace does not say, as in AMD traces.
    pub bytes: Option<Bytes>,
    pub direction: Direction,
    pub src: MemoryKind,
    pub dst: MemoryKind,
}

impl Transfer {
    /// Reads `Memcpy HtoD (Pageable -> Device)` and its relatives.
    pub(crate) fn from_name(name: &str, bytes: Option<Bytes>) -> Self {
        let (head, ends) = match name.split_once('(') {
            Some((head, rest)) => (head, rest.trim_end_matches(')')),
            None => (name, ""),
        };
        let direction = head.split_whitespace().find_map(direction_of).unwrap_or(Direction::Unknown);
        let (src, dst) = match ends.split_once("->") {
            Some((src, dst)) => (memory_kind_of(src), memory_kind_of(dst)),
            // "Memset (Device)" has one end only.
            None => (memory_kind_of(ends), memory_kind_of(ends)),
        };
        Self { bytes, direction, src, dst }
    }
}

fn direction_of(word: &str) -> Option<Direction> {
    // Older ROCm writes the operation in one word: `CopyHostToDevice`, `CopyDeviceToHost2D`.
    let word = word.strip_prefix("Copy").map_or(word, |ends| ends.strip_suffix("2D").unwrap_or(ends));
    Some(match word {
        "HtoD" | "HtoA" | "HostToDevice" => Direction::HostToDevice,
        "DtoH" | "AtoH" | "DeviceToHost" => Direction::DeviceToHost,
        "DtoD" | "AtoA" | "AtoD" | "DtoA" | "DeviceToDevice" => Direction::DeviceToDevice,
        "PtoP" | "PeerToPeer" => Direction::PeerToPeer,
        "HtoH" | "HostToHost" => Direction::HostToHost,
        _ => return None,
    })
}

fn memory_kind_of(word: &str) -> MemoryKind {
    match word.trim() {
        "Pageable" => MemoryKind::Pageable,
        "Pinned" => MemoryKind::Pinned,
        "Device" | "Array" | "Device Static" => MemoryKind::Device,
        "Managed" | "Managed Static" | "Unified" => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_direction_and_memory_kinds() {
        use Direction::*;
        use MemoryKind::*;
        for (name, direction, src, dst) in [
            ("Memcpy HtoD (Pageable -> Device)", HostToDevice, Pageable, Device),
            ("Memcpy HtoD (Pinned -> Device)", HostToDevice, Pinned, Device),
            ("Memcpy DtoH (Device -> Pageable)", DeviceToHost, Device, Pageable),
            ("Memcpy DtoD (Device -> Device)", DeviceToDevice, Device, Device),
            ("Memcpy PtoP (Device -> Device)", PeerToPeer, Device, Device),
            ("Memcpy HtoD (Host -> Device)", HostToDevice, MemoryKind::Unknown, Device),
            ("Memset (Device)", Direction::Unknown, Device, Device),
            ("CopyHostToDevice", HostToDevice, MemoryKind::Unknown, MemoryKind::Unknown),
            ("CopyDeviceToHost2D", DeviceToHost, MemoryKind::Unknown, MemoryKind::Unknown),
            ("CopyDeviceToDevice", DeviceToDevice, MemoryKind::Unknown, MemoryKind::Unknown),
            ("CopyBuffer", Direction::Unknown, MemoryKind::Unknown, MemoryKind::Unknown),
        ] {
            let transfer = Transfer::from_name(name, None);
            assert_eq!((transfer.direction, transfer.src, transfer.dst), (direction, src, dst), "{name}");
        }
    }
}
