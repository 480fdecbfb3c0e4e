//! What does the PCI tree imply? Each GPU's path to the host, and the connection between any two devices.

use crate::catalog::gpu_of_name;
use crate::interconnect::NvLinkGeneration;

use super::remarks::remarks;
use super::{
    Connection, DeviceFacts, DeviceIndex, DeviceKind, Found, GpuPlace, Hop, Iommu, MAX_NVLINKS, Pair,
    TOPOLOGY_SCHEMA, Topology, ancestors,
};

pub(super) fn topology(found: Found) -> Topology {
    let gpus: Vec<DeviceIndex> =
        (0..found.devices.len()).filter(|&i| found.devices[i].kind == DeviceKind::Gpu).collect();
    let places: Vec<GpuPlace> =
        (0u32..).zip(&gpus).map(|(index, &device)| place(index, device, &gpus, &found)).collect();
    let pairs = pairs(&found);
    let bisection_gbps = bisection_gbps(&places, &pairs);
    let remarks = remarks(&found, &places, &pairs);
    Topology {
        schema: TOPOLOGY_SCHEMA,
        source: found.source,
        gpus: places,
        pairs,
        bisection_gbps,
        numa_nodes: found.numa_nodes,
        iommu: found.iommu.unwrap_or(Iommu::Unknown),
        virtual_machine: found.virtual_machine,
        is_virtual: found.is_virtual,
        pinned_limit: found.pinned_limit,
        memory_limit: found.memory_limit,
        driver: found.driver,
        processor: found.processor,
        devices: found.devices,
        remarks,
    }
}

fn place(index: u32, device: DeviceIndex, gpus: &[DeviceIndex], found: &Found) -> GpuPlace {
    let devices = &found.devices;
    let gpu = &devices[device];
    let path = ancestors(devices, device);
    let hops = hops(found, &path);
    let narrowest = (0..hops.len())
        .min_by(|&a, &b| hops[a].link.under_load_gbps().total_cmp(&hops[b].link.under_load_gbps()));
    // The topmost bridge is the root port: everything below it shares the uplink to the host.
    let root = path[path.len() - 1];
    let shares = |other: &&DeviceIndex| ancestors(devices, **other).contains(&root);
    let sharing = if root == device { 1 } else { gpus.iter().filter(shares).count() as u32 };
    let nvlinks = found.nvlinks.iter().filter(|(a, b, _)| *a == gpu.address || *b == gpu.address);
    let facts = found.facts.iter().find(|(of, _)| *of == device);
    let facts = facts.map(|(_, facts)| *facts).unwrap_or_default();
    let several_nodes = found.numa_nodes.is_some_and(|nodes| nodes > 1);
    let numactl = gpu
        .numa
        .filter(|_| several_nodes)
        .map(|node| format!("numactl --cpunodebind={node} --membind={node}"));
    let beside = (0..devices.len())
        .filter(|&i| matches!(devices[i].kind, DeviceKind::Nic | DeviceKind::Nvme))
        .filter(|&i| {
            gpu.parent.is_some() && matches!(connection(found, device, i), Connection::Pix | Connection::Pxb)
        })
        .map(|i| {
            let kind = if devices[i].kind == DeviceKind::Nic { "NIC" } else { "NVMe" };
            format!("{kind} {}", devices[i].address)
        })
        .collect();
    let generation = generation(&facts, gpu.name.as_deref());
    // Through an NVSwitch, every peer lists all of the GPU's links.
    let nvlinks = nvlinks
        .map(|(.., links)| *links)
        .sum::<u32>()
        .min(generation.map_or(MAX_NVLINKS, |generation| generation.links));
    let nvlink_gbps = generation.map(|generation| f64::from(nvlinks) * generation.link_gbps);
    GpuPlace {
        index,
        address: gpu.address.clone(),
        name: gpu.name.clone(),
        rank: found.ranks.iter().find(|(of, _)| *of == device).map(|(_, rank)| *rank),
        numa: gpu.numa,
        cpus: gpu.cpus.clone(),
        numactl,
        host_gbps: narrowest.map(|hop| hops[hop].link.under_load_gbps()),
        path: hops,
        narrowest,
        nvlinks,
        nvlink_gbps: nvlink_gbps.filter(|gbps| *gbps > 0.0),
        sharing,
        beside,
        facts,
    }
}

/// The NVLinks of a GPU.
fn generation(facts: &DeviceFacts, name: Option<&str>) -> Option<&'static NvLinkGeneration> {
    let listed = name.and_then(gpu_of_name).and_then(|gpu| gpu.capability);
    facts.capability.or(listed).and_then(NvLinkGeneration::of_capability)
}

