//! Which wires do copies and collectives share on this machine, and what does it cost when they meet?
//!
//! Computed from the tree: host copies cross every link up to the host; copies between GPUs cross what lies below the
//! switch that both share, everything up to the host bridge without one, or NVLink. Traffic that meets on a wire gets
//! max-min fair rates. All GPUs do the same at the same time.

mod ring;
#[cfg(test)]
mod tests;
mod wires;

use serde::Serialize;

use super::{Connection, DeviceKind, SYSFS, Topology};
use crate::catalog::{Fabric, gpu_of_name};
use crate::fair_share::{Flow, fair_rates};
use crate::interconnect::{Hop, Interconnect, NvLinkGeneration, PLANNED_SHARE};
use crate::link::{NCCL_SHARE, PcieLink};
use crate::resolve::LinkFacts;
use ring::ring;
use wires::{Wires, merged};

/// What crosses wires, on every GPU at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    H2d,
    D2h,
    AllToAll,
    AllReduce,
}

impl TrafficKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::H2d => "H2D copies",
            Self::D2h => "D2H copies",
            Self::AllToAll => "all-to-all",
            Self::AllReduce => "all-reduce",
        }
    }
}

/// What two kinds of traffic share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedWire {
    /// A GPU's own PCIe link, towards the GPU.
    LinkIn,
    /// A GPU's own PCIe link, from the GPU.
    LinkOut,
    /// A link above several GPUs, towards them.
    UplinkIn,
    /// A link above several GPUs, from them.
    UplinkOut,
    /// Both directions of a link: full duplex, but together less than twice one direction.
    Duplex,
    NvLink,
}

/// How a copy gets from one GPU to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    NvLink,
    /// Below one PCIe switch, or several.
    PcieSwitch,
    /// Below one switch, but access control (ACS) sends it to the host bridge and back.
    Redirected,
    HostBridge,
    /// Over the link between sockets too.
    Sockets,
    /// The driver refuses peer access: to host memory, and from there.
    HostMemory,
}

/// A GPU, its link to the host, and who shares its PCIe uplink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuTraffic {
    pub index: u32,
    pub address: String,
    pub name: Option<String>,
    /// The slowest hop to the host, under load.
    pub link: PcieLink,
    /// GPUs that share its PCIe uplink.
    pub shares_uplink_with: Vec<u32>,
    /// GB/s of all of its NVLinks in one direction, as NCCL plans; 0 without NVLink.
    pub nvlink_gbps: f64,
    /// Host copies of this GPU alone, GB/s in one direction.
    pub alone_gbps: f64,
    /// While all GPUs copy in the same direction.
    pub h2d_all_gbps: f64,
    pub d2h_all_gbps: f64,
    /// H2D while all GPUs copy in both directions.
    pub h2d_duplex_gbps: f64,
}

/// A copy from one GPU to another, alone and while all GPUs copy from or to the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeerRoute {
    pub from: u32,
    pub to: u32,
    pub connection: Connection,
    pub via: Via,
    pub alone_gbps: f64,
    pub shares_with_h2d: Vec<SharedWire>,
    pub with_h2d_gbps: f64,
    pub shares_with_d2h: Vec<SharedWire>,
    pub with_d2h_gbps: f64,
}

/// Two kinds of traffic alone and at the same time: the rates of the slowest GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meeting {
    pub first: TrafficKind,
    pub second: TrafficKind,
    pub shares: Vec<SharedWire>,
    pub first_alone_gbps: f64,
    pub first_together_gbps: f64,
    pub second_alone_gbps: f64,
    pub second_together_gbps: f64,
}

impl Meeting {
    /// How much longer the first takes, in percent.
    pub fn first_slower_pct(&self) -> f64 {
        100.0 * (self.first_alone_gbps / self.first_together_gbps - 1.0)
    }

    pub fn second_slower_pct(&self) -> f64 {
        100.0 * (self.second_alone_gbps / self.second_together_gbps - 1.0)
    }
}

/// What was not in the topology, and is assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Assumption {
    /// The driver was not asked: there may be NVLinks.
    NoNvlinks,
    /// The generation of the NVLinks is not known.
    NvlinkRate,
    /// Some routes cross the link between sockets, which has no rate here.
    SocketsAreFree,
    /// The host of a virtual machine may have other switches than it shows.
    AsTheHypervisorShows,
    /// The driver was not asked whether GPUs may access each other.
    PeerAccess,
}

