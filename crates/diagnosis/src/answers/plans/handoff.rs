//! How do activations get from one pipeline stage to the next: from GPU to GPU, or through host memory?

use busbound_machine::LinkFacts;
use busbound_machine::bench::Direction;
use busbound_whatif::plan::parallel::{Arrangement, Exchange, Parallel};
use serde::Serialize;

/// A comparison of layouts, and how its pipeline hands activations over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParallelAnswer {
    #[serde(flatten)]
    pub plan: Parallel,
    /// Of the fastest layout with a pipeline within a node; `null` if there is none.
    pub handoff: Option<Handoff>,
}

/// The bytes between two stages per step, over both ways.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Handoff {
    pub layout: String,
    pub bytes: f64,
    pub microbatches: u32,
    pub over: String,
    /// From GPU to GPU.
    pub peer_ms: f64,
    pub peer_exposed_ms: f64,
    /// To the host and from there, in chunks, so that both copies run at the same time on their own links.
    pub host_link: String,
    pub host_gbps: f64,
    pub host_ms: f64,
    pub host_exposed_ms: f64,
    /// The same, if the second copy waits for the first to end.
    pub host_serial_ms: f64,
}

impl ParallelAnswer {
    /// `host` is the link of a GPU to its host.
    pub fn of(plan: Parallel, host: &LinkFacts) -> Self {
        let handoff = plan.ranked.iter().find_map(|layout| handoff(layout, host, &plan));
        Self { plan, handoff }
    }
}

/// `None` without a pipeline, and where it crosses the network.
fn handoff(layout: &Arrangement, host: &LinkFacts, plan: &Parallel) -> Option<Handoff> {
    if layout.degrees.pipeline < 2 {
        return None;
    }
    let within = &plan.inputs.cluster.link.name;
    let is_handoff = |exchange: &&Exchange| exchange.what.starts_with("pipeline") && exchange.over == *within;
    let exchange = layout.exchanges.iter().find(is_handoff)?;
    let (up_gbps, down_gbps) = (host.reachable_gbps(), host.reachable_of(Direction::D2h));
    let host_gbps = up_gbps.min(down_gbps);
    let host_ms = exchange.bytes / host_gbps / 1e6;
    Some(Handoff {
        layout: layout.name.clone(),
        bytes: exchange.bytes,
        microbatches: layout.microbatches,
        over: exchange.over.clone(),
        peer_ms: exchange.ms,
        peer_exposed_ms: exchange.exposed_ms,
        host_link: host.name.clone(),
        host_gbps,
        host_ms,
        // As from GPU to GPU, only the first micro-batch waits for its transfer.
        host_exposed_ms: host_ms / f64::from(layout.microbatches),
        host_serial_ms: exchange.bytes / up_gbps / 1e6 + exchange.bytes / down_gbps / 1e6,
    })
}