/// `None` unless each GPU reaches every other one with all of its links, which only NVSwitches do among three or more.
fn bisection_gbps(gpus: &[GpuPlace], pairs: &[Pair]) -> Option<f64> {
    let all_of = |gpu: &GpuPlace| {
        let is_of = |pair: &&Pair| pair.a == gpu.address || pair.b == gpu.address;
        let by_all = |pair: &&Pair| pair.connection == Connection::NvLink(gpu.nvlinks);
        gpu.nvlinks > 0 && pairs.iter().filter(is_of).filter(by_all).count() == gpus.len() - 1
    };
    if gpus.len() < 3 || !gpus.iter().all(all_of) {
        return None;
    }
    let slowest = gpus.iter().map(|gpu| gpu.nvlink_gbps).collect::<Option<Vec<f64>>>()?;
    Some((gpus.len() / 2) as f64 * slowest.into_iter().fold(f64::INFINITY, f64::min))
}

/// The links on the path up. The kernel lists each link at both ends: at a device or the upstream port of a switch,
/// and at the port above it; the ports inside a switch are not joined by a link. NCCL lists each link once.
fn hops(found: &Found, path: &[DeviceIndex]) -> Vec<Hop> {
    let ends = if found.links_at_both_ends { 2 } else { 1 };
    let hop = |ends: &[DeviceIndex]| {
        let below = &found.devices[*ends.first()?];
        let mut link = below.link?;
        if let Some(above) = ends.get(1).and_then(|&above| found.devices[above].link) {
            // A link is limited by the slower of its two ends.
            link.max_generation = link.max_generation.min(above.max_generation);
            link.max_lanes = link.max_lanes.min(above.max_lanes);
        }
        Some(Hop { address: below.address.clone(), link })
    };
    path.chunks(ends).filter_map(hop).collect()
}

/// The connection between two devices, from the PCI tree alone.
fn connection(found: &Found, a: DeviceIndex, b: DeviceIndex) -> Connection {
    let devices = &found.devices;
    // A switch appears as an upstream port plus one downstream port per device below it, or as one device.
    let one_switch = if found.links_at_both_ends { 2 } else { 1 };
    let (up_a, up_b) = (ancestors(devices, a), ancestors(devices, b));
    if let Some(at_a) = up_a.iter().position(|device| up_b.contains(device)) {
        let at_b = up_b.iter().position(|device| *device == up_a[at_a]).unwrap_or(0);
        let is_one = at_a <= one_switch && at_b <= one_switch;
        return if is_one { Connection::Pix } else { Connection::Pxb };
    }
    let (a, b) = (&devices[a], &devices[b]);
    if a.host_bridge == b.host_bridge {
        Connection::Phb
    } else if a.numa.is_some() && a.numa == b.numa {
        Connection::Node
    } else {
        Connection::Sys
    }
}

/// Every pair of GPUs, and every pair of a GPU and a NIC.
fn pairs(found: &Found) -> Vec<Pair> {
    let devices = &found.devices;
    let counts = |i: &usize| matches!(devices[*i].kind, DeviceKind::Gpu | DeviceKind::Nic);
    let listed: Vec<usize> = (0..devices.len()).filter(counts).collect();
    let mut pairs = Vec::new();
    for (n, &a) in listed.iter().enumerate() {
        for &b in &listed[n + 1..] {
            if devices[a].kind != DeviceKind::Gpu && devices[b].kind != DeviceKind::Gpu {
                continue;
            }
            let (a_name, b_name) = (&devices[a].address, &devices[b].address);
            let is = |x: &str, y: &str| x == a_name && y == b_name || x == b_name && y == a_name;
            let printed = found.printed_pairs.iter().find(|pair| is(&pair.a, &pair.b));
            let nvlink =
                found.nvlinks.iter().find(|(x, y, _)| is(x, y)).map(|(.., links)| Connection::NvLink(*links));
            let flat = devices[a].host_bridge.is_empty();
            let connection = match printed {
                Some(pair) if flat => pair.connection,
                // A pair that was not printed is unknown.
                None if flat => continue,
                _ => nvlink.unwrap_or_else(|| connection(found, a, b)),
            };
            let peer_access = printed.map(|pair| pair.peer_access.clone()).unwrap_or_default();
            pairs.push(Pair { a: a_name.clone(), b: b_name.clone(), connection, peer_access });
        }
    }
    pairs
}
