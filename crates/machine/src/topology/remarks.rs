//! What is worth knowing about this topology? One function per remark, listed in [`CHECKS`].

use crate::catalog::gpu_of_name;

use super::nccl_paths::without_nvlink;
use super::remark::{Remark, Seen};
use super::{Connection, Found, GpuPlace, Hop, Iommu, Pair, SYSFS};

/// In display order.
const CHECKS: [fn(&Seen<'_>) -> Vec<Remark>; 14] = [
    no_driver,
    nvlinks_not_read,
    refused_nvlinks,
    inactive_nvlinks,
    narrow_links,
    idle_links,
    shared_uplinks,
    virtual_machine,
    access_control,
    unread_access_control,
    translating_iommu,
    locked_memory,
    unknown_numa_node,
    without_nvlink,
];

pub(super) fn remarks(found: &Found, gpus: &[GpuPlace], pairs: &[Pair]) -> Vec<Remark> {
    let seen = Seen { found, gpus, pairs };
    CHECKS.iter().flat_map(|check| check(&seen)).collect()
}

/// NVSwitches connect GPUs by NVLink, but only the driver knows how.
fn nvlinks_not_read(seen: &Seen<'_>) -> Vec<Remark> {
    if !seen.are_nvlinks_unread() {
        return Vec::new();
    }
    let switches = seen.number_of_switches();
    let text = format!(
        "There are NVSwitches ({switches}), but NVLinks and peer access are not known: the driver was not asked, or did not answer. Connections \
         between GPUs are shown as PCIe only."
    );
    vec![Remark::warning("nvlinks_not_read", text)]
}

/// NVLinks are there, but the driver does not let the GPUs access each other.
fn refused_nvlinks(seen: &Seen<'_>) -> Vec<Remark> {
    let is_nvlink = |pair: &&Pair| matches!(pair.connection, Connection::NvLink(_));
    let refusing = |pair: &&Pair| {
        pair.is_refused()
            || pair.peer_access.iter().any(|access| access.kind == "nvlink" && access.is_refused())
    };
    let refused: Vec<&Pair> = seen.pairs.iter().filter(is_nvlink).filter(refusing).collect();
    let Some(first) = refused.first() else { return Vec::new() };
    let status = first.peer_access.iter().find(|access| access.is_refused());
    let more =
        if refused.len() > 1 { format!(" and {} more pairs", refused.len() - 1) } else { String::new() };
    let text = format!(
        "There are NVLinks between {} and {}{more}, but the driver refuses peer access ({}): copies and collectives between them go through host memory.",
        first.a,
        first.b,
        status.map_or("no reason given", |access| access.status.as_str())
    );
    vec![Remark::warning("nvlink_refused", text).with_remedy(seen.about_peers())]
}

/// Boards with NVLink whose links are not active, although the driver answered.
fn inactive_nvlinks(seen: &Seen<'_>) -> Vec<Remark> {
    let on_switches = |gpu: &&GpuPlace| {
        gpu.name.as_deref().and_then(gpu_of_name).is_some_and(|facts| facts.fabric.is_switched())
    };
    let boards = seen.gpus.iter().filter(on_switches).count();
    let is_asked = seen.pairs.iter().any(|pair| !pair.peer_access.is_empty());
    if !is_asked || boards < 2 || seen.gpus.iter().any(|gpu| gpu.nvlinks > 0) {
        return Vec::new();
    }
    let text = format!(
        "GPUs of this model have NVLink, but none is active on any of the {boards}: they exchange over PCIe or host memory."
    );
    vec![Remark::warning("nvlink_inactive", text).with_remedy(seen.about_peers())]
}

fn no_driver(seen: &Seen<'_>) -> Vec<Remark> {
    if seen.found.driver || seen.found.source != SYSFS {
        return Vec::new();
    }
    let text = "No NVIDIA driver is loaded: the PCI tree is known, but NVLinks and peer access are not.";
    vec![Remark::note("no_driver", text)]
}

fn narrow_links(seen: &Seen<'_>) -> Vec<Remark> {
    let narrow = hops_once(seen.gpus, |hop| hop.link.lanes < hop.link.max_lanes);
    let remark = |hop: &&Hop| {
        let possible = hop.link.max_lanes;
        let remark = Remark::warning(
            "narrow_link",
            format!(
                "The link of {} has {} of {possible} lanes: {:.1} GB/s per direction instead of {:.1}. The lane count does not change with load, so this is a fault or a narrower slot.",
                hop.address,
                hop.link.lanes,
                hop.link.under_load_gbps(),
                hop.link.under_load_gbps() * f64::from(possible) / f64::from(hop.link.lanes),
            ),
        );
        // In a virtual machine only the host's administrator can do this.
        if seen.found.is_virtual {
            remark
        } else {
            remark.with_remedy(
                "Check the slot's wiring and its bifurcation setting in the firmware. Reseat the board and its riser.",
            )
        }
    };
    narrow.iter().map(remark).collect()
}

fn idle_links(seen: &Seen<'_>) -> Vec<Remark> {
    let slow = hops_once(seen.gpus, |hop| hop.link.generation < hop.link.max_generation);
    let Some(hop) = slow.first() else { return Vec::new() };
    let others = if slow.len() > 1 { format!(" and {} more", slow.len() - 1) } else { String::new() };
    vec![Remark::note(
        "idle_link",
        format!(
            "The link of {}{others} runs at PCIe {} of {}. An idle GPU lowers its link speed to save power. This is normal; check again under load.",
            hop.address, hop.link.generation, hop.link.max_generation
        ),
    )]
}

/// The distinct hops of all GPU paths, in order.
fn hops_once(gpus: &[GpuPlace], wanted: impl Fn(&Hop) -> bool) -> Vec<&Hop> {
    let mut hops: Vec<&Hop> = Vec::new();
    for hop in gpus.iter().flat_map(|gpu| &gpu.path).filter(|hop| wanted(hop)) {
        if !hops.iter().any(|known| known.address == hop.address) {
            hops.push(hop);
        }
    }
    hops
}

fn shared_uplinks(seen: &Seen<'_>) -> Vec<Remark> {
    let mut shared: Vec<(&str, u32, f64)> = Vec::new();
    for gpu in seen.gpus.iter().filter(|gpu| gpu.sharing > 1) {
        // The last hop is the shared one.
        if let Some(hop) = gpu.path.last()
            && !shared.iter().any(|(address, ..)| *address == hop.address)
            && gpu.path.len() > 1
        {
            shared.push((&hop.address, gpu.sharing, hop.link.under_load_gbps()));
        }
    }
    let remark = |(address, number, gbps): (&str, u32, f64)| {
        Remark::note(
            "shared_uplink",
            format!(
                "{number} GPUs share a PCIe uplink to the host of {gbps:.1} GB/s ({address}): their H2D copies share it, and so do their D2H copies. Peer-to-peer copies between them bypass it, unless access control (ACS) redirects them."
            ),
        )
    };
    shared.into_iter().map(remark).collect()
}

fn virtual_machine(seen: &Seen<'_>) -> Vec<Remark> {
    if !seen.found.is_virtual {
        return Vec::new();
    }
    let text = "This is a virtual machine: it shows only the topology that the host exposes. Links, NUMA nodes and access control are configured on the host.";
    vec![Remark::note("virtual_machine", text)]
}

fn access_control(seen: &Seen<'_>) -> Vec<Remark> {
    if !seen.has_peers_over_pcie() {
        return Vec::new();
    }
    let redirecting: Vec<&str> = seen
        .bridges_above_gpus()
        .filter(|bridge| bridge.acs == Some(true))
        .map(|bridge| bridge.address.as_str())
        .collect();
    if redirecting.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "Access control (ACS) on {} redirects traffic between GPUs to the host bridge and back: {}.",
        match redirecting.len() {
            1 => "1 bridge".to_owned(),
            n => format!("{n} bridges"),
        },
        redirecting.join(", ")
    );
    vec![Remark::warning("acs", text).with_remedy(
        "If no device is passed through to a virtual machine, disable ACS in the firmware. Verify with real transfers before and after.",
    )]
}

