//! How long does an all-reduce take? NCCL's own model of latency and bandwidth, and what it is compared with.
//!
//! The constants come from NCCL's tuning (`src/graph/tuning.cc`), in microseconds for the protocols LL, LL128 and
//! Simple. A ring takes 2(n−1) steps; with several nodes, 2 × nodes of them cross the network. A tree goes up and down
//! through the ranks of a node and log2 of the nodes.
//!
//! Where NVSwitches reduce (NVLS), each GPU sends its data once plus the share that it owns, (n+1)/n of the bytes instead
//! of 2(n−1)/n, at NCCL's planned rate times NCCL's NVLS efficiency. Public results of nccl-tests: 480 GB/s busbw on
//! 8 × H100 (nccl-tests#212; 476 in #290), 475 on 8 × H200 (#272), 215 on 8 × H800 (nccl#1374), 811 on 8 × GB200
//! (lixueduan.com, 2 nodes with NVLink between them); this model gives 490, 490, 218 and 831. Over several nodes the
//! trees of the nodes are joined over the network (NVLSTree), whose interior nodes carry everything twice from three nodes
//! on.

use busbound_machine::Hop;
use serde::Serialize;

use super::cluster::Cluster;
use super::{BadInput, ensure};

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
    /// Reduced in the NVSwitches; on several nodes joined by a tree.
    Nvls,
    /// Reduce-scatter within each node, all-reduce between nodes, all-gather within each node. Not one of NCCL's own:
    /// frameworks do it with two process groups.
    Hierarchical,
    /// Every rank sends to one, which reduces and sends to every rank.
    Naive,
}

