//! How long does an all-reduce take? NCCL's own model of latency and bandwidth.
//!
//! The constants come from NCCL's tuning (`src/graph/tuning.cc`), in microseconds for the protocols LL, LL128 and
//! Simple. A ring takes 2(n−1) steps; with several nodes, 2 × nodes of them cross the network. A tree goes up and down
//! through the ranks of a node and log2 of the nodes.

use busbound_machine::{Hop, Interconnect};
use serde::Serialize;

use super::{BadInput, ensure};

/// Ranks and the links between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cluster {
    pub ranks: u32,
    pub nodes: u32,
    /// Between the GPUs of a node.
    pub link: Interconnect,
    /// Between nodes: one port; `ports` is the number of ports per node.
    pub net: Option<Interconnect>,
    pub ports: u32,
}

impl Cluster {
    pub fn one_node(ranks: u32, link: Interconnect) -> Self {
        Self { ranks, nodes: 1, link, net: None, ports: 1 }
    }

    /// # Errors
    /// If the number of ranks is out of range, the nodes do not divide it, or several nodes have no network.
    pub fn check(&self) -> Result<(), BadInput> {
        ensure((1..=65_536).contains(&self.ranks), "--ranks", "between 1 and 65536", self.ranks)?;
        ensure(
            self.nodes >= 1 && self.ranks.is_multiple_of(self.nodes.max(1)),
            "--nodes",
            format!("a divisor of the {} ranks", self.ranks),
            self.nodes,
        )?;
        ensure(
            self.nodes == 1 || self.net.is_some(),
            "--net",
            "given for several nodes, for example ib-ndr",
            "missing",
        )?;
        ensure(self.ports >= 1, "--ports", "1 or more", self.ports)
    }

    pub fn ranks_per_node(&self) -> u32 {
        self.ranks / self.nodes.max(1)
    }

    /// GB/s of the slower of link and network (all ports), at the rates that NCCL assumes.
    pub fn planned_gbps(&self) -> f64 {
        self.narrowest(|link| link.nccl_gbps)
    }

    pub fn peak_gbps(&self) -> f64 {
        self.narrowest(|link| link.peak_gbps)
    }

    fn narrowest(&self, of: impl Fn(&Interconnect) -> f64) -> f64 {
        let between = self.net.as_ref().filter(|_| self.nodes > 1).map(|net| of(net) * f64::from(self.ports));
        let within = if self.ranks_per_node() > 1 { of(&self.link) } else { f64::INFINITY };
        let narrowest = between.map_or(within, |between| between.min(within));
        if narrowest.is_finite() { narrowest } else { of(&self.link) }
    }
}

/// Bytes that each GPU sends (and receives) in a ring all-reduce of `bytes`.
pub fn ring_bytes(bytes: f64, ranks: u32) -> f64 {
    if ranks <= 1 { 0.0 } else { 2.0 * f64::from(ranks - 1) / f64::from(ranks) * bytes }
}

