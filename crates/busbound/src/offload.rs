//! What does a run show about layers whose weights are offloaded to the host?

use busbound_diagnosis::Diagnosis;
use busbound_machine::{LinkFacts, Machine};
use busbound_trace::Direction;
use busbound_whatif::Range;

/// Smaller copies are batches and scalars, not weights.
const SMALLEST_WEIGHTS_BYTES: u64 = 1 << 20;

/// What an offload plan takes from a recorded run.
#[derive(Debug, Clone)]
pub struct SeenLayers {
    /// Large H2D copies per step.
    pub layers: u32,
    /// Bytes per layer.
    pub bytes: f64,
    /// Compute time per layer.
    pub compute_ms: Range,
    pub link: LinkFacts,
}

impl SeenLayers {
    /// `None` without large H2D copies or without kernels.
    pub fn of(run: &Diagnosis) -> Option<Self> {
        let inbound = run.copies.iter().filter(|group| group.direction == Direction::HostToDevice);
        let large =
            inbound.flat_map(|group| &group.sizes).filter(|class| class.from_bytes >= SMALLEST_WEIGHTS_BYTES);
        let (count, bytes) =
            large.fold((0.0, 0.0), |(n, b), class| (n + class.count as f64, b + class.bytes as f64));
        let steps = run.step_count();
        let layers = (count / steps).round();
        if layers < 1.0 || run.time.compute_ms <= 0.0 {
            return None;
        }
        let gpu = run.machine.gpus.first();
        Some(Self {
            layers: layers as u32,
            bytes: bytes / count,
            compute_ms: Range::one(run.time.compute_ms / steps / layers),
            link: gpu.map_or_else(|| Machine::default().link_of(None), |gpu| gpu.link.clone()),
        })
    }
}
