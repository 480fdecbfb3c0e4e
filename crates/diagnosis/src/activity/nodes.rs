//! On which NUMA node is the host memory of copies, and is that near the GPU?

use busbound_trace::{HostNode, Numa};

use crate::activity::copies::Copy;

/// Where the host memory of a copy is, seen from its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    Near,
    /// On another socket.
    Far {
        memory: u32,
        gpu: u32,
    },
    /// On several nodes.
    Spread,
    /// Its node, that of the GPU, or their distance is not recorded.
    Unknown,
}

pub(crate) fn placement(numa: &Numa, copy: &Copy<'_>) -> Placement {
    let (Some(node), Some(gpu)) = (copy.event.host_node(), numa.gpus.get(&copy.device)) else {
        return Placement::Unknown;
    };
    match node {
        HostNode::Several => Placement::Spread,
        HostNode::One(memory) => match numa.is_far(memory, *gpu) {
            Some(true) => Placement::Far { memory, gpu: *gpu },
            Some(false) => Placement::Near,
            None => Placement::Unknown,
        },
    }
}

/// Bytes of copies between host and GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PlacedBytes {
    pub(crate) near: u64,
    pub(crate) far: u64,
    pub(crate) spread: u64,
    pub(crate) unknown: u64,
}

impl PlacedBytes {
    pub(crate) fn of(numa: &Numa, copies: &[Copy<'_>]) -> Self {
        let mut all = Self::default();
        for copy in copies.iter().filter(|copy| copy.host_memory().is_some()) {
            let bytes = copy.bytes().unwrap_or(0);
            let sum = match placement(numa, copy) {
                Placement::Near => &mut all.near,
                Placement::Far { .. } => &mut all.far,
                Placement::Spread => &mut all.spread,
                Placement::Unknown => &mut all.unknown,
            };
            *sum = sum.saturating_add(bytes);
        }
        all
    }

    pub(crate) fn total(&self) -> u64 {
        [self.near, self.far, self.spread, self.unknown].into_iter().fold(0, u64::saturating_add)
    }

    /// The share of bytes whose placement is known; 1 without bytes.
    pub(crate) fn known_share(&self) -> f64 {
        if self.total() == 0 { 1.0 } else { 1.0 - self.unknown as f64 / self.total() as f64 }
    }
}