/// Time of a ring all-reduce at a given rate, before latency.
pub fn ring_ms(bytes: f64, ranks: u32, gbps: f64) -> f64 {
    ring_bytes(bytes, ranks) / gbps / 1e6
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Protocol {
    Ll,
    Ll128,
    Simple,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Ll, Self::Ll128, Self::Simple];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ll => "LL",
            Self::Ll128 => "LL128",
            Self::Simple => "Simple",
        }
    }

    /// Share of the bandwidth that carries data: LL sends a flag with every word, LL128 with every line.
    fn efficiency(self) -> f64 {
        match self {
            Self::Ll => 0.5,
            Self::Ll128 => 0.92,
            Self::Simple => 1.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Algorithm {
    Ring,
    Tree,
}

impl Algorithm {
    /// Latency before the first step.
    fn base_us(self, protocol: Protocol) -> f64 {
        match self {
            Self::Ring => [6.6, 14.0, 8.4][protocol as usize],
            Self::Tree => [6.8, 14.0, 8.4][protocol as usize],
        }
    }
}

/// Latency of one hop.
fn hop_us(hop: Hop, protocol: Protocol) -> f64 {
    match hop {
        Hop::NvLink => [0.6, 1.9, 3.4][protocol as usize],
        Hop::Pci => [1.0, 2.5, 5.7][protocol as usize],
        Hop::Net => [2.7, 4.0, 14.0][protocol as usize],
    }
}

/// NCCL's latency of an all-reduce in microseconds.
pub fn latency_us(cluster: &Cluster, algorithm: Algorithm, protocol: Protocol) -> f64 {
    let (ranks, nodes) = (f64::from(cluster.ranks), f64::from(cluster.nodes));
    let within = hop_us(cluster.link.hop, protocol);
    let between = hop_us(Hop::Net, protocol);
    let base = algorithm.base_us(protocol);
    match algorithm {
        Algorithm::Ring => {
            let steps = 2.0 * (ranks - 1.0);
            let across = if cluster.nodes > 1 { (2.0 * nodes).min(steps) } else { 0.0 };
            base + (steps - across) * within + across * between
        }
        Algorithm::Tree => {
            let depth = f64::from(cluster.nodes.max(1).ilog2());
            base + 2.0 * ((f64::from(cluster.ranks_per_node()) - 1.0) * within + depth * between)
        }
    }
}

/// One algorithm with one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Way {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    pub latency_us: f64,
    pub ms: f64,
    /// Bytes reduced per second.
    pub algbw_gbps: f64,
    /// `algbw` × 2(n−1)/n: the link traffic, independent of the number of ranks.
    pub busbw_gbps: f64,
}

/// The time of one algorithm and protocol in NCCL's model.
pub fn way(cluster: &Cluster, bytes: f64, algorithm: Algorithm, protocol: Protocol) -> Way {
    let latency_us = latency_us(cluster, algorithm, protocol);
    let n = f64::from(cluster.ranks);
    let bus = cluster.planned_gbps() * protocol.efficiency();
    let algbw = match algorithm {
        Algorithm::Ring => bus * n / (2.0 * (n - 1.0)),
        Algorithm::Tree => bus * 0.92 * 0.5,
    };
    let ms = if cluster.ranks <= 1 { 0.0 } else { latency_us / 1e3 + bytes / algbw / 1e6 };
    let algbw_gbps = if ms > 0.0 { bytes / ms / 1e6 } else { 0.0 };
    Way { algorithm, protocol, latency_us, ms, algbw_gbps, busbw_gbps: algbw_gbps * 2.0 * (n - 1.0) / n }
}

/// The fastest protocol of an algorithm.
pub fn fastest(cluster: &Cluster, bytes: f64, algorithm: Algorithm) -> Way {
    let simple = way(cluster, bytes, algorithm, Protocol::Simple);
    // NCCL does not use LL128 over PCIe within a node: PCIe may split its 128-byte lines.
    let splits_lines = cluster.link.hop == Hop::Pci && cluster.ranks_per_node() > 1;
    let protocols =
        [Protocol::Ll, Protocol::Ll128].into_iter().filter(|p| !(splits_lines && *p == Protocol::Ll128));
    protocols
        .map(|protocol| way(cluster, bytes, algorithm, protocol))
        .fold(simple, |best, way| if way.ms < best.ms { way } else { best })
}

/// The faster of ring and tree.
pub fn allreduce_ms(cluster: &Cluster, bytes: f64) -> f64 {
    fastest(cluster, bytes, Algorithm::Ring).ms.min(fastest(cluster, bytes, Algorithm::Tree).ms)
}

/// An all-reduce over one cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllReduce {
    pub cluster: Cluster,
    pub bytes: f64,
    /// Sent by each GPU in a ring.
    pub bytes_per_gpu: f64,
    pub peak_gbps: f64,
    pub planned_gbps: f64,
    /// Time at the line peak, before latency: the lower bound for this link.
    pub at_peak_ms: f64,
    pub ring: Way,
    pub tree: Way,
}

impl AllReduce {
    /// # Errors
    /// If the cluster is invalid or there is nothing to reduce.
    pub fn plan(cluster: Cluster, bytes: f64) -> Result<Self, BadInput> {
        cluster.check()?;
        ensure(
            cluster.ranks >= 2,
            "--ranks",
            "2 or more: an all-reduce needs at least two ranks",
            cluster.ranks,
        )?;
        ensure(bytes > 0.0 && bytes < 1e18, "the size", "above zero and below 1 EB", bytes)?;
        Ok(Self {
            bytes,
            bytes_per_gpu: ring_bytes(bytes, cluster.ranks),
            peak_gbps: cluster.peak_gbps(),
            planned_gbps: cluster.planned_gbps(),
            at_peak_ms: ring_ms(bytes, cluster.ranks, cluster.peak_gbps()),
            ring: fastest(&cluster, bytes, Algorithm::Ring),
            tree: fastest(&cluster, bytes, Algorithm::Tree),
            cluster,
        })
    }

