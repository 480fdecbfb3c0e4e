//! Which ranks share a way to the host, and is it enough for all of them?
//!
//! GPUs below one switch share its uplink for copies from and to host memory, direction by direction. Whether they copy
//! at the same moment no trace tells, because their clocks are not aligned: what is told is what would happen if they
//! did, and what they ask of it on average.

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::topology::GpuPlace;
use busbound_trace::Direction;
use serde::Serialize;

use crate::name::RankName;
use crate::summary::RankSummary;

/// A hop that several ranks' GPUs have on their way to the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedUplink {
    pub host: Option<String>,
    /// The PCI address of the port below it.
    pub address: String,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub ranks: Vec<RankName>,
    /// What it carries each way.
    pub gbps: f64,
    /// By direction; those without copies are left out.
    pub demands: Vec<Demand>,
    pub statement: String,
}

/// What the ranks ask of a way in one direction, added up.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Demand {
    pub direction: Direction,
    /// The rates that they reached while they copied: what they would ask if all copied at once.
    pub at_once_gbps: f64,
    /// Bytes over the length of a step.
    pub mean_gbps: f64,
}

/// From this share of a way on it is near its end: large copies reach 88 % of a link.
const NEAR: f64 = 0.8;

impl SharedUplink {
    /// Whether copies of all ranks at once would come near what the way carries.
    pub fn is_tight(&self) -> bool {
        self.demands.iter().any(|demand| demand.at_once_gbps > NEAR * self.gbps)
    }
}

/// Shared ways, and what kept ranks from being placed in the tree.
pub(crate) struct Placed {
    pub(crate) uplinks: Vec<SharedUplink>,
    pub(crate) unknown: Option<String>,
}

pub(crate) fn uplinks(ranks: &[&RankSummary], places: &[GpuPlace]) -> Placed {
    let mut unknown = None;
    let mut uplinks = Vec::new();
    let mut hosts: BTreeMap<Option<&str>, Vec<&RankSummary>> = BTreeMap::new();
    for rank in ranks {
        hosts.entry(rank.host.as_deref()).or_default().push(rank);
    }
    for (host, ranks) in hosts {
        match placed(&ranks, places) {
            Ok(placed) => uplinks.extend(shared(host, &placed)),
            Err(why) => unknown = Some(why),
        }
    }
    uplinks.sort_by(|a, b| b.is_tight().cmp(&a.is_tight()).then_with(|| a.address.cmp(&b.address)));
    Placed { uplinks, unknown }
}

/// The place of each rank's GPU: as NCCL's file says, else by the device's number, if that can be the machine's.
fn placed<'a>(
    ranks: &[&'a RankSummary],
    places: &'a [GpuPlace],
) -> Result<Vec<(&'a RankSummary, &'a GpuPlace)>, String> {
    let number = |rank: &RankSummary| rank.rank.as_ref().map(|told| told.rank);
    let by_rank: Vec<_> = ranks
        .iter()
        .filter_map(|rank| {
            Some((*rank, places.iter().find(|place| place.rank.is_some() && place.rank == number(rank))?))
        })
        .collect();
    if !by_rank.is_empty() {
        return Ok(by_rank);
    }
    let unknown = |why: String| {
        Err(format!(
            "Which GPU each rank has is not known, so that shared ways cannot be told: {why}. NCCL's topology file (NCCL_TOPO_DUMP_FILE) names the ranks."
        ))
    };
    let mut devices = BTreeSet::new();
    let mut found = Vec::new();
    for rank in ranks.iter().filter(|rank| rank.has_device()) {
        let [gpu] = rank.gpus.as_slice() else {
            return unknown(format!("{} uses {} GPUs", rank.label(), rank.gpus.len()));
        };
        if rank.gpus_listed != places.len() {
            let (label, seen) = (rank.label(), rank.gpus_listed);
            return unknown(match seen {
                0 => format!("the trace of {label} lists no GPUs"),
                _ => format!(
                    "{label} saw {seen} of the topology's {} GPUs, so that its device {} may be any of them",
                    places.len(),
                    gpu.device
                ),
            });
        }
        if !devices.insert(gpu.device) {
            return unknown(format!(
                "two ranks have device {}; they may be of different machines",
                gpu.device
            ));
        }
        let place = places.iter().find(|place| i64::from(place.index) == i64::from(gpu.device));
        found.extend(place.map(|place| (*rank, place)));
    }
    Ok(found)
}

