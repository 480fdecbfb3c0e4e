//! Which ranks share a PCIe uplink, and is it fast enough for all of them?
//!
//! GPUs on one PCIe switch share its uplink for copies to and from host memory, per direction. The answer says what each gets if all
//! copy at the same time, and the average demand. Where collectives align the clocks of the ranks, it also says how long they do.

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::topology::GpuPlace;
use busbound_trace::Direction;
use serde::Serialize;

use crate::align::Clock;
use crate::at_once::{AtOnce, at_once};
use crate::name::RankName;
use crate::summary::RankSummary;

/// A PCIe hop that the GPUs of several ranks share on the path to the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedUplink {
    pub host: Option<String>,
    /// The PCI address of the downstream port.
    pub address: String,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub ranks: Vec<RankName>,
    /// Its bandwidth per direction.
    pub gbps: f64,
    /// By direction; directions without copies are left out.
    pub demands: Vec<Demand>,
    /// How long several ranks use it at the same time; empty if their clocks are not aligned.
    pub at_once: Vec<AtOnce>,
    pub statement: String,
}

/// The total demand of the ranks on an uplink, in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Demand {
    pub direction: Direction,
    /// Sum of the rates that they reached: the demand if all copy at the same time.
    pub at_once_gbps: f64,
    /// Bytes per step over the length of a step.
    pub mean_gbps: f64,
}

/// Above this share, an uplink is close to its limit: large copies reach 88% of a link.
const NEAR: f64 = 0.8;

impl SharedUplink {
    /// Whether the uplink would be close to its limit if all ranks copied at the same time.
    pub fn is_tight(&self) -> bool {
        self.demands.iter().any(|demand| demand.at_once_gbps > NEAR * self.gbps)
    }
}

/// Shared uplinks, and why the GPUs of some ranks are unknown.
pub(crate) struct Placed {
    pub(crate) uplinks: Vec<SharedUplink>,
    pub(crate) unknown: Option<String>,
}

/// The ranks whose clocks are aligned.
pub(crate) type Aligned<'a> = [(&'a RankSummary, Clock)];

pub(crate) fn uplinks(ranks: &[&RankSummary], places: &[GpuPlace], aligned: &Aligned<'_>) -> Placed {
    let mut unknown = None;
    let mut uplinks = Vec::new();
    let mut hosts: BTreeMap<Option<&str>, Vec<&RankSummary>> = BTreeMap::new();
    for rank in ranks {
        hosts.entry(rank.host.as_deref()).or_default().push(rank);
    }
    for (host, ranks) in hosts {
        match placed(&ranks, places) {
            Ok(placed) => uplinks.extend(shared(host, &placed, aligned)),
            Err(why) => unknown = Some(why),
        }
    }
    uplinks.sort_by(|a, b| b.is_tight().cmp(&a.is_tight()).then_with(|| a.address.cmp(&b.address)));
    Placed { uplinks, unknown }
}

/// The place of each rank's GPU: from NCCL's file, otherwise by device number, if that can be the machine's number.
fn placed<'a>(
    ranks: &[&'a RankSummary],
    places: &'a [GpuPlace],
) -> Result<Vec<(&'a RankSummary, &'a GpuPlace)>, String> {
    let number = |rank: &RankSummary| rank.rank.as_ref().map(|ranked| ranked.rank);
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
            "Shared PCIe uplinks are unknown because the GPU of each rank is unknown: {why}. NCCL's topology file (NCCL_TOPO_DUMP_FILE) lists the ranks."
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
                    "{label} saw {seen} of the {} GPUs in the topology, so its device {} may be any of them",
                    places.len(),
                    gpu.device
                ),
            });
        }
        if !devices.insert(gpu.device) {
            return unknown(format!(
                "two ranks use device {}; they may be on different machines",
                gpu.device
            ));
        }
        let place = places.iter().find(|place| i64::from(place.index) == i64::from(gpu.device));
        found.extend(place.map(|place| (*rank, place)));
    }
    Ok(found)
}

/// Hops that two or more ranks share; if the same ranks share several, the slowest.
fn shared(
    host: Option<&str>,
    placed: &[(&RankSummary, &GpuPlace)],
    aligned: &Aligned<'_>,
) -> Vec<SharedUplink> {
    let mut hops: BTreeMap<&str, (f64, Vec<usize>)> = BTreeMap::new();
    for (number, (_, place)) in placed.iter().enumerate() {
        for hop in &place.path {
            let entry = hops.entry(&hop.address).or_insert((hop.link.under_load_gbps(), Vec::new()));
            entry.1.push(number);
        }
    }
    let mut slowest: BTreeMap<Vec<usize>, (&str, f64)> = BTreeMap::new();
    for (address, (gbps, members)) in hops.into_iter().filter(|(_, (_, members))| members.len() > 1) {
        let known = slowest.entry(members).or_insert((address, gbps));
        if gbps < known.1 {
            *known = (address, gbps);
        }
    }
    let uplink = |(members, (address, gbps)): (Vec<usize>, (&str, f64))| {
        let ranks: Vec<&RankSummary> = members.iter().map(|&member| placed[member].0).collect();
        let demands: Vec<Demand> = [Direction::HostToDevice, Direction::DeviceToHost]
            .into_iter()
            .filter_map(|direction| demand(&ranks, direction))
            .collect();
        let labels: Vec<RankName> = ranks.iter().map(|rank| rank.label()).collect();
        let at_once = meetings(&members, placed, aligned);
        let mut statement = statement(host, address, gbps, &labels, &demands);
        for meeting in &at_once {
            statement.push(' ');
            statement.push_str(&meeting.statement());
        }
        SharedUplink {
            host: host.map(str::to_owned),
            address: address.to_owned(),
            ranks: labels,
            gbps,
            demands,
            at_once,
            statement,
        }
    };
    slowest.into_iter().map(uplink).collect()
}

/// What the ranks below an uplink do at the same time; empty unless the clocks of all are aligned.
fn meetings(members: &[usize], placed: &[(&RankSummary, &GpuPlace)], aligned: &Aligned<'_>) -> Vec<AtOnce> {
    let clock =
        |rank: &RankSummary| aligned.iter().find(|(of, _)| of.path == rank.path).map(|(_, clock)| *clock);
    let ranks: Option<Vec<_>> =
        members.iter().map(|&member| Some((&placed[member].0.lanes, clock(placed[member].0)?))).collect();
    // Below one switch, collectives do not use its uplink. With NVLink, they use no PCIe link within a machine.
    let through =
        members.len() < aligned.len() && members.iter().all(|&member| placed[member].1.nvlinks == 0);
    ranks.map_or_else(Vec::new, |ranks| at_once(&ranks, through))
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
        format!("{}{on} share a PCIe uplink ({address}, {gbps:.1} GB/s per direction).", listed(ranks));
    for demand in demands {
        let direction = if demand.direction == Direction::HostToDevice { "H2D" } else { "D2H" };
        let (at_once, mean) = (demand.at_once_gbps, demand.mean_gbps);
        let verdict = match at_once {
            rate if rate > gbps => format!(
                "more than the uplink carries if all copy at the same time, which leaves {:.1} GB/s for each",
                gbps / ranks.len() as f64
            ),
            rate if rate > NEAR * gbps => "close to the limit if all copy at the same time".to_owned(),
            _ => "within the limit even if all copy at the same time".to_owned(),
        };
        text.push_str(&format!(
            " Their {direction} copies total {at_once:.1} GB/s: {verdict}; the average demand is {mean:.2} GB/s."
        ));
    }
    if demands.is_empty() {
        text.push_str(" They copy nothing over the bus.");
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
