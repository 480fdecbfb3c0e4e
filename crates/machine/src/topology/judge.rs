//! What follows from the tree: paths, pairs, and what is worth a remark.

use serde::Serialize;

use super::{
    Connection, DeviceIndex, DeviceKind, Found, GpuPlace, Hop, Iommu, Pair, PciDevice, TOPOLOGY_SCHEMA,
    Topology,
};

/// Something worth knowing, with its reason and a remedy that does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remark {
    pub id: &'static str,
    /// Whether it costs speed; else it is a note.
    pub is_warning: bool,
    pub text: String,
    pub remedy: Option<String>,
}

/// Links of the GPU that has most.
const MOST_NVLINKS: u32 = 18;

pub(super) fn topology(found: Found) -> Topology {
    let gpus: Vec<DeviceIndex> =
        (0..found.devices.len()).filter(|&i| found.devices[i].kind == DeviceKind::Gpu).collect();
    let places: Vec<GpuPlace> =
        (0u32..).zip(&gpus).map(|(index, &device)| place(index, device, &gpus, &found)).collect();
    let pairs = pairs(&found);
    let remarks = remarks(&found, &places, &pairs);
    Topology {
        schema: TOPOLOGY_SCHEMA,
        source: found.source,
        gpus: places,
        pairs,
        numa_nodes: found.numa_nodes,
        iommu: found.iommu.unwrap_or(Iommu::Unknown),
        virtual_machine: found.virtual_machine,
        is_virtual: found.is_virtual,
        pinned_limit: found.pinned_limit,
        memory_limit: found.memory_limit,
        driver: found.driver,
        devices: found.devices,
        remarks,
    }
}

/// From a device up to the last one below its host bridge, itself first.
fn ancestors(devices: &[PciDevice], device: DeviceIndex) -> Vec<DeviceIndex> {
    let mut path = vec![device];
    while let Some(parent) = devices[path[path.len() - 1]].parent.filter(|parent| !path.contains(parent)) {
        path.push(parent);
    }
    path
}

fn place(index: u32, device: DeviceIndex, gpus: &[DeviceIndex], found: &Found) -> GpuPlace {
    let devices = &found.devices;
    let gpu = &devices[device];
    let path = ancestors(devices, device);
    let hops = hops(found, &path);
    let narrowest = (0..hops.len())
        .min_by(|&a, &b| hops[a].link.under_load_gbps().total_cmp(&hops[b].link.under_load_gbps()));
    // The topmost bridge is the root port: what is below it shares the way to the host.
    let root = path[path.len() - 1];
    let shares = |other: &&DeviceIndex| ancestors(devices, **other).contains(&root);
    let sharing = if root == device { 1 } else { gpus.iter().filter(shares).count() as u32 };
    let nvlinks = found.nvlinks.iter().filter(|(a, b, _)| *a == gpu.address || *b == gpu.address);
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
        // Through a switch every peer is told all of them.
        nvlinks: nvlinks.map(|(.., links)| *links).sum::<u32>().min(MOST_NVLINKS),
        sharing,
        beside,
    }
}

/// The links on the way up. The kernel shows each at both its ends: at a device or the upper port of a switch,
/// and at the port above that; what lies between the ports of a switch is no link. NCCL shows each once.
fn hops(found: &Found, path: &[DeviceIndex]) -> Vec<Hop> {
    let ends = if found.links_at_both_ends { 2 } else { 1 };
    let hop = |ends: &[DeviceIndex]| {
        let below = &found.devices[*ends.first()?];
        let mut link = below.link?;
        if let Some(above) = ends.get(1).and_then(|&above| found.devices[above].link) {
            // It can be no more than both of its ends can.
            link.max_generation = link.max_generation.min(above.max_generation);
            link.max_lanes = link.max_lanes.min(above.max_lanes);
        }
        Some(Hop { address: below.address.clone(), link })
    };
    path.chunks(ends).filter_map(hop).collect()
}

/// What lies between two devices, by the tree alone.
fn connection(found: &Found, a: DeviceIndex, b: DeviceIndex) -> Connection {
    let devices = &found.devices;
    // A switch shows as an upstream port with a downstream port for each device below it, or as one device.
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

/// Every two GPUs, and every GPU and NIC.
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
                // What was not printed is not known.
                None if flat => continue,
                _ => nvlink.unwrap_or_else(|| connection(found, a, b)),
            };
            let peer_access = printed.map(|pair| pair.peer_access.clone()).unwrap_or_default();
            pairs.push(Pair { a: a_name.clone(), b: b_name.clone(), connection, peer_access });
        }
    }
    pairs
}