/// The traffic of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrafficPlan {
    pub source: String,
    pub gpus: Vec<GpuTraffic>,
    /// Every ordered pair of GPUs.
    pub routes: Vec<PeerRoute>,
    /// The order of the ring that all-reduce is computed for, by index.
    pub ring: Vec<u32>,
    /// Per GPU, alone: busbw of a ring, and bytes that each GPU sends in an all-to-all; `null` with one GPU.
    pub all_reduce_gbps: Option<f64>,
    pub all_to_all_gbps: Option<f64>,
    pub meetings: Vec<Meeting>,
    /// What the NVLinks end at; at other GPUs if there are none.
    pub fabric: Fabric,
    pub assumptions: Vec<Assumption>,
}

/// Why a topology does not tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTraffic {
    #[error(
        "has no GPU: give that of a machine with GPUs, saved there with `busbound topo -o topo.json` or NCCL_TOPO_DUMP_FILE"
    )]
    NoGpu,
    #[error(
        "does not list the links of GPU{0}: save it with `busbound topo -o topo.json` on that machine, or with NCCL_TOPO_DUMP_FILE"
    )]
    NoLinks(u32),
    #[error(
        "has NVSwitches, but not the NVLinks of the GPUs: save it with `busbound topo -o topo.json` where the driver is loaded, or with NCCL_TOPO_DUMP_FILE"
    )]
    NvlinksNotRead,
    #[error("is of GPUs with NVLink-C2C to the host, whose host copies do not use the links of the tree")]
    ChipToChip,
}

impl TrafficPlan {
    /// # Errors
    /// If the topology does not say which links there are.
    pub fn of(topology: &Topology) -> Result<Self, NoTraffic> {
        check(topology)?;
        let known = nvlink_generation(topology);
        let nvlink = known.unwrap_or(NvLinkGeneration::ASSUMED);
        let wires = Wires::of(topology, nvlink);
        let gpus = 0..topology.gpus.len();
        let h2d: Vec<Flow> = gpus.clone().map(|gpu| wires.to_host(gpu, true)).collect();
        let d2h: Vec<Flow> = gpus.clone().map(|gpu| wires.to_host(gpu, false)).collect();
        let order = ring(&wires, topology.gpus.len());
        let reduce = all_reduce(&wires, &order);
        let exchange = all_to_all(&wires, topology.gpus.len());
        let rate =
            |flow: &Option<Flow>| flow.as_ref().map(|flow| least(&wires, std::slice::from_ref(flow), &[]).0);
        let kinds = [
            (TrafficKind::H2d, h2d.clone()),
            (TrafficKind::D2h, d2h.clone()),
            (TrafficKind::AllToAll, exchange.iter().cloned().collect()),
            (TrafficKind::AllReduce, reduce.iter().cloned().collect()),
        ];
        let routes: Vec<PeerRoute> = gpus
            .clone()
            .flat_map(|from| gpus.clone().map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| peer_route(&wires, topology, [from, to], &h2d, &d2h))
            .collect();
        Ok(Self {
            source: topology.source.clone(),
            gpus: gpus.map(|gpu| gpu_traffic(&wires, topology, gpu, &h2d, &d2h)).collect(),
            ring: order.iter().map(|&gpu| topology.gpus[gpu].index).collect(),
            all_reduce_gbps: rate(&reduce),
            all_to_all_gbps: rate(&exchange),
            meetings: meetings(&wires, &kinds),
            fabric: fabric(topology, nvlink),
            assumptions: assumptions(topology, known.is_some(), &routes),
            routes,
        })
    }

    /// Whether every GPU reaches every other one over NVLink.
    pub fn is_all_nvlink(&self) -> bool {
        !self.routes.is_empty() && self.routes.iter().all(|route| route.via == Via::NvLink)
    }

    /// The link to the host of the GPU that gets least while all copy, and as many ranks as would have to share it to
    /// leave each that much.
    pub fn host_link(&self) -> (LinkFacts, u32) {
        let slowest = self.gpus.iter().min_by(|a, b| a.h2d_all_gbps.total_cmp(&b.h2d_all_gbps));
        let Some(gpu) = slowest else { return (LinkFacts::recorded(PcieLink::ASSUMED, 0.0), 1) };
        let nvlink = if self.is_all_nvlink() { gpu.nvlink_gbps / PLANNED_SHARE } else { 0.0 };
        // Tolerates floating-point error just above a whole number.
        let sharing = (gpu.alone_gbps / gpu.h2d_all_gbps - 1e-6).ceil().max(1.0);
        (LinkFacts::recorded(gpu.link, nvlink), sharing as u32)
    }

