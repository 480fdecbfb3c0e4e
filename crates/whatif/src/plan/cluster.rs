//! Which ranks take part in a collective, and over what?

use busbound_machine::Interconnect;
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

    /// What limits a ring: the links within a node, or the network.
    pub fn limited_by(&self) -> String {
        let within = if self.ranks_per_node() > 1 { self.link.nccl_gbps } else { f64::INFINITY };
        match &self.net {
            Some(net) if self.nodes > 1 && self.net_gbps() < within => match self.ports {
                1 => format!("{} (network)", net.name),
                ports => format!("{ports} × {} (network)", net.name),
            },
            _ => self.link.name.clone(),
        }
    }

    /// GB/s of all network ports of a node; infinite on one node.
    pub fn net_gbps(&self) -> f64 {
        match &self.net {
            Some(net) if self.nodes > 1 => net.nccl_gbps * f64::from(self.ports),
            _ => f64::INFINITY,
        }
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