fn remarks(found: &Found, gpus: &[GpuPlace], pairs: &[Pair]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut say = |id, is_warning, text: String, remedy: Option<String>| {
        remarks.push(Remark { id, is_warning, text, remedy });
    };
    if !found.driver && found.source == "sysfs" {
        say(
            "no_driver",
            false,
            "No NVIDIA driver is loaded: the PCI tree is told, NVLinks and peer access are not.".to_owned(),
            None,
        );
    }
    let mut told: Vec<&str> = Vec::new();
    for gpu in gpus {
        for hop in &gpu.path {
            let possible = hop.link.max_lanes;
            if hop.link.lanes < possible && !told.contains(&hop.address.as_str()) {
                told.push(&hop.address);
                say(
                    "narrow_link",
                    true,
                    format!(
                        "The link of {} has {} of {possible} lanes: {:.1} GB/s each way in place of {:.1}. Lanes do not come and go with load, so this is a fault or a narrower slot.",
                        hop.address,
                        hop.link.lanes,
                        hop.link.under_load_gbps(),
                        hop.link.under_load_gbps() * f64::from(possible) / f64::from(hop.link.lanes),
                    ),
                    // In a virtual machine that is the host's to do.
                    (!found.is_virtual).then(|| "Look at the slot's wiring and bifurcation in the firmware, reseat the board and its riser.".to_owned()),
                );
            }
        }
    }
    let mut slow: Vec<&Hop> = Vec::new();
    for hop in gpus.iter().flat_map(|gpu| &gpu.path) {
        let is_known = slow.iter().any(|known| known.address == hop.address);
        if hop.link.generation < hop.link.max_generation && !is_known {
            slow.push(hop);
        }
    }
    if let Some(hop) = slow.first() {
        let others = if slow.len() > 1 { format!(" and {} more", slow.len() - 1) } else { String::new() };
        say(
            "idle_link",
            false,
            format!(
                "The link of {}{others} runs at PCIe {} of {}. An idle GPU trains its link down to save power: that is no fault; look again under load.",
                hop.address, hop.link.generation, hop.link.max_generation
            ),
            None,
        );
    }
    let mut shared: Vec<(&str, u32, f64)> = Vec::new();
    for gpu in gpus.iter().filter(|gpu| gpu.sharing > 1) {
        // The last hop is the one they have in common.
        if let Some(hop) = gpu.path.last()
            && !shared.iter().any(|(address, ..)| *address == hop.address)
            && gpu.path.len() > 1
        {
            shared.push((&hop.address, gpu.sharing, hop.link.under_load_gbps()));
        }
    }
    for (address, number, gbps) in shared {
        say(
            "shared_uplink",
            false,
            format!(
                "{number} GPUs share one way to the host of {gbps:.1} GB/s ({address}): their copies from and to host memory share it, direction by direction. Between each other they need not take it, unless access control makes them."
            ),
            None,
        );
    }
    let between_gpus = |pair: &&Pair| {
        gpus.iter().any(|gpu| gpu.address == pair.a) && gpus.iter().any(|gpu| gpu.address == pair.b)
    };
    let over_pcie =
        pairs.iter().filter(between_gpus).any(|pair| !matches!(pair.connection, Connection::NvLink(_)));
    if found.is_virtual {
        say(
            "virtual_machine",
            false,
            "This is a virtual machine: the tree is what the host shows of it, and links, NUMA nodes and access control are the host's to set.".to_owned(),
            None,
        );
    } else if gpus.len() > 1 && over_pcie {
        // Ports that no GPU is below do not matter to them.
        let above_gpu: Vec<DeviceIndex> = (0..found.devices.len())
            .filter(|&i| found.devices[i].kind == DeviceKind::Gpu)
            .flat_map(|gpu| ancestors(&found.devices, gpu))
            .collect();
        let redirecting: Vec<&str> = found
            .devices
            .iter()
            .enumerate()
            .filter(|(i, device)| {
                device.kind == DeviceKind::Bridge && device.acs == Some(true) && above_gpu.contains(i)
            })
            .map(|(_, device)| device.address.as_str())
            .collect();
        if !redirecting.is_empty() {
            say(
                "acs",
                true,
                format!(
                    "Access control (ACS) on {} bridges sends traffic between GPUs up to the host bridge and back: {}.",
                    redirecting.len(),
                    redirecting.join(", ")
                ),
                Some("If no device is passed on to a virtual machine, switch ACS off in the firmware. Verify with data before and after.".to_owned()),
            );
        }
        if found.iommu == Some(Iommu::Translating) {
            say(
                "iommu",
                true,
                "The IOMMU translates DMA addresses: peer traffic over PCIe goes up to it, and may be slow or fail.".to_owned(),
                Some("Boot with iommu=pt, which keeps it on and lets addresses pass.".to_owned()),
            );
        }
    }
    let small = found.pinned_limit.filter(|limit| *limit < 1 << 30);
    if let Some(limit) = small {
        say(
            "locked_memory",
            false,
            format!(
                "ulimit -l is {} kB. Memory that CUDA pins itself mostly does not count against it; RDMA registrations do.",
                limit / 1024
            ),
            Some("ulimit -l unlimited, or --ulimit memlock=-1 for a container.".to_owned()),
        );
    }
    if !found.is_virtual
        && found.numa_nodes.is_some_and(|nodes| nodes > 1)
        && gpus.iter().any(|gpu| gpu.numa.is_none())
        && found.source == "sysfs"
    {
        say(
            "numa_unknown",
            false,
            "The firmware does not say which NUMA node a GPU is near: measure copies from each.".to_owned(),
            None,
        );
    }
    remarks
}