    /// What collectives run over: NVLink between all, else the slower of a ring and an all-to-all over PCIe; `None` with one
    /// GPU.
    pub fn interconnect(&self) -> Option<Interconnect> {
        let slower = self.all_reduce_gbps?.min(self.all_to_all_gbps?);
        let (name, hop, share) = if self.is_all_nvlink() {
            ("NVLink of the topology", Hop::NvLink, PLANNED_SHARE)
        } else {
            ("PCIe of the topology", Hop::Pci, NCCL_SHARE)
        };
        let peak_gbps = slower / share;
        Some(Interconnect {
            name: name.to_owned(),
            hop,
            peak_gbps,
            nccl_gbps: slower,
            fabric: self.fabric,
            gpu: None,
        })
    }

    /// The most that anything takes longer when it meets other traffic, in percent.
    pub fn worst_pct(&self, of: TrafficKind, with: TrafficKind) -> f64 {
        let percent = |met: &Meeting| match (met.first, met.second) {
            pair if pair == (of, with) => met.first_slower_pct(),
            pair if pair == (with, of) => met.second_slower_pct(),
            _ => 0.0,
        };
        self.meetings.iter().map(percent).fold(0.0, f64::max)
    }
}

fn check(topology: &Topology) -> Result<(), NoTraffic> {
    if topology.gpus.is_empty() {
        return Err(NoTraffic::NoGpu);
    }
    let catalog = |name: &Option<String>| name.as_deref().and_then(gpu_of_name);
    if topology.gpus.iter().filter_map(|gpu| catalog(&gpu.name)).any(|gpu| gpu.c2c.is_some()) {
        return Err(NoTraffic::ChipToChip);
    }
    if let Some(gpu) = topology.gpus.iter().find(|gpu| gpu.path.is_empty()) {
        return Err(NoTraffic::NoLinks(gpu.index));
    }
    let has_switches = topology.devices.iter().any(|device| device.kind == DeviceKind::NvSwitch);
    if has_switches && topology.gpus.iter().all(|gpu| gpu.nvlinks == 0) {
        return Err(NoTraffic::NvlinksNotRead);
    }
    Ok(())
}

/// By the GPU's compute capability, reported or from its name.
fn nvlink_generation(topology: &Topology) -> Option<&'static NvLinkGeneration> {
    topology.gpus.iter().find_map(|gpu| {
        let listed = gpu.name.as_deref().and_then(gpu_of_name).and_then(|facts| facts.capability);
        NvLinkGeneration::of_capability(gpu.facts.capability.or(listed)?)
    })
}

/// Through switches, every pair has all links of its GPUs; between more than two GPUs, direct links are fewer.
fn fabric(topology: &Topology, nvlink: &NvLinkGeneration) -> Fabric {
    let is_switched = topology.gpus.len() > 2
        && topology.gpus.iter().all(|gpu| gpu.nvlinks > 0)
        && topology.gpus.iter().all(|gpu| {
            let of_gpu = topology.pairs.iter().filter(|pair| pair.a == gpu.address || pair.b == gpu.address);
            let mut between = of_gpu.filter(|pair| matches!(pair.connection, Connection::NvLink(_)));
            between.all(|pair| pair.connection == Connection::NvLink(gpu.nvlinks))
        });
    if is_switched { nvlink.fabric } else { Fabric::Direct }
}

fn assumptions(topology: &Topology, is_rate_known: bool, routes: &[PeerRoute]) -> Vec<Assumption> {
    let nvlinks = topology.gpus.iter().any(|gpu| gpu.nvlinks > 0);
    let several = topology.gpus.len() > 1;
    let asked = topology.pairs.iter().any(|pair| !pair.peer_access.is_empty());
    let all = [
        (Assumption::NoNvlinks, several && !nvlinks && topology.source == SYSFS && !asked),
        (Assumption::NvlinkRate, nvlinks && !is_rate_known),
        (Assumption::SocketsAreFree, routes.iter().any(|route| route.via == Via::Sockets)),
        (Assumption::AsTheHypervisorShows, topology.is_virtual && several),
        (Assumption::PeerAccess, several && !asked),
    ];
    all.into_iter().filter(|(_, applies)| *applies).map(|(assumption, _)| assumption).collect()
}

/// A ring: each GPU sends what it reduces to the next one. One flow, because it is as fast as its slowest part.
fn all_reduce(wires: &Wires<'_>, order: &[usize]) -> Option<Flow> {
    let next = order.iter().cycle().skip(1);
    let parts = order.iter().zip(next).filter(|(from, to)| from != to).map(|(&from, &to)| (from, to, 1.0));
    in_step(wires, parts.collect())
}

/// Each GPU sends an equal part to every other one.
fn all_to_all(wires: &Wires<'_>, gpus: usize) -> Option<Flow> {
    let pairs = (0..gpus).flat_map(|from| (0..gpus).map(move |to| (from, to)));
    let parts = pairs.filter(|(from, to)| from != to).map(|(from, to)| (from, to, 1.0 / (gpus - 1) as f64));
    in_step(wires, parts.collect())
}

