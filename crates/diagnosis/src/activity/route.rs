//! Where does a copy go? The single definition of bus copies, peer copies and copies within a device.

use busbound_trace::Direction;

/// The path of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyRoute {
    /// Over the host link, to the device.
    HostToDevice,
    /// Over the host link, from the device.
    DeviceToHost,
    /// From one GPU to another.
    Peer,
    /// Within the memory of one device.
    WithinDevice,
    /// The trace does not record whether the copy leaves the device. The device makes a host-to-host copy if both
    /// buffers are pinned; otherwise the host makes it.
    Unplaced,
}

impl CopyRoute {
    pub const ALL: [Self; 5] =
        [Self::HostToDevice, Self::DeviceToHost, Self::Peer, Self::WithinDevice, Self::Unplaced];

    pub fn of(direction: Direction) -> Self {
        match direction {
            Direction::HostToDevice => Self::HostToDevice,
            Direction::DeviceToHost => Self::DeviceToHost,
            Direction::PeerToPeer => Self::Peer,
            Direction::DeviceToDevice => Self::WithinDevice,
            Direction::HostToHost | Direction::Unknown => Self::Unplaced,
        }
    }

    /// A bus copy: it crosses the link between host and device.
    pub fn is_bus(self) -> bool {
        matches!(self, Self::HostToDevice | Self::DeviceToHost)
    }

    /// A transfer: a bus copy or a peer copy.
    pub fn is_transfer(self) -> bool {
        self.is_bus() || self == Self::Peer
    }
}