impl Algorithm {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::Nvls => "NVLS",
            Self::Hierarchical => "hierarchical",
            Self::Naive => "naive",
        }
    }

    /// Latency before the first step.
    fn base_us(self, protocol: Protocol) -> f64 {
        match self {
            Self::Ring | Self::Hierarchical | Self::Naive => [6.6, 14.0, 8.4][protocol as usize],
            Self::Tree => [6.8, 14.0, 8.4][protocol as usize],
            Self::Nvls => 0.0,
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

/// NVLS: latency within a node and of one network hop.
const NVLS_US: f64 = 25.0;
const NVLS_NET_US: f64 = 20.9;

/// NCCL's latency of an all-reduce in microseconds.
pub fn latency_us(cluster: &Cluster, algorithm: Algorithm, protocol: Protocol) -> f64 {
    let (ranks, nodes) = (f64::from(cluster.ranks), f64::from(cluster.nodes));
    let within = hop_us(cluster.link.hop, protocol);
    let between = hop_us(Hop::Net, protocol);
    let base = algorithm.base_us(protocol);
    let depth = f64::from(cluster.nodes.max(1).ilog2());
    let others = f64::from(cluster.ranks_per_node()) - 1.0;
    match algorithm {
        Algorithm::Ring => {
            let steps = 2.0 * (ranks - 1.0);
            let across = if cluster.nodes > 1 { (2.0 * nodes).min(steps) } else { 0.0 };
            base + (steps - across) * within + across * between
        }
        Algorithm::Tree => base + 2.0 * (others * within + depth * between),
        Algorithm::Nvls => NVLS_US + 2.0 * depth * NVLS_NET_US,
        // Three collectives: two within a node, one between nodes.
        Algorithm::Hierarchical => 3.0 * base + 2.0 * (others * within + (nodes - 1.0) * between),
        Algorithm::Naive => base + 2.0 * if cluster.nodes > 1 { between } else { within },
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

/// Bytes reduced per second by one algorithm, in GB/s; `None` if the cluster cannot run it.
fn algbw_gbps(cluster: &Cluster, algorithm: Algorithm) -> Option<f64> {
    let n = f64::from(cluster.ranks);
    let per_node = f64::from(cluster.ranks_per_node());
    let bus = cluster.planned_gbps();
    match algorithm {
        Algorithm::Ring => Some(bus * n / (2.0 * (n - 1.0))),
        Algorithm::Tree => Some(bus * 0.92 * 0.5),
        Algorithm::Nvls => {
            let efficiency = cluster.link.fabric.nvls_efficiency().filter(|_| per_node > 1.0)?;
            let within = cluster.link.nccl_gbps * efficiency * per_node / (per_node + 1.0);
            let share = if cluster.nodes > 2 { 0.5 } else { 1.0 };
            Some(within.min(cluster.net_gbps() * share))
        }
        Algorithm::Hierarchical => {
            let nodes = f64::from(cluster.nodes);
            let is_two_levels = cluster.nodes > 1 && per_node > 1.0;
            let within = 2.0 * (per_node - 1.0) / per_node / cluster.link.nccl_gbps;
            let between = 2.0 * (nodes - 1.0) / nodes / cluster.net_gbps();
            is_two_levels.then_some(1.0 / (within + between))
        }
        // One rank receives everything of all others, then sends as much.
        Algorithm::Naive => {
            let one = cluster.net.as_ref().filter(|_| cluster.nodes > 1);
            let hub = one.map_or(cluster.link.nccl_gbps, |port| port.nccl_gbps.min(cluster.link.nccl_gbps));
            Some(hub / (2.0 * (n - 1.0)))
        }
    }
}

/// The time of one algorithm and protocol in NCCL's model; `None` if the cluster cannot run it.
pub fn way(cluster: &Cluster, bytes: f64, algorithm: Algorithm, protocol: Protocol) -> Option<Way> {
    let latency_us = latency_us(cluster, algorithm, protocol);
    let n = f64::from(cluster.ranks);
    let algbw = algbw_gbps(cluster, algorithm)? * protocol.efficiency();
    let ms = if cluster.ranks <= 1 { 0.0 } else { latency_us / 1e3 + bytes / algbw / 1e6 };
    let algbw_gbps = if ms > 0.0 { bytes / ms / 1e6 } else { 0.0 };
    let busbw_gbps = algbw_gbps * 2.0 * (n - 1.0) / n;
    Some(Way { algorithm, protocol, latency_us, ms, algbw_gbps, busbw_gbps })
}

/// The fastest protocol of an algorithm.
pub fn fastest(cluster: &Cluster, bytes: f64, algorithm: Algorithm) -> Option<Way> {
    // NCCL does not use LL128 over PCIe within a node: PCIe may split its 128-byte lines.
    let splits_lines = cluster.link.hop == Hop::Pci && cluster.ranks_per_node() > 1;
    let is_simple = matches!(algorithm, Algorithm::Nvls | Algorithm::Hierarchical | Algorithm::Naive);
    let possible = |protocol: &Protocol| match protocol {
        Protocol::Simple => true,
        Protocol::Ll128 => !is_simple && !splits_lines,
        Protocol::Ll => !is_simple,
    };
    Protocol::ALL
        .into_iter()
        .rev()
        .filter(possible)
        .filter_map(|protocol| way(cluster, bytes, algorithm, protocol))
        .reduce(|best, way| if way.ms < best.ms { way } else { best })
}

/// The fastest of what NCCL chooses from: ring, tree and, where switches reduce, NVLS.
pub fn allreduce_ms(cluster: &Cluster, bytes: f64) -> f64 {
    [Algorithm::Ring, Algorithm::Tree, Algorithm::Nvls]
        .into_iter()
        .filter_map(|algorithm| fastest(cluster, bytes, algorithm))
        .map(|way| way.ms)
        .fold(f64::INFINITY, f64::min)
}

/// An all-reduce over one cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllReduce {
    pub cluster: Cluster,
    pub bytes: f64,
    /// Sent by each GPU in a ring.
    pub bytes_per_gpu: f64,
    /// The link within a node or the network, whichever limits a ring.
    pub limited_by: String,
    pub peak_gbps: f64,
    pub planned_gbps: f64,
    /// Time of a ring at the line peak, before latency. Not a lower bound where switches reduce.
    pub at_peak_ms: f64,
    /// GB/s between two halves of a node's GPUs in one direction; `null` without switches.
    pub bisection_gbps: Option<f64>,
    pub ring: Way,
    pub tree: Way,
    /// `null` if the switches do not reduce.
    pub nvls: Option<Way>,
    /// `null` on one node.
    pub hierarchical: Option<Way>,
    pub naive: Way,
}

impl AllReduce {
    /// # Errors
    /// If the cluster is invalid or there is nothing to reduce.
    pub fn plan(cluster: Cluster, bytes: f64) -> Result<Self, BadInput> {
        cluster.check()?;
        let ranks = cluster.ranks;
        let few = || BadInput {
            what: "--ranks",
            valid: "2 or more: an all-reduce needs at least two ranks".to_owned(),
            given: ranks.to_string(),
        };
        ensure(bytes > 0.0 && bytes < 1e18, "the size", "above zero and below 1 EB", bytes)?;
        let of = |algorithm| fastest(&cluster, bytes, algorithm).filter(|_| ranks >= 2);
        let switched = cluster.link.fabric.is_switched() && cluster.ranks_per_node() > 1;
        let half = f64::from(cluster.ranks_per_node() / 2);
        Ok(Self {
            bytes,
            bytes_per_gpu: ring_bytes(bytes, ranks),
            limited_by: cluster.limited_by(),
            peak_gbps: cluster.peak_gbps(),
            planned_gbps: cluster.planned_gbps(),
            at_peak_ms: ring_ms(bytes, ranks, cluster.peak_gbps()),
            bisection_gbps: switched.then_some(half * cluster.link.peak_gbps),
            ring: of(Algorithm::Ring).ok_or_else(few)?,
            tree: of(Algorithm::Tree).ok_or_else(few)?,
            nvls: of(Algorithm::Nvls),
            hierarchical: of(Algorithm::Hierarchical),
            naive: of(Algorithm::Naive).ok_or_else(few)?,
            cluster,
        })
    }

    /// The fastest of what NCCL chooses from.
    pub fn best(&self) -> &Way {
        let faster = if self.tree.ms < self.ring.ms { &self.tree } else { &self.ring };
        self.nvls.as_ref().filter(|nvls| nvls.ms < faster.ms).unwrap_or(faster)
    }
}

/// The formulas shown with the result.
pub const FORMULAS: &[&str] = &[
    "ring bytes per GPU = 2 (n − 1) / n × bytes",
    "ring at peak = ring bytes per GPU / peak, before latency; not a lower bound where NVSwitches reduce (NVLS)",
    "ring, tree = latency + bytes / algbw in NCCL's model; the fastest of LL (50% of the bandwidth), LL128 (92%), Simple",
    "ring: algbw = NCCL rate × n / (2 (n − 1)); latency = base + steps × hop; 2 (n − 1) steps, 2 × nodes of them over the network",
    "tree: algbw = NCCL rate × 0.92 / 2; latency = base + 2 ((ranks per node − 1) × hop + log2(nodes) × network hop)",
    "NVLS: algbw = NCCL rate × NVLS efficiency (0.85 Hopper, 0.74 Blackwell) × n / (n + 1); on several nodes at most the network of a node, half of it from 3 nodes on",
    "hierarchical = 2 (p − 1) / p × bytes within a node of p ranks + 2 (k − 1) / k × bytes over the network of k nodes; naive = 2 (n − 1) × bytes through one GPU",
    "busbw = algbw × 2 (n − 1) / n",
];

#[cfg(test)]
mod tests {
    use busbound_machine::Interconnect;

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
        assert_eq!(fastest(&node, 1e3, Algorithm::Ring).unwrap().protocol, Protocol::Ll);
        let pcie = Cluster::one_node(8, link("pcie4x16"));
        for exponent in 2..10 {
            let way = fastest(&pcie, 10f64.powi(exponent), Algorithm::Ring).unwrap();
            assert_ne!(way.protocol, Protocol::Ll128);
        }
        let large = fastest(&node, 10e9, Algorithm::Ring).unwrap();
        assert_eq!(large.protocol, Protocol::Simple);
        assert!((large.busbw_gbps - 370.8).abs() < 0.5, "{}", large.busbw_gbps);
    }

    /// Public results of nccl-tests, in GB/s busbw for large messages on 8 GPUs; sources in the module's documentation.
    #[test]
    fn nvls_reaches_what_nccl_tests_measured_within_ten_percent() {
        for (link, measured) in [("nvlink4", 480.0), ("h200", 475.0), ("h800", 215.0), ("gb200", 811.0)] {
            let plan = AllReduce::plan(Cluster::one_node(8, self::link(link)), 14e9).unwrap();
            assert_eq!(plan.best().algorithm, Algorithm::Nvls, "{link}");
            let busbw = plan.best().busbw_gbps;
            assert!((busbw / measured - 1.0).abs() < 0.10, "{link}: {busbw} against {measured}");
        }
        // 14 GB at 480 GB/s busbw are 51 ms.
        let plan = AllReduce::plan(Cluster::one_node(8, link("nvlink4")), 14e9).unwrap();
        assert!((plan.best().ms / 51.0 - 1.0).abs() < 0.10, "{}", plan.best().ms);
    }

    /// A ring at line peak was called the minimum: 54.4 ms, where NCCL takes 51.
    #[test]
    fn a_ring_time_is_not_a_lower_bound_where_switches_reduce() {
        let plan = AllReduce::plan(Cluster::one_node(8, link("nvlink4")), 14e9).unwrap();
        assert!(plan.best().ms < plan.at_peak_ms, "{} and {}", plan.best().ms, plan.at_peak_ms);
        assert_eq!(plan.bisection_gbps, Some(1800.0));
        let without = AllReduce::plan(Cluster::one_node(8, link("nvlink4").without_nvls()), 14e9).unwrap();
        assert_eq!((without.nvls, without.best().algorithm), (None, Algorithm::Ring));
        let ampere = AllReduce::plan(Cluster::one_node(8, link("nvlink3")), 14e9).unwrap();
        assert_eq!((ampere.nvls, ampere.bisection_gbps), (None, Some(1200.0)));
    }

    /// 25 GB/s of InfiniBand were called "NVLink 4, peak 25.0 GB/s".
    #[test]
    fn several_nodes_are_limited_by_their_network() {
        let nodes =
            |ports| Cluster { ranks: 32, nodes: 4, link: link("nvlink4"), net: Some(link("ib-hdr")), ports };
        let one = AllReduce::plan(nodes(1), 26e9).unwrap();
        assert_eq!((one.limited_by.as_str(), one.peak_gbps), ("InfiniBand HDR (network)", 25.0));
        assert_eq!(AllReduce::plan(nodes(8), 26e9).unwrap().limited_by, "8 × InfiniBand HDR (network)");
        assert_eq!(AllReduce::plan(nodes(16), 26e9).unwrap().limited_by, "NVLink 4");
        // 13e9 fp16 gradients in a ring over 4 nodes with 25 GB/s: 2 × 31/32 × 26 / 25 s, "about 2 s".
        assert!((one.ring.ms / 2015.0 - 1.0).abs() < 0.001, "{}", one.ring.ms);
        // Reduced within the nodes first: 2 × 3/4 × 26 / 25 s and 2 × 7/8 × 26 / 370.8 s.
        let hierarchical = one.hierarchical.unwrap();
        assert!((hierarchical.ms / (1560.0 + 122.7) - 1.0).abs() < 0.001, "{}", hierarchical.ms);
        assert_eq!(AllReduce::plan(Cluster::one_node(8, link("nvlink4")), 1e9).unwrap().hierarchical, None);
    }

    /// A hub receives 7 × 14 GB and sends as much: 196 GB instead of the ring's 24.5.
    #[test]
    fn a_naive_all_reduce_takes_as_many_times_longer_as_there_are_ranks() {
        for ranks in [2, 4, 8] {
            let plan = AllReduce::plan(Cluster::one_node(ranks, link("32")), 14e9).unwrap();
            let times = plan.naive.ms / plan.ring.ms;
            assert!((times / f64::from(ranks) - 1.0).abs() < 0.001, "{ranks}: {times}");
        }
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
