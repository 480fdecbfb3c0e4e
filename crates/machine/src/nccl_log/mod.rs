//! How did NCCL connect the ranks? Read from what `NCCL_DEBUG=INFO` prints: rings, trees, NVLS, the transport of each
//! pair and what the log says about the machine.
//!
//! Lines of several ranks may be mixed, have anything before NCCL's own prefix, or be cut: what is not understood is
//! skipped.

mod line;
mod remarks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub use remarks::{NcclRemark, NcclRemarkId};

use line::{Fact, Line};

pub const NCCL_LOG_SCHEMA: &str = "busbound.nccl/1";

/// What a log of NCCL says.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NcclLog {
    pub schema: &'static str,
    /// `2.21.5+cuda12.4`; `null` if the line is missing.
    pub version: Option<String>,
    pub hosts: Vec<String>,
    /// Ranks of the largest communicator.
    pub ranks: u32,
    /// `null` if the log does not say.
    pub nodes: Option<u32>,
    /// The network that NCCL chose, such as `IB` or `Socket`.
    pub network: Option<String>,
    pub communicators: Vec<Communicator>,
    /// One entry per pair of ranks and transport.
    pub connections: Vec<Link>,
    pub wiring: Wiring,
    /// Variables that the environment or a file set.
    pub settings: Vec<NcclSetting>,
    /// Warnings, each once.
    pub warnings: Vec<String>,
    /// What costs performance.
    pub remarks: Vec<NcclRemark>,
    /// Lines of NCCL that were read.
    pub lines: u64,
}

/// A communicator, as its ranks set it up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Communicator {
    /// NCCL's id if the log has it; else the number of ranks.
    pub id: String,
    pub ranks: u32,
    pub nodes: Option<u32>,
    /// The order of the ranks in the ring of each channel.
    pub rings: Vec<Vec<u32>>,
    /// Each rank's place in the tree of each channel.
    pub trees: Vec<TreePlace>,
    /// `null` if the log does not say.
    pub channels: Option<Channels>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreePlace {
    pub channel: u32,
    pub rank: u32,
    pub parent: Option<u32>,
    pub children: Vec<u32>,
}

/// How many channels of each kind NCCL set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Channels {
    pub collective: u32,
    pub collnet: u32,
    /// Reduced in NVSwitches.
    pub nvls: u32,
    pub point_to_point: u32,
}

/// What carries the data of a pair of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Transport {
    /// One GPU accesses the other's memory, over NVLink or PCIe.
    P2p,
    /// Through host memory of one machine.
    Shm,
    /// Through the network.
    Net,
    /// Through a network that reduces.
    Collnet,
}

impl Transport {
    pub const ALL: [Self; 4] = [Self::P2p, Self::Shm, Self::Net, Self::Collnet];

    /// As NCCL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2p => "P2P",
            Self::Shm => "SHM",
            Self::Net => "NET",
            Self::Collnet => "COLLNET",
        }
    }
}

/// A pair of ranks and how one sends to the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Link {
    pub from: u32,
    pub to: u32,
    pub transport: Transport,
    /// The rest of what NCCL writes: `direct pointer`, `CUMEM`, `IB/0/GDRDMA`.
    pub via: String,
    /// Whether the network card reads and writes GPU memory itself; `null` within a machine.
    pub gpu_direct: Option<bool>,
    pub channels: u32,
}

/// What the log says about links between GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wiring {
    /// GB/s of a GPU's NVLinks as NCCL plans them (needs `NCCL_DEBUG_SUBSYS` with GRAPH); `null` if not in the log.
    pub nvlink_gbps: Option<f64>,
    /// Whether NVLinks end at switches, if the log says so.
    pub nvswitch: Option<bool>,
    /// Whether the switches can multicast and reduce (NVLS), if the log says so.
    pub multicast: Option<bool>,
}