/// Parts of a collective: from, to, and the share of a GPU's bytes.
fn in_step(wires: &Wires<'_>, parts: Vec<(usize, usize, f64)>) -> Option<Flow> {
    let mut uses = Vec::new();
    let mut alone = f64::INFINITY;
    for &(from, to, share) in &parts {
        let route = if share < 1.0 { wires.between(from, to) } else { wires.in_rings(from, to) };
        alone = alone.min(route.flow.alone / share);
        uses.extend(route.flow.uses.iter().map(|&(wire, times)| (wire, times * share)));
    }
    let uses = merged(uses);
    // Over PCIe a GPU cannot send more than NCCL plans for its link, however many it sends to.
    let most = uses.iter().map(|&(wire, times)| wires.gbps[wire] / times).fold(f64::INFINITY, f64::min);
    let planned = parts.iter().map(|&(from, to, _)| wires.in_rings(from, to).flow.alone);
    let planned = planned.fold(f64::INFINITY, f64::min);
    (!parts.is_empty()).then(|| Flow { alone: alone.min(most).min(planned), uses })
}

fn peer_route(
    wires: &Wires<'_>,
    topology: &Topology,
    [from, to]: [usize; 2],
    h2d: &[Flow],
    d2h: &[Flow],
) -> PeerRoute {
    let route = wires.between(from, to);
    let flow = std::slice::from_ref(&route.flow);
    PeerRoute {
        from: topology.gpus[from].index,
        to: topology.gpus[to].index,
        connection: wires.pair(from, to).map_or(Connection::Sys, |pair| pair.connection),
        via: route.via,
        alone_gbps: least(wires, flow, &[]).0,
        shares_with_h2d: wires.shared(flow, h2d),
        with_h2d_gbps: least(wires, flow, h2d).0,
        shares_with_d2h: wires.shared(flow, d2h),
        with_d2h_gbps: least(wires, flow, d2h).0,
    }
}

fn gpu_traffic(wires: &Wires<'_>, topology: &Topology, gpu: usize, h2d: &[Flow], d2h: &[Flow]) -> GpuTraffic {
    let place = &topology.gpus[gpu];
    let shares = |other: &&super::GpuPlace| {
        other.index != place.index
            && other.path.iter().any(|hop| place.path.iter().any(|own| own.address == hop.address))
    };
    let both: Vec<Flow> = h2d.iter().chain(d2h).cloned().collect();
    GpuTraffic {
        index: place.index,
        address: place.address.clone(),
        name: place.name.clone(),
        link: place.narrowest.map_or(PcieLink::ASSUMED, |hop| place.path[hop].link.under_load()),
        shares_uplink_with: topology.gpus.iter().filter(shares).map(|other| other.index).collect(),
        nvlink_gbps: f64::from(place.nvlinks) * wires.each_nvlink_gbps,
        alone_gbps: fair_rates(&wires.gbps, &h2d[gpu..=gpu])[0],
        h2d_all_gbps: fair_rates(&wires.gbps, h2d)[gpu],
        d2h_all_gbps: fair_rates(&wires.gbps, d2h)[gpu],
        h2d_duplex_gbps: fair_rates(&wires.gbps, &both)[gpu],
    }
}

/// Every two kinds; both collectives at once are not a question of wires alone.
fn meetings(wires: &Wires<'_>, kinds: &[(TrafficKind, Vec<Flow>)]) -> Vec<Meeting> {
    let mut all = Vec::new();
    for (number, (first, of_first)) in kinds.iter().enumerate().take(2) {
        for (second, of_second) in &kinds[number + 1..] {
            if of_second.is_empty() {
                continue;
            }
            let (first_together_gbps, second_together_gbps) = least(wires, of_first, of_second);
            all.push(Meeting {
                first: *first,
                second: *second,
                shares: wires.shared(of_first, of_second),
                first_alone_gbps: least(wires, of_first, &[]).0,
                first_together_gbps,
                second_alone_gbps: least(wires, of_second, &[]).0,
                second_together_gbps,
            });
        }
    }
    all
}

/// The lowest rate among each of two groups of flows that run at the same time.
fn least(wires: &Wires<'_>, first: &[Flow], second: &[Flow]) -> (f64, f64) {
    let all: Vec<Flow> = first.iter().chain(second).cloned().collect();
    let rates = fair_rates(&wires.gbps, &all);
    let (of_first, of_second) = rates.split_at(first.len());
    let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    (least(of_first), least(of_second))
}
