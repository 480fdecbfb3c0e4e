//! How much is measured? Quick or full, the size of the copies, and the repetitions of a task.

use serde::{Deserialize, Serialize};

use super::statistics::Patience;

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Mode {
    Quick,
    Full,
}

/// How long a task may repeat.
impl Mode {
    pub fn patience(self) -> Patience {
        match self {
            Self::Quick => Patience { least: 7, most: 60, ns: 60_000_000, within: 0.01 },
            Self::Full => Patience { least: 11, most: 120, ns: 300_000_000, within: 0.005 },
        }
    }

    /// Whole steps are longer and steadier than copies.
    pub fn step_patience(self) -> Patience {
        match self {
            Self::Quick => Patience { least: 5, most: 15, ns: 150_000_000, within: 0.01 },
            Self::Full => Patience { least: 7, most: 30, ns: 500_000_000, within: 0.01 },
        }
    }
}

/// What the machine has available for measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub gpus: u32,
    /// The largest copy, in bytes.
    pub largest: u64,
    /// Whether memory migrates between host and device.
    pub managed: bool,
    /// The NUMA nodes that have CPUs.
    pub nodes: NodeSet,
}

/// NUMA nodes, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeSet(u64);

impl NodeSet {
    pub const EMPTY: Self = Self(0);

    /// Nodes above 63 are left out: no machine with GPUs has as many.
    pub fn of(nodes: impl IntoIterator<Item = u32>) -> Self {
        Self(nodes.into_iter().filter(|node| *node < u64::BITS).fold(0, |set, node| set | 1 << node))
    }

    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |node| self.0 & (1 << node) != 0)
    }

    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Chooses the largest copy so that most of the free GPU memory stays free: suites hold at most two such buffers.
pub fn limits(
    (gpus, nodes): (u32, NodeSet),
    free_device: u64,
    free_host: u64,
    managed: bool,
    mode: Mode,
) -> Limits {
    let wanted = match mode {
        Mode::Quick => 256 * MIB,
        Mode::Full => 1024 * MIB,
    };
    let room = (free_device / 8).min(free_host / 8).max(MIB);
    let largest = if wanted <= room { wanted } else { 1 << room.ilog2() };
    Limits { gpus, largest, managed, nodes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: (u32, NodeSet) = (1, NodeSet::EMPTY);

    #[test]
    fn low_memory_limits_the_copy_size() {
        assert_eq!(limits(ONE, 80 << 30, 64 << 30, true, Mode::Full).largest, 1 << 30);
        assert_eq!(limits(ONE, 80 << 30, 64 << 30, true, Mode::Quick).largest, 256 << 20);
        // 3 GiB free: one eighth, rounded down to a power of two.
        assert_eq!(limits(ONE, 3 << 30, 64 << 30, true, Mode::Full).largest, 256 << 20);
        assert_eq!(limits(ONE, 0, 0, true, Mode::Quick).largest, 1 << 20);
    }
}