    pub fn best(&self) -> &Way {
        if self.tree.ms < self.ring.ms { &self.tree } else { &self.ring }
    }
}

/// The formulas shown with the result.
pub const FORMULAS: &[&str] = &[
    "bytes per GPU = 2 (n − 1) / n × bytes",
    "at the peak = bytes per GPU / peak, before latency",
    "ring, tree = latency + bytes / algbw in NCCL's model; the fastest of LL (50% of the bandwidth), LL128 (92%), Simple",
    "ring: algbw = NCCL rate × n / (2 (n − 1)); latency = base + steps × hop; 2 (n − 1) steps, 2 × nodes of them over the network",
    "tree: algbw = NCCL rate × 0.92 / 2; latency = base + 2 ((ranks per node − 1) × hop + log2(nodes) × network hop)",
    "busbw = algbw × 2 (n − 1) / n",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str) -> Interconnect {
        Interconnect::named(name).unwrap()
    }

    #[test]
    fn seven_billion_fp16_gradients_on_eight_gpus() {
        let bytes = 7e9 * 2.0;
        assert_eq!(ring_bytes(bytes, 8), 24.5e9);
        for (gbps, ms) in [(32.0, 765.6), (16.0, 1531.25), (300.0, 81.67), (450.0, 54.44)] {
            assert!((ring_ms(bytes, 8, gbps) - ms).abs() < 0.05, "{gbps}");
        }
    }

    #[test]
    fn latencies_match_hand_computed_values() {
        let node = Cluster::one_node(8, link("nvlink4"));
        // 6.6 + 14 × 0.6, 14 + 14 × 1.9, 8.4 + 14 × 3.4.
        for (protocol, us) in [(Protocol::Ll, 15.0), (Protocol::Ll128, 40.6), (Protocol::Simple, 56.0)] {
            assert!((latency_us(&node, Algorithm::Ring, protocol) - us).abs() < 1e-9);
        }
        // 6.8 + 2 × 7 × 0.6.
        assert!((latency_us(&node, Algorithm::Tree, Protocol::Ll) - 15.2).abs() < 1e-9);
        let pcie = Cluster::one_node(4, link("pcie4x16"));
        // 8.4 + 6 × 5.7.
        assert!((latency_us(&pcie, Algorithm::Ring, Protocol::Simple) - 42.6).abs() < 1e-9);
        let nodes =
            Cluster { ranks: 32, nodes: 4, link: link("nvlink4"), net: Some(link("ib-ndr")), ports: 8 };
        // 62 steps, 8 of them over the network: 6.6 + 54 × 0.6 + 8 × 2.7.
        assert!((latency_us(&nodes, Algorithm::Ring, Protocol::Ll) - 60.6).abs() < 1e-9);
        // 6.8 + 2 × (7 × 0.6 + 2 × 2.7).
        assert!((latency_us(&nodes, Algorithm::Tree, Protocol::Ll) - 26.0).abs() < 1e-9);
        // The ports carry 400 GB/s, NVLink 370.8.
        assert!((nodes.planned_gbps() - 370.8).abs() < 1e-9);
    }

    #[test]
    fn small_messages_are_latency_bound_and_large_ones_bandwidth_bound() {
        let node = Cluster::one_node(8, link("nvlink4"));
        assert_eq!(fastest(&node, 1e3, Algorithm::Ring).protocol, Protocol::Ll);
        let pcie = Cluster::one_node(8, link("pcie4x16"));
        for exponent in 2..10 {
            assert_ne!(fastest(&pcie, 10f64.powi(exponent), Algorithm::Ring).protocol, Protocol::Ll128);
        }
        let large = fastest(&node, 10e9, Algorithm::Ring);
        assert_eq!(large.protocol, Protocol::Simple);
        assert!((large.busbw_gbps - 370.8).abs() < 0.5, "{}", large.busbw_gbps);
    }

    #[test]
    fn errors_name_the_valid_values() {
        let with = |ranks, nodes, net: Option<&str>| Cluster {
            ranks,
            nodes,
            link: link("nvlink4"),
            net: net.map(link),
            ports: 8,
        };
        for (cluster, part) in [
            (with(0, 1, None), "between 1 and"),
            (with(1, 1, None), "2 or more"),
            (with(8, 3, Some("ib-ndr")), "a divisor of the 8 ranks"),
            (with(16, 2, None), "ib-ndr"),
        ] {
            let error = AllReduce::plan(cluster, 1e9).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(AllReduce::plan(with(8, 1, None), -1.0).is_err());
    }
}
