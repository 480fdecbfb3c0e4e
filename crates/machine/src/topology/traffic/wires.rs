//! Which wires does traffic cross? Every link of the PCI tree in each direction, and the NVLinks of GPUs and pairs.

use crate::fair_share::Flow;
use crate::interconnect::NvLinkGeneration;
use crate::link::{DUPLEX, NCCL_SHARE, REACHED_BY_LARGE_COPIES};

use super::super::{Connection, GpuPlace, Pair, Topology, ancestors};
use super::{SharedWire, Via};

/// What one wire is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire {
    /// A link of the PCI tree, by its place in [`Wires::hops`].
    Pcie {
        hop: usize,
        way: Way,
    },
    NvLink,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ToGpu,
    FromGpu,
    /// Both directions: full duplex, but together less than twice one direction.
    Both,
}

/// A link of the PCI tree.
struct HopWires {
    address: String,
    /// How many GPUs are below it.
    gpus: usize,
}

/// The wires of a machine.
pub(super) struct Wires<'a> {
    topology: &'a Topology,
    hops: Vec<HopWires>,
    wires: Vec<Wire>,
    pub(super) gbps: Vec<f64>,
    /// For each GPU: its NVLinks, in and out.
    nvlink_of_gpu: Vec<[usize; 2]>,
    /// For each ordered pair with NVLinks: from, to, wire.
    nvlink_of_pair: Vec<(usize, usize, usize)>,
    /// GB/s of one NVLink that NCCL plans with.
    pub(super) each_nvlink_gbps: f64,
}

/// How traffic gets from one place to another.
pub(super) struct Route {
    pub(super) via: Via,
    pub(super) flow: Flow,
}

impl<'a> Wires<'a> {
    pub(super) fn of(topology: &'a Topology, nvlink: &NvLinkGeneration) -> Self {
        let mut wires = Self {
            topology,
            hops: Vec::new(),
            wires: Vec::new(),
            gbps: Vec::new(),
            nvlink_of_gpu: Vec::new(),
            nvlink_of_pair: Vec::new(),
            each_nvlink_gbps: nvlink.nccl_gbps,
        };
        for hop in topology.gpus.iter().flat_map(|gpu| &gpu.path) {
            if let Some(known) = wires.hops.iter_mut().find(|known| known.address == hop.address) {
                known.gpus += 1;
                continue;
            }
            let (number, peak_gbps) = (wires.hops.len(), hop.link.under_load_gbps());
            wires.hops.push(HopWires { address: hop.address.clone(), gpus: 1 });
            let reached = peak_gbps * REACHED_BY_LARGE_COPIES;
            for (way, gbps) in [(Way::ToGpu, reached), (Way::FromGpu, reached), (Way::Both, DUPLEX * reached)]
            {
                wires.add(Wire::Pcie { hop: number, way }, gbps);
            }
        }
        for gpu in &topology.gpus {
            let gbps = f64::from(gpu.nvlinks) * nvlink.nccl_gbps;
            let both = [wires.add(Wire::NvLink, gbps), wires.add(Wire::NvLink, gbps)];
            wires.nvlink_of_gpu.push(both);
        }
        wires.add_pairs(nvlink);
        wires
    }

    fn add_pairs(&mut self, nvlink: &NvLinkGeneration) {
        let gpus = self.topology.gpus.len();
        for (from, to) in (0..gpus).flat_map(|from| (0..gpus).map(move |to| (from, to))) {
            if let Some(Connection::NvLink(links)) = self.pair(from, to).map(|pair| pair.connection) {
                let wire = self.add(Wire::NvLink, f64::from(links) * nvlink.nccl_gbps);
                self.nvlink_of_pair.push((from, to, wire));
            }
        }
    }

    fn add(&mut self, wire: Wire, gbps: f64) -> usize {
        self.wires.push(wire);
        self.gbps.push(gbps);
        self.wires.len() - 1
    }