/// Hops that two ranks or more have in common; of those that the same ranks share, the narrowest.
fn shared(host: Option<&str>, placed: &[(&RankSummary, &GpuPlace)]) -> Vec<SharedUplink> {
    let mut hops: BTreeMap<&str, (f64, Vec<usize>)> = BTreeMap::new();
    for (number, (_, place)) in placed.iter().enumerate() {
        for hop in &place.path {
            let entry = hops.entry(&hop.address).or_insert((hop.link.under_load_gbps(), Vec::new()));
            entry.1.push(number);
        }
    }
    let mut narrowest: BTreeMap<Vec<usize>, (&str, f64)> = BTreeMap::new();
    for (address, (gbps, members)) in hops.into_iter().filter(|(_, (_, members))| members.len() > 1) {
        let known = narrowest.entry(members).or_insert((address, gbps));
        if gbps < known.1 {
            *known = (address, gbps);
        }
    }
    let uplink = |(members, (address, gbps)): (Vec<usize>, (&str, f64))| {
        let ranks: Vec<&RankSummary> = members.iter().map(|&member| placed[member].0).collect();
        let demands: Vec<Demand> = [Direction::HostToDevice, Direction::DeviceToHost]
            .into_iter()
            .filter_map(|way| demand(&ranks, way))
            .collect();
        let labels: Vec<RankName> = ranks.iter().map(|rank| rank.label()).collect();
        let statement = statement(host, address, gbps, &labels, &demands);
        SharedUplink {
            host: host.map(str::to_owned),
            address: address.to_owned(),
            ranks: labels,
            gbps,
            demands,
            statement,
        }
    };
    narrowest.into_iter().map(uplink).collect()
}

fn demand(ranks: &[&RankSummary], direction: Direction) -> Option<Demand> {
    let at_once_gbps: f64 = ranks.iter().filter_map(|rank| rank.rate(direction)).sum();
    let mean = |rank: &&RankSummary| rank.bytes_of(direction) / (rank.step_ms() * 1e6);
    let mean_gbps: f64 = ranks.iter().map(mean).filter(|rate| rate.is_finite()).sum();
    (at_once_gbps > 0.0).then_some(Demand { direction, at_once_gbps, mean_gbps })
}

fn statement(host: Option<&str>, address: &str, gbps: f64, ranks: &[RankName], demands: &[Demand]) -> String {
    let on = host.map_or(String::new(), |host| format!(" on {host}"));
    let mut text =
        format!("{}{on} share one way to the host ({address}, {gbps:.1} GB/s each way).", listed(ranks));
    for demand in demands {
        let way = if demand.direction == Direction::HostToDevice { "to the GPUs" } else { "to the host" };
        let (at_once, mean) = (demand.at_once_gbps, demand.mean_gbps);
        let verdict = match at_once {
            rate if rate > gbps => format!(
                "more than it carries if they come at once, which gives each {:.1} GB/s",
                gbps / ranks.len() as f64
            ),
            rate if rate > NEAR * gbps => "close to all it carries if they come at once".to_owned(),
            _ => "which it carries also at once".to_owned(),
        };
        text.push_str(&format!(
            " Their copies {way} run at {at_once:.1} GB/s added up: {verdict}; on average they ask {mean:.2} GB/s of it."
        ));
    }
    if demands.is_empty() {
        text.push_str(" They copy nothing over it.");
    }
    text
}

/// `Ranks 0, 1 and 3`.
fn listed(ranks: &[RankName]) -> String {
    let are_numbers = ranks.iter().all(|name| name.number().is_some());
    let (word, names): (_, Vec<String>) = match are_numbers {
        true => ("Ranks ", ranks.iter().map(RankName::short).collect()),
        false => ("", ranks.iter().map(RankName::to_string).collect()),
    };
    match names.split_last() {
        Some((last, [])) => format!("{word}{last}"),
        Some((last, rest)) => format!("{word}{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
