//! How much does concurrent work slow down other work?

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

impl Sharing {
    /// How much slower a kernel runs while this many copies use the bus.
    pub(crate) fn slowdown(&self, kind: WorkKind, copies: usize) -> f64 {
        let is_heavy = kind == WorkKind::Kernel { heavy: true };
        if is_heavy && copies > 0 { self.kernel_with_copy } else { 1.0 }
    }
}

/// A copy's share of the link.
pub(crate) fn rate(same: usize, other: usize, duplex: f64) -> f64 {
    let alone = 1.0 / same.max(1) as f64;
    if other > 0 { alone / duplex } else { alone }
}