impl Wiring {
    pub fn has_nvlink(self) -> bool {
        self.nvlink_gbps.is_some() || self.nvswitch == Some(true) || self.multicast == Some(true)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NcclSetting {
    pub name: String,
    pub value: String,
}

/// Warnings kept.
const MOST_WARNINGS: usize = 100;

impl NcclLog {
    /// Reads a log; `None` if no line is NCCL's.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reading = Reading::default();
        for line in text.lines() {
            if let Some(line) = Line::of(line) {
                reading.lines += 1;
                reading.add(&line);
            }
        }
        (reading.lines > 0).then(|| reading.finish())
    }

    /// Whether the first bytes of a file look like a log of NCCL.
    pub fn is_one(head: &str) -> bool {
        head.lines().any(|line| Line::of(line).is_some())
    }

    /// Connections over this transport.
    pub fn over(&self, transport: Transport) -> impl Iterator<Item = &Link> {
        self.connections.iter().filter(move |link| link.transport == transport)
    }

    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    log: NcclLog,
    lines: u64,
    /// The communicator that each thread sets up, by its place in `log.communicators`.
    of_thread: BTreeMap<String, usize>,
    links: BTreeMap<LinkKey, (u32, Option<bool>)>,
}

/// Two ranks, and how they talk.
type LinkKey = (u32, u32, Transport, String);

impl Reading {
    fn add(&mut self, line: &Line<'_>) {
        if let Some(host) = line.host.filter(|host| !self.log.hosts.iter().any(|known| known == host)) {
            self.log.hosts.push(host.to_owned());
        }
        match &line.fact {
            Fact::Version(version) => {
                self.log.version.get_or_insert_with(|| (*version).to_owned());
            }
            Fact::Network(name) => {
                self.log.network.get_or_insert_with(|| (*name).to_owned());
            }
            Fact::Setting(name, value) => self.set(name, value),
            Fact::Warning(text) => self.warn(text),
            Fact::Communicator { id, ranks, nodes } => self.communicator(line.thread, *id, *ranks, *nodes),
            Fact::Ring(channel, order) => {
                let rings = &mut self.current(line.thread).rings;
                if rings.len() == *channel {
                    rings.push(order.clone());
                }
            }
            Fact::Trees(places) => {
                let trees = &mut self.current(line.thread).trees;
                for place in places.iter().filter(|place| !trees.contains(place)).cloned().collect::<Vec<_>>()
                {
                    trees.push(place);
                }
            }
            Fact::Channels(channels) => self.current(line.thread).channels = Some(*channels),
            Fact::Link(link) => {
                let key = (link.from, link.to, link.transport, link.via.clone());
                let known = self.links.entry(key).or_insert((0, link.gpu_direct));
                known.0 += 1;
            }
            Fact::NvLink { gbps, to_switch } => {
                let wiring = &mut self.log.wiring;
                wiring.nvlink_gbps = Some(wiring.nvlink_gbps.unwrap_or(0.0).max(*gbps));
                wiring.nvswitch = Some(wiring.nvswitch.unwrap_or(false) || *to_switch);
            }
            Fact::Multicast(is_available) => {
                let wiring = &mut self.log.wiring;
                wiring.multicast = Some(wiring.multicast.unwrap_or(false) || *is_available);
            }
            Fact::Nothing => {}
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        let settings = &mut self.log.settings;
        if !settings.iter().any(|known| known.name == name && known.value == value) {
            settings.push(NcclSetting { name: name.to_owned(), value: value.to_owned() });
        }
    }

    fn warn(&mut self, text: &str) {
        let warnings = &mut self.log.warnings;
        if warnings.len() < MOST_WARNINGS && !warnings.iter().any(|known| known == text) {
            warnings.push(text.to_owned());
        }
    }

    /// A thread begins to set up a communicator, or says more about it.
    fn communicator(&mut self, thread: &str, id: Option<&str>, ranks: u32, nodes: Option<u32>) {
        let id = id.map_or_else(|| format!("{ranks} ranks"), str::to_owned);
        let all = &mut self.log.communicators;
        // A line without the id adds to the communicator that this thread sets up.
        let continued =
            self.of_thread.get(thread).copied().filter(|&at| nodes.is_some() && all[at].ranks == ranks);
        let at = continued.or_else(|| all.iter().position(|known| known.id == id)).unwrap_or_else(|| {
            all.push(Communicator { id, ranks, ..Communicator::default() });
            all.len() - 1
        });
        all[at].nodes = all[at].nodes.max(nodes);
        self.of_thread.insert(thread.to_owned(), at);
    }

    /// The communicator that a thread sets up; lines before any go to a nameless one.
    fn current(&mut self, thread: &str) -> &mut Communicator {
        let all = &mut self.log.communicators;
        let at = self.of_thread.get(thread).copied().unwrap_or_else(|| {
            if all.is_empty() {
                all.push(Communicator { id: "unknown".to_owned(), ..Communicator::default() });
            }
            0
        });
        &mut all[at]
    }

    fn finish(mut self) -> NcclLog {
        let link = |((from, to, transport, via), (channels, gpu_direct))| Link {
            from,
            to,
            transport,
            via,
            gpu_direct,
            channels,
        };
        self.log.connections = std::mem::take(&mut self.links).into_iter().map(link).collect();
        let largest = self.log.communicators.iter().max_by_key(|one| one.ranks);
        let named = self.log.connections.iter().map(|link| link.from.max(link.to) + 1).max();
        self.log.nodes = largest.and_then(|one| one.nodes);
        self.log.ranks = largest.map_or(0, |one| one.ranks).max(named.unwrap_or(0));
        self.log.schema = NCCL_LOG_SCHEMA;
        self.log.lines = self.lines;
        self.log.remarks = remarks::remarks(&self.log, None);
        self.log
    }
}