/// Linux shows the extended configuration of a bridge only to root.
fn unread_access_control(seen: &Seen<'_>) -> Vec<Remark> {
    let unread = seen.bridges_above_gpus().filter(|bridge| bridge.acs.is_none()).count();
    if !seen.has_peers_over_pcie() || seen.found.source != SYSFS || unread == 0 {
        return Vec::new();
    }
    let bridges = if unread == 1 { "1 bridge".to_owned() } else { format!("{unread} bridges") };
    let text = format!(
        "Whether access control (ACS) on {bridges} above the GPUs redirects traffic between them could not be read: only root can."
    );
    vec![Remark::note("acs_unread", text).with_remedy("Run sudo busbound topo.")]
}

fn translating_iommu(seen: &Seen<'_>) -> Vec<Remark> {
    if !seen.has_peers_over_pcie() || seen.found.iommu != Some(Iommu::Translating) {
        return Vec::new();
    }
    let text = "The IOMMU translates DMA addresses: peer-to-peer traffic over PCIe goes through it and may be slow or fail.";
    vec![
        Remark::warning("iommu", text)
            .with_remedy("Boot with iommu=pt: the IOMMU stays on, but addresses pass through untranslated."),
    ]
}

/// Below this locked-memory limit, RDMA registrations of large buffers fail.
const LITTLE_LOCKED_MEMORY: u64 = 1 << 30;

fn locked_memory(seen: &Seen<'_>) -> Vec<Remark> {
    let Some(limit) = seen.found.pinned_limit.filter(|limit| *limit < LITTLE_LOCKED_MEMORY) else {
        return Vec::new();
    };
    let text = format!(
        "ulimit -l is {} kB. Memory that CUDA pins usually does not count against this limit; RDMA registrations do.",
        limit / 1024
    );
    vec![
        Remark::note("locked_memory", text)
            .with_remedy("Run ulimit -l unlimited, or start the container with --ulimit memlock=-1."),
    ]
}

fn unknown_numa_node(seen: &Seen<'_>) -> Vec<Remark> {
    let found = seen.found;
    let is_unknown = !found.is_virtual
        && found.numa_nodes.is_some_and(|nodes| nodes > 1)
        && seen.gpus.iter().any(|gpu| gpu.numa.is_none())
        && found.source == SYSFS;
    if !is_unknown {
        return Vec::new();
    }
    let text = "The firmware does not report the NUMA node of every GPU: measure copies from each node.";
    vec![Remark::note("numa_unknown", text)]
}
