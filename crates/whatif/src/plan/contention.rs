//! Do collectives and host copies share a wire, and what does it cost when they meet?
//!
//! Every GPU does the same at the same time, so one GPU's wires tell: its PCIe link in each direction, its part of the
//! uplink that it may share, and NVLink. Traffic that meets on a wire gets max-min fair rates, up to its own rate
//! alone. GPU-to-GPU traffic over PCIe uses the links of both GPUs; below one switch it does not use the uplink. Where the profile
//! of the machine has what `busbound bench --suite contention` measured, that replaces the computed rates of host copies.

use busbound_machine::bench::{ContentionLoad, Direction};
use busbound_machine::{
    ContentionFacts, DUPLEX, Flow, GpuFacts, HostMemory, Interconnect, LinkFacts, Machine, NCCL_SHARE,
    fair_rates,
};
use serde::Serialize;

use super::{BadInput, ensure};

/// How GPUs reach each other and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Wiring {
    /// Each other over NVLink, the host over a PCIe link each.
    NvLink,
    /// Below one PCIe switch with one uplink to the host.
    PcieSwitch,
    /// A root port of the host each.
    PcieRoot,
    SingleGpu,
}

/// What crosses wires, on every GPU at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Traffic {
    H2d,
    D2h,
    PeerIn,
    PeerOut,
    AllToAll,
    AllReduce,
}

impl Traffic {
    pub const HOST: [Self; 2] = [Self::H2d, Self::D2h];
    pub const PEERS: [Self; 4] = [Self::PeerIn, Self::PeerOut, Self::AllToAll, Self::AllReduce];

    pub fn name(self) -> &'static str {
        match self {
            Self::H2d => "H2D copies",
            Self::D2h => "D2H copies",
            Self::PeerIn => "P2P in",
            Self::PeerOut => "P2P out",
            Self::AllToAll => "all-to-all",
            Self::AllReduce => "all-reduce",
        }
    }
}

/// What two kinds of traffic can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Shared {
    /// The GPU's PCIe link towards the GPU.
    LinkIn,
    /// The GPU's PCIe link from the GPU.
    LinkOut,
    /// Both directions of the GPU's link: full duplex, but together less than twice one direction.
    Duplex,
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentionInputs {
    pub gpu: &'static str,
    pub gpus: u32,
    pub link: LinkFacts,
    /// Between the GPUs, if they have dedicated links.
    pub peer: Option<Interconnect>,
    /// GPUs below one PCIe switch.
    pub below_switch: u32,
}

/// Two kinds of traffic alone and at the same time, on one GPU of all that do the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meeting {
    pub host: Traffic,
    pub peers: Traffic,
    pub shares: Shared,
    pub host_alone_gbps: f64,
    pub host_together_gbps: f64,
    pub peers_alone_gbps: f64,
    pub peers_together_gbps: f64,
    /// Whether the rate of the host copies while both run was measured on this machine.
    pub measured: bool,
}

impl Meeting {
    /// How much longer host copies take, in percent.
    pub fn host_slower_pct(&self) -> f64 {
        100.0 * (self.host_alone_gbps / self.host_together_gbps - 1.0)
    }

    /// How much longer the traffic between GPUs takes, in percent.
    pub fn peers_slower_pct(&self) -> f64 {
        100.0 * (self.peers_alone_gbps / self.peers_together_gbps - 1.0)
    }
}

/// One wiring of the GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wired {
    pub wiring: Wiring,
    /// H2D GB/s of one GPU while all copy.
    pub host_gbps: f64,
    /// Whether that was measured on this machine.
    pub host_measured: bool,
    pub meetings: Vec<Meeting>,
}