    /// The entry of two GPUs in the topology.
    pub(super) fn pair(&self, a: usize, b: usize) -> Option<&'a Pair> {
        let (a, b) = (&self.topology.gpus[a].address, &self.topology.gpus[b].address);
        let is = |pair: &&Pair| pair.a == *a && pair.b == *b || pair.a == *b && pair.b == *a;
        self.topology.pairs.iter().find(is)
    }

    fn hop(&self, address: &str) -> Option<usize> {
        self.hops.iter().position(|hop| hop.address == address)
    }

    /// The wires of a link of the PCI tree in one direction.
    fn on_hop(&self, address: &str, way: Way) -> impl Iterator<Item = (usize, f64)> {
        let first = self.hop(address).unwrap_or_default() * 3;
        let direction = if way == Way::ToGpu { first } else { first + 1 };
        [(direction, 1.0), (first + 2, 1.0)].into_iter()
    }

    /// What host copies of one GPU use.
    pub(super) fn to_host(&self, gpu: usize, to_gpu: bool) -> Flow {
        let way = if to_gpu { Way::ToGpu } else { Way::FromGpu };
        let place = &self.topology.gpus[gpu];
        let uses = place.path.iter().flat_map(|hop| self.on_hop(&hop.address, way)).collect();
        Flow { alone: place.host_gbps.unwrap_or(0.0) * REACHED_BY_LARGE_COPIES, uses: merged(uses) }
    }

    /// What a copy from one GPU to another uses.
    pub(super) fn between(&self, from: usize, to: usize) -> Route {
        let of_pair = self.nvlink_of_pair.iter().find(|(a, b, _)| (*a, *b) == (from, to));
        let refused = self.pair(from, to).is_some_and(Pair::is_refused);
        if let Some(&(.., wire)) = of_pair.filter(|_| !refused) {
            let gbps = self.gbps[wire];
            let uses =
                vec![(self.nvlink_of_gpu[from][1], 1.0), (self.nvlink_of_gpu[to][0], 1.0), (wire, 1.0)];
            return Route { via: Via::NvLink, flow: Flow { alone: gbps, uses } };
        }
        let (a, b) = (&self.topology.gpus[from], &self.topology.gpus[to]);
        let redirected = self.is_redirected(a, b);
        let to_the_top = refused || redirected;
        let crossed = |gpu: &'a GpuPlace, other: &'a GpuPlace| {
            // Below the switch that both share; what sends traffic to the host crosses everything.
            let is_shared = move |address: &str| other.path.iter().any(|hop| hop.address == address);
            gpu.path.iter().filter(move |hop| to_the_top || !is_shared(&hop.address))
        };
        let up = crossed(a, b).flat_map(|hop| self.on_hop(&hop.address, Way::FromGpu));
        let down = crossed(b, a).flat_map(|hop| self.on_hop(&hop.address, Way::ToGpu));
        let uses = merged(up.chain(down).collect());
        let connection = self.pair(from, to).map(|pair| pair.connection);
        let via = match connection {
            _ if refused => Via::HostMemory,
            _ if redirected => Via::Redirected,
            Some(Connection::Pix | Connection::Pxb) => Via::PcieSwitch,
            Some(Connection::Sys) => Via::Sockets,
            _ => Via::HostBridge,
        };
        let slowest = a.host_gbps.unwrap_or(0.0).min(b.host_gbps.unwrap_or(0.0));
        let least = crossed(a, b).chain(crossed(b, a)).map(|hop| hop.link.under_load_gbps());
        let peak = least.fold(f64::INFINITY, f64::min);
        let peak = if peak.is_finite() { peak } else { slowest };
        Route { via, flow: Flow { alone: peak * NCCL_SHARE, uses } }
    }

    /// Whether access control sends the traffic of two GPUs below one switch to the host bridge and back.
    fn is_redirected(&self, a: &GpuPlace, b: &GpuPlace) -> bool {
        let devices = &self.topology.devices;
        let path = |gpu: &GpuPlace| {
            let at = devices.iter().position(|device| device.address == gpu.address);
            at.map(|at| ancestors(devices, at)).unwrap_or_default()
        };
        let (a, b) = (path(a), path(b));
        let shares_switch = a.iter().any(|device| b.contains(device));
        shares_switch && a.iter().chain(&b).any(|&device| devices[device].acs == Some(true))
    }

    /// The same with the NVLinks of the GPUs only: NCCL makes as many rings as it takes to use all of a GPU's links.
    pub(super) fn in_rings(&self, from: usize, to: usize) -> Route {
        let mut route = self.between(from, to);
        if route.via == Via::NvLink {
            let [into, out] = [self.nvlink_of_gpu[to][0], self.nvlink_of_gpu[from][1]];
            route.flow =
                Flow { alone: self.gbps[into].min(self.gbps[out]), uses: vec![(out, 1.0), (into, 1.0)] };
        }
        route
    }

    /// What two kinds of traffic share: directions first, both directions of one link only if there is nothing else.
    pub(super) fn shared(&self, first: &[Flow], second: &[Flow]) -> Vec<SharedWire> {
        let uses =
            |flows: &[Flow], wire: usize| flows.iter().any(|flow| flow.uses.iter().any(|u| u.0 == wire));
        let mut all: Vec<SharedWire> = Vec::new();
        for (number, wire) in self.wires.iter().enumerate() {
            if !uses(first, number) || !uses(second, number) {
                continue;
            }
            let shared = match *wire {
                Wire::NvLink => SharedWire::NvLink,
                Wire::Pcie { way: Way::Both, .. } => SharedWire::Duplex,
                Wire::Pcie { hop, way } => match (self.hops[hop].gpus > 1, way) {
                    (true, Way::ToGpu) => SharedWire::UplinkIn,
                    (true, _) => SharedWire::UplinkOut,
                    (false, Way::ToGpu) => SharedWire::LinkIn,
                    (false, _) => SharedWire::LinkOut,
                },
            };
            if !all.contains(&shared) {
                all.push(shared);
            }
        }
        if all.len() > 1 {
            all.retain(|wire| *wire != SharedWire::Duplex);
        }
        all.sort_unstable();
        all
    }
}

/// Each wire once, with the sum of its uses.
pub(super) fn merged(uses: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    let mut all: Vec<(usize, f64)> = Vec::new();
    for (wire, times) in uses {
        match all.iter_mut().find(|(known, _)| *known == wire) {
            Some((_, sum)) => *sum += times,
            None => all.push((wire, times)),
        }
    }
    all
}
