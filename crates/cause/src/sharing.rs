//! How much does concurrent work slow down other work?

use busbound_trace::Direction;

use crate::graph::WorkKind;

/// How much concurrent work slows down other work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// A copy's time while the other direction is busy, as a multiple of its time without contention.
    pub duplex: f64,
    /// A matrix kernel's time while copies use the bus, as a multiple of its time without copies.
    pub kernel_with_copy: f64,
    /// Matrix kernels take this multiple of their measured time.
    pub heavy: f64,
}

/// Work that has the same rate on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Copies to the device.
    Up,
    /// Copies to the host.
    Down,
    /// Matrix kernels.
    Heavy,
    /// Other kernels.
    Light,
    /// What shares nothing: copies within the device, memsets.
    Other,
}

pub(crate) const LANES: usize = 5;

impl Lane {
    pub(crate) fn of(kind: WorkKind) -> Self {
        match kind.bus() {
            Some(Direction::HostToDevice) => Self::Up,
            Some(_) => Self::Down,
            None if kind == (WorkKind::Kernel { heavy: true }) => Self::Heavy,
            None if kind.is_kernel() => Self::Light,
            None => Self::Other,
        }
    }
}

impl Sharing {
    /// The rate of each lane, if this much runs in each. Kernels on several streams share the device: kernels that are long
    /// enough to matter usually fill it.
    pub(crate) fn rates(&self, running: &[usize; LANES]) -> [f64; LANES] {
        let [up, down, heavy, light, _] = *running;
        let kernel = share_of(heavy + light);
        if up + down == 0 {
            return [1.0, 1.0, kernel, kernel, 1.0];
        }
        let (up, down) = (copy_rate(up, down, self.duplex), copy_rate(down, up, self.duplex));
        [up, down, kernel / self.kernel_with_copy, kernel, 1.0]
    }
}

/// A copy's share of the link.
fn copy_rate(same: usize, other: usize, duplex: f64) -> f64 {
    let alone = share_of(same);
    if other > 0 { alone / duplex } else { alone }
}

/// What each gets if this many share.
fn share_of(count: usize) -> f64 {
    if count > 1 { 1.0 / count as f64 } else { 1.0 }
}