impl Wired {
    /// The most that anything is slowed down by sharing a wire in one direction, in percent.
    pub fn worst_pct(&self) -> f64 {
        let slower = |meeting: &Meeting| meeting.host_slower_pct().max(meeting.peers_slower_pct());
        self.meetings.iter().map(slower).fold(0.0, f64::max)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentionPlan {
    pub inputs: ContentionInputs,
    /// The wirings that this GPU comes in; the first is the usual one.
    pub wirings: Vec<Wired>,
    /// The smallest copy that reaches at least 90% of the rate of large ones: an exchange waits for at most one of these.
    pub chunk_bytes: u64,
    pub chunk_ms: f64,
    /// What was measured on this machine; empty without a profile that has it.
    pub measured: Vec<ContentionFacts>,
}

impl ContentionPlan {
    /// For GPUs of this model in this machine: [`Machine::of_gpu`], or one that was measured.
    ///
    /// # Errors
    /// If the number of GPUs is out of range.
    pub fn plan(
        gpu: &'static GpuFacts,
        gpus: u32,
        below_switch: u32,
        machine: &Machine,
    ) -> Result<Self, BadInput> {
        ensure((1..=1024).contains(&gpus), "--gpus", "between 1 and 1024", gpus)?;
        ensure(
            (1..=gpus).contains(&below_switch),
            "--below-switch",
            "1 or more, and at most --gpus",
            below_switch,
        )?;
        let link = machine.link_of(None);
        let measured = link.measured().map(|profile| profile.contention.clone()).unwrap_or_default();
        let peer = (gpu.nvlink_gbps > 0.0).then(|| Interconnect::of_gpu(gpu));
        let (chunk_bytes, chunk_ms) = chunk(&link);
        let inputs = ContentionInputs { gpu: gpu.key, gpus, link, peer, below_switch };
        let wirings = match (gpus, &inputs.peer) {
            (1, _) => vec![Wiring::SingleGpu],
            (_, Some(_)) => vec![Wiring::NvLink, Wiring::PcieSwitch, Wiring::PcieRoot, Wiring::SingleGpu],
            (_, None) => vec![Wiring::PcieSwitch, Wiring::PcieRoot, Wiring::SingleGpu],
        };
        let wirings = wirings.into_iter().map(|wiring| inputs.wired(wiring)).collect();
        Ok(Self { inputs, wirings, chunk_bytes, chunk_ms, measured })
    }
}

/// The smallest power of two of bytes that reaches at least 90% of the rate of large copies.
pub(super) fn chunk(link: &LinkFacts) -> (u64, f64) {
    let enough = 0.9 * link.reachable_gbps();
    let rate = |bytes: u64| link.expected_gbps(bytes, HostMemory::Pinned);
    let bytes = (16..30).map(|power| 1u64 << power).find(|&bytes| rate(bytes) >= enough).unwrap_or(1 << 30);
    (bytes, bytes as f64 / rate(bytes) / 1e6)
}

/// The wires of one GPU.
const IN: usize = 0;
const OUT: usize = 1;
const BOTH: usize = 2;
const DOWN: usize = 3;
const UP: usize = 4;
const PEER_IN: usize = 5;
const PEER_OUT: usize = 6;

impl ContentionInputs {
    fn wired(&self, wiring: Wiring) -> Wired {
        let wires = self.wires(wiring);
        let meets = |host: Traffic, peers: Traffic| {
            let flows = [self.flow(wiring, host), self.flow(wiring, peers)];
            let alone = |flow: &Flow| fair_rates(&wires, std::slice::from_ref(flow))[0];
            let together = fair_rates(&wires, &flows);
            let measured = self.measured_beside(wiring, host, peers);
            Meeting {
                host,
                peers,
                shares: shared(&flows),
                host_alone_gbps: alone(&flows[0]),
                // As a share, so that both rates are of the same copies.
                host_together_gbps: measured.map_or(together[0], |facts| alone(&flows[0]) / facts.slowdown),
                peers_alone_gbps: alone(&flows[1]),
                peers_together_gbps: together[1],
                measured: measured.is_some(),
            }
        };
        let has_peers = wiring != Wiring::SingleGpu;
        let pairs = Traffic::HOST.into_iter().flat_map(|host| Traffic::PEERS.map(|peers| (host, peers)));
        let meetings = pairs.filter(|_| has_peers).map(|(host, peers)| meets(host, peers)).collect();
        let computed = fair_rates(&wires, &[self.flow(wiring, Traffic::H2d)])[0];
        let all = self.measured(ContentionLoad::OtherGpus, Direction::H2d);
        let all = all.filter(|_| wiring == Wiring::NvLink);
        let host_gbps = all.map_or(computed, |facts| facts.gbps);
        Wired { wiring, host_gbps, host_measured: all.is_some(), meetings }
    }

    fn measured(&self, load: ContentionLoad, direction: Direction) -> Option<&ContentionFacts> {
        self.link.measured()?.contention(load, direction)
    }

    /// What was measured of host copies while copies between GPUs run. Of the ways to connect GPUs, the machine has NVLink if its
    /// GPUs do; without NVLink, copies between GPUs use the GPU's own link with and without a switch.
    fn measured_beside(&self, wiring: Wiring, host: Traffic, peers: Traffic) -> Option<&ContentionFacts> {
        let is_this = match wiring {
            Wiring::NvLink => true,
            Wiring::PcieSwitch | Wiring::PcieRoot => self.peer.is_none(),
            Wiring::SingleGpu => false,
        };
        let load = match peers {
            Traffic::PeerIn => ContentionLoad::PeerIn,
            Traffic::PeerOut => ContentionLoad::PeerOut,
            _ => return None,
        };
        let direction = if host == Traffic::D2h { Direction::D2h } else { Direction::H2d };
        self.measured(load, direction).filter(|_| is_this)
    }

    /// What both directions of the link carry together.
    fn both_ways_gbps(&self) -> f64 {
        let of = |direction| self.measured(ContentionLoad::OtherDirection, direction).map(|facts| facts.gbps);
        let measured = of(Direction::H2d).zip(of(Direction::D2h)).map(|(h2d, d2h)| h2d + d2h);
        measured.unwrap_or(DUPLEX * self.link.reachable_gbps())
    }

    /// GB/s of each wire for one GPU, while all GPUs do the same.
    fn wires(&self, wiring: Wiring) -> [f64; 7] {
        let link = self.link.reachable_gbps();
        let sharing = if wiring == Wiring::PcieSwitch { self.below_switch } else { 1 };
        let uplink = link / f64::from(sharing);
        let peer = self.peer.as_ref().filter(|_| wiring == Wiring::NvLink).map_or(0.0, |peer| peer.nccl_gbps);
        [link, link, self.both_ways_gbps(), uplink, uplink, peer, peer]
    }

    fn flow(&self, wiring: Wiring, traffic: Traffic) -> Flow {
        let nvlink = wiring == Wiring::NvLink;
        let (inward, outward) =
            if nvlink { (vec![PEER_IN], vec![PEER_OUT]) } else { (vec![IN, BOTH], vec![OUT, BOTH]) };
        let link = self.link.reachable_gbps();
        let planned = match &self.peer {
            Some(peer) if nvlink => peer.nccl_gbps,
            _ => link.min(self.link.peak_gbps * NCCL_SHARE),
        };
        let (alone, wires) = match traffic {
            Traffic::H2d => (link, vec![DOWN, IN, BOTH]),
            Traffic::D2h => (link, vec![UP, OUT, BOTH]),
            Traffic::PeerIn => (planned, inward),
            Traffic::PeerOut => (planned, outward),
            Traffic::AllToAll | Traffic::AllReduce => (planned, [inward, outward].concat()),
        };
        Flow { alone, uses: wires.into_iter().map(|wire| (wire, 1.0)).collect() }
    }
}

fn shared(flows: &[Flow; 2]) -> Shared {
    let on = |wire: usize| flows.iter().all(|flow| flow.uses.iter().any(|(used, _)| *used == wire));
    match () {
        () if on(IN) => Shared::LinkIn,
        () if on(OUT) => Shared::LinkOut,
        () if on(BOTH) => Shared::Duplex,
        () => Shared::Nothing,
    }
}

pub const FORMULAS: &[&str] = &[
    "every GPU does both at the same time; a wire is shared max-min fairly, up to what each traffic reaches alone",
    "host copies: pinned rate of the link, divided by the GPUs that share the uplink; traffic between GPUs: the rate that NCCL plans",
    "both directions of a PCIe link carry 1.78 times one direction (98.6 of 55.4 GB/s, measured on an H200)",
    "time lost while two transfers overlap for t ms and each takes 1 + s times as long: t × s / (1 + s)",
];

#[cfg(test)]
mod tests {
    use busbound_machine::{MachineProfile, gpu_of_key};

    use super::*;

    fn plan(gpu: &str, gpus: u32) -> ContentionPlan {
        let gpu = gpu_of_key(gpu).unwrap();
        ContentionPlan::plan(gpu, gpus, gpus, &Machine::of_gpu(gpu)).unwrap()
    }

    /// A made profile (fixtures/coverage/made.py): H2D copies take 55/28 as long while P2P copies arrive, and 14 GB/s are left
    /// while all four GPUs copy.
    #[test]
    fn measured_slowdowns_replace_computed_ones() {
        let json = include_str!("../../../../fixtures/coverage/contention_machine.json");
        let machine = Machine::measured(MachineProfile::parse(json).unwrap());
        let h200 = ContentionPlan::plan(gpu_of_key("h200").unwrap(), 4, 4, &machine).unwrap();
        let nvlink = &h200.wirings[0];
        assert_eq!((nvlink.wiring, nvlink.host_gbps, nvlink.host_measured), (Wiring::NvLink, 14.0, true));
        let met = of(&h200, Wiring::NvLink, Traffic::H2d, Traffic::PeerIn);
        assert!(met.measured && (met.host_alone_gbps / met.host_together_gbps - 55.0 / 28.0).abs() < 1e-3);
        assert!(!of(&h200, Wiring::NvLink, Traffic::H2d, Traffic::AllReduce).measured, "not measured");
        assert!(!of(&h200, Wiring::PcieRoot, Traffic::H2d, Traffic::PeerIn).measured, "another machine");
        assert!(!h200.wirings[2].host_measured);
        assert_eq!(h200.measured.len(), 16);
        // Without NVLink, the GPU's own link is shared with or without a switch.
        let pcie = ContentionPlan::plan(gpu_of_key("h100-pcie").unwrap(), 4, 4, &machine).unwrap();
        for wiring in [Wiring::PcieSwitch, Wiring::PcieRoot] {
            assert!(of(&pcie, wiring, Traffic::D2h, Traffic::PeerOut).measured);
        }
    }

    fn of(plan: &ContentionPlan, wiring: Wiring, host: Traffic, peers: Traffic) -> Meeting {
        let wired = plan.wirings.iter().find(|wired| wired.wiring == wiring).unwrap();
        *wired.meetings.iter().find(|meeting| meeting.host == host && meeting.peers == peers).unwrap()
    }

    #[test]
    fn nvlink_and_host_copies_share_nothing() {
        let plan = plan("h100-sxm", 8);
        assert_eq!(plan.wirings[0].wiring, Wiring::NvLink);
        assert_eq!(plan.wirings[0].worst_pct(), 0.0);
        assert!(plan.wirings[0].meetings.iter().all(|meeting| meeting.shares == Shared::Nothing));
    }

    /// Inbound peer traffic competes with H2D, outbound with D2H; the other way around only duplex operation costs.
    #[test]
    fn without_nvlink_the_same_direction_of_the_link_is_shared() {
        let plan = plan("h100-pcie", 4);
        let at = |host, peers| of(&plan, Wiring::PcieRoot, host, peers);
        let same = at(Traffic::H2d, Traffic::PeerIn);
        assert_eq!(same.shares, Shared::LinkIn);
        // 55.4 GB/s are shared equally: both take twice as long as at 55.4, NCCL's 48 lose less.
        assert!((same.host_slower_pct() - 100.0).abs() < 1.0, "{same:?}");
        assert!((same.peers_slower_pct() - 73.0).abs() < 1.0, "{same:?}");
        let other = at(Traffic::H2d, Traffic::PeerOut);
        assert_eq!(other.shares, Shared::Duplex);
        assert!(other.host_slower_pct() < 13.0 && other.peers_slower_pct() < 1.0, "{other:?}");
        let all = at(Traffic::D2h, Traffic::AllToAll);
        assert_eq!(all.shares, Shared::LinkOut);
        // They slow each other down, but they do overlap: together more than either alone.
        assert!(all.host_together_gbps + all.peers_together_gbps > 1.05 * all.peers_alone_gbps, "{all:?}");
    }

    /// "4 GPUs, 31.5 GB/s to the host in each direction": together it is 31.5.
    #[test]
    fn gpus_below_one_switch_share_its_uplink_but_not_for_peer_traffic() {
        let plan = plan("a100-pcie", 4);
        let wired = |wiring| plan.wirings.iter().find(|wired| wired.wiring == wiring).unwrap();
        let (switch, root) = (wired(Wiring::PcieSwitch), wired(Wiring::PcieRoot));
        assert!((root.host_gbps / switch.host_gbps - 4.0).abs() < 1e-6);
        let meeting = of(&plan, Wiring::PcieSwitch, Traffic::H2d, Traffic::AllToAll);
        // A quarter of the uplink leaves most of the GPU's own link to the exchange.
        assert!(meeting.host_slower_pct() < 1.0 && meeting.peers_slower_pct() < 25.0, "{meeting:?}");
        assert_eq!(plan.wirings.last().unwrap().meetings.len(), 0);
    }

    #[test]
    fn chunks_are_the_smallest_that_keep_the_rate() {
        let plan = plan("h100-pcie", 8);
        assert!((1 << 20..=8 << 20).contains(&plan.chunk_bytes), "{}", plan.chunk_bytes);
        assert!(plan.chunk_ms < 0.2, "{}", plan.chunk_ms);
        let h200 = gpu_of_key("h200").unwrap();
        assert!(ContentionPlan::plan(h200, 0, 1, &Machine::of_gpu(h200)).is_err());
        assert!(ContentionPlan::plan(h200, 4, 8, &Machine::of_gpu(h200)).is_err());
    }
}
