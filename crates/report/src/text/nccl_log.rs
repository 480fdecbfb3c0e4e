//! The text of a log of NCCL: how the ranks are connected, and what that costs.

use busbound_diagnosis::quantity::count;
use busbound_machine::nccl_log::{Communicator, Link, NcclLog, Transport};

use super::plural;

/// Connections in the table.
const ROWS: usize = 24;

pub(crate) fn statement(log: &NcclLog) -> String {
    let ranks = plural(u64::from(log.ranks), "rank", "ranks");
    let nodes =
        log.nodes.map_or(String::new(), |nodes| format!(" on {}", plural(u64::from(nodes), "node", "nodes")));
    let used: Vec<String> = Transport::ALL
        .into_iter()
        .filter_map(|transport| {
            let pairs = log.over(transport).count();
            (pairs > 0)
                .then(|| format!("{} over {}", plural(pairs as u64, "pair", "pairs"), transport.name()))
        })
        .collect();
    let used = if used.is_empty() { "no connection is in the log".to_owned() } else { used.join(", ") };
    let wrong = match log.remarks.len() {
        0 => "no warnings".to_owned(),
        n => plural(n as u64, "warning", "warnings"),
    };
    format!("NCCL connected {ranks}{nodes}: {used}; {wrong}.")
}

/// What the log says, by name.
pub(crate) fn facts(log: &NcclLog) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(log.version.clone().map(|version| ("version", version)));
    if !log.hosts.is_empty() {
        facts.push(("hosts", log.hosts.join(", ")));
    }
    facts.extend(log.network.clone().map(|network| ("network", network)));
    facts.push(("NVLink", nvlink(log)));
    facts.extend(
        log.communicators.iter().filter(|one| one.ranks > 0).map(|one| ("communicator", communicator(one))),
    );
    if !log.settings.is_empty() {
        let settings: Vec<String> =
            log.settings.iter().map(|setting| format!("{}={}", setting.name, setting.value)).collect();
        facts.push(("settings", settings.join(" ")));
    }
    facts
}

fn nvlink(log: &NcclLog) -> String {
    let wiring = log.wiring;
    let rate = wiring.nvlink_gbps.map(|gbps| format!("{gbps:.0} GB/s per GPU as NCCL plans it"));
    let switch = wiring.nvswitch.map(|is| if is { "NVSwitch" } else { "no NVSwitch" }.to_owned());
    let nvls = wiring.multicast.map(|is| if is { "NVLS available" } else { "NVLS not available" }.to_owned());
    let known: Vec<String> = [rate, switch, nvls].into_iter().flatten().collect();
    if known.is_empty() {
        return "unknown: record with NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV".to_owned();
    }
    known.join(", ")
}

fn communicator(one: &Communicator) -> String {
    let ranks = plural(u64::from(one.ranks), "rank", "ranks");
    let ring = one.rings.first().map_or(String::new(), |ring| {
        let order: Vec<String> = ring.iter().take(16).map(u32::to_string).collect();
        let more = if ring.len() > 16 { " …" } else { "" };
        format!(
            "; {}, the first {}{more}",
            plural(one.rings.len() as u64, "ring", "rings"),
            order.join(" → ")
        )
    });
    let trees = one.trees.iter().map(|place| place.channel + 1).max().unwrap_or(0);
    let trees =
        if trees > 0 { format!("; {}", plural(u64::from(trees), "tree", "trees")) } else { String::new() };
    let channels = one.channels.map_or(String::new(), |channels| {
        format!(
            "; {} collective, {} NVLS, {} P2P channels",
            channels.collective, channels.nvls, channels.point_to_point
        )
    });
    format!("{} of {ranks}{ring}{trees}{channels}", one.id)
}

pub(crate) const TITLES: [&str; 5] = ["from", "to", "transport", "via", "channels"];

/// One row per pair, those over host memory first.
pub(crate) fn connections(log: &NcclLog) -> Vec<Vec<String>> {
    let mut links: Vec<&Link> = log.connections.iter().collect();
    let order = [Transport::Shm, Transport::Net, Transport::Collnet, Transport::P2p];
    links.sort_by_key(|link| order.iter().position(|transport| *transport == link.transport));
    let row = |link: &&Link| {
        vec![
            link.from.to_string(),
            link.to.to_string(),
            link.transport.name().to_owned(),
            link.via.clone(),
            link.channels.to_string(),
        ]
    };
    links.iter().take(ROWS).map(row).collect()
}

/// What is not shown.
pub(crate) fn rest(log: &NcclLog) -> Option<String> {
    let more = log.connections.len().saturating_sub(ROWS);
    (more > 0).then(|| format!("{} more pairs; --format json lists all.", count(more as u64)))
}
