//! The sentences and tables of a topology.

use busbound_diagnosis::quantity::bytes;
use busbound_machine::topology::{
    Connection, DeviceFacts, DeviceKind, GpuPlace, Iommu, Pair, PciDevice, PeerAccess, Topology,
};

use super::plural;

/// The result in one sentence.
pub(crate) fn statement(topology: &Topology) -> String {
    let gpus = topology.gpus.len();
    let warnings = topology.remarks.iter().filter(|remark| remark.is_warning).count();
    if gpus == 0 {
        return "No GPU found on the PCI bus.".to_owned();
    }
    let count = if gpus == 1 { "1 GPU".to_owned() } else { format!("{gpus} GPUs") };
    let narrow: Vec<f64> = topology.gpus.iter().filter_map(|gpu| gpu.host_gbps).collect();
    let (least, most) =
        narrow.iter().fold((f64::INFINITY, 0.0f64), |(a, b), gbps| (a.min(*gbps), b.max(*gbps)));
    let links = if narrow.is_empty() {
        "links to the host unknown".to_owned()
    } else if most - least < 0.1 {
        format!("{least:.1} GB/s per direction to the host")
    } else {
        format!("{least:.1}–{most:.1} GB/s per direction to the host")
    };
    let sharing = topology.gpus.iter().map(|gpu| gpu.sharing).max().unwrap_or(1);
    let links = match sharing {
        0 | 1 => links,
        n if n as usize == gpus => format!("{links}, shared by all"),
        n => format!("{links}, shared by up to {n}"),
    };
    let trouble = match warnings {
        0 => "no warnings".to_owned(),
        1 => "1 warning".to_owned(),
        n => format!("{n} warnings"),
    };
    format!("{count}, {links}: {trouble}.")
}

/// What NVSwitches carry; `None` without them.
pub(crate) fn fabric(topology: &Topology) -> Option<String> {
    topology.bisection_gbps.map(super::plan::allreduce::fabric)
}

/// The PCI tree from the host bridges down, one line per device; unrelated devices are left out.
pub(crate) fn tree(topology: &Topology) -> Vec<String> {
    let devices = &topology.devices;
    let mut lines = Vec::new();
    let mut bridges: Vec<(&str, Option<u32>)> = Vec::new();
    for device in devices.iter().filter(|device| device.parent.is_none() && !device.host_bridge.is_empty()) {
        if bridges.last().is_none_or(|(known, _)| *known != device.host_bridge) {
            bridges.push((&device.host_bridge, device.numa));
        }
    }
    for (bridge, numa) in bridges {
        let roots =
            (0..devices.len()).filter(|&i| devices[i].parent.is_none() && devices[i].host_bridge == bridge);
        let below: Vec<String> = roots.flat_map(|root| branch(devices, root, 1)).collect();
        if !below.is_empty() {
            let node = numa.map_or(String::new(), |node| format!(", NUMA node {node}"));
            lines.push(format!("{bridge}{node}"));
            lines.extend(below);
        }
    }
    lines
}

fn branch(devices: &[PciDevice], device: usize, depth: usize) -> Vec<String> {
    let children = (0..devices.len()).filter(|&i| devices[i].parent == Some(device));
    let below: Vec<String> = children.flat_map(|child| branch(devices, child, depth + 1)).collect();
    let of = &devices[device];
    let kind = match of.kind {
        DeviceKind::Gpu => "GPU",
        DeviceKind::Nic => "NIC",
        DeviceKind::Nvme => "NVMe",
        DeviceKind::NvSwitch => "NVSwitch",
        DeviceKind::Bridge if below.is_empty() => return Vec::new(),
        DeviceKind::Bridge => "bridge",
        DeviceKind::Other if below.is_empty() => return Vec::new(),
        DeviceKind::Other => "device",
    };
    let name = of.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let link = of.link.map_or(String::new(), |link| {
        let now = format!("PCIe {} x{}", link.generation, link.lanes);
        if (link.generation, link.lanes) == (link.max_generation, link.max_lanes) {
            format!("  {now}")
        } else {
            format!("  {now} (of {} x{})", link.max_generation, link.max_lanes)
        }
    });
    let mut lines = vec![format!("{}{} {kind}{name}{link}", "  ".repeat(depth), of.address)];
    lines.extend(below);
    lines
}

/// The path of a GPU to the host, and how to run near it.
pub(crate) fn gpu(place: &GpuPlace) -> String {
    let mut parts = vec![match &place.name {
        Some(name) => format!("{} {name}", place.address),
        None => place.address.clone(),
    }];
    // `nvidia-smi topo -m` has no address, and the line already begins with `GPU0`.
    parts.retain(|address| *address != format!("GPU{}", place.index));
    if let Some((gbps, hop)) = place.host_gbps.zip(place.narrowest) {
        let narrowest = &place.path[hop];
        parts.push(format!(
            "{gbps:.1} GB/s per direction to the host (slowest hop {}: PCIe {} x{})",
            narrowest.address, narrowest.link.max_generation, narrowest.link.lanes
        ));
    }
    parts.extend(facts(place));
    if place.nvlinks > 0 {
        let rate = place.nvlink_gbps.map_or(String::new(), |gbps| format!(" ({gbps:.0} GB/s per direction)"));
        parts.push(plural(u64::from(place.nvlinks), "NVLink", "NVLinks") + &rate);
    }
    if let Some(cpus) = &place.cpus {
        parts.push(format!("near CPUs {cpus}"));
    }
    if let Some(numactl) = &place.numactl {
        parts.push(numactl.clone());
    }
    if !place.beside.is_empty() {
        parts.push(format!("on its switch: {}", place.beside.join(", ")));
    }
    parts.join("; ")
}

/// `80 GB, 132 SMs, compute capability 9.0`, as far as it is known.
fn facts(place: &GpuPlace) -> Option<String> {
    let DeviceFacts { capability, memory_bytes, multiprocessors } = place.facts;
    let known = [
        memory_bytes.map(bytes),
        multiprocessors.map(|count| format!("{count} SMs")),
        capability.map(|(major, minor)| format!("compute capability {major}.{minor}")),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// Which GPUs may access each other's memory, as the driver reports; no rows if it was not asked.
pub(crate) fn peer_access(topology: &Topology) -> (Vec<String>, Vec<Vec<String>>) {
    let is_asked = topology.pairs.iter().any(|pair| !pair.peer_access.is_empty());
    let cell = |a: &GpuPlace, b: &GpuPlace| {
        let is = |pair: &&Pair| {
            pair.a == a.address && pair.b == b.address || pair.a == b.address && pair.b == a.address
        };
        match topology.pairs.iter().find(is) {
            _ if a.index == b.index => "X",
            Some(pair) if pair.is_refused() => "refused",
            Some(pair) if pair.peer_access.iter().any(PeerAccess::is_granted) => "yes",
            _ => "–",
        }
    };
    let name = |gpu: &GpuPlace| format!("GPU{}", gpu.index);
    let titles = std::iter::once("peer access".to_owned()).chain(topology.gpus.iter().map(name)).collect();
    let row = |gpu: &GpuPlace| {
        let cells = topology.gpus.iter().map(|other| cell(gpu, other).to_owned());
        std::iter::once(name(gpu)).chain(cells).collect()
    };
    (titles, if is_asked { topology.gpus.iter().map(row).collect() } else { Vec::new() })
}

/// The connection matrix: titles, and one row per device.
pub(crate) fn matrix(topology: &Topology) -> (Vec<String>, Vec<Vec<String>>) {
    let is_gpu = |address: &str| topology.gpus.iter().find(|gpu| gpu.address == address);
    let mut named: Vec<String> = topology.gpus.iter().map(|gpu| gpu.address.clone()).collect();
    for pair in &topology.pairs {
        for end in [&pair.a, &pair.b] {
            if !named.contains(end) {
                named.push(end.clone());
            }
        }
    }
    let title =
        |address: &String| is_gpu(address).map_or_else(|| address.clone(), |gpu| format!("GPU{}", gpu.index));
    let cell = |a: &String, b: &String| {
        let pair =
            topology.pairs.iter().find(|pair| pair.a == *a && pair.b == *b || pair.a == *b && pair.b == *a);
        pair.map_or(if a == b { "X".to_owned() } else { "–".to_owned() }, |pair| pair.connection.word())
    };
    let columns: Vec<&String> = named.iter().filter(|address| is_gpu(address).is_some()).collect();
    let mut titles = vec![String::new()];
    titles.extend(columns.iter().map(|address| title(address)));
    let rows = named
        .iter()
        .map(|row| {
            std::iter::once(title(row)).chain(columns.iter().map(|column| cell(row, column))).collect()
        })
        .collect();
    if named.len() < 2 { (titles, Vec::new()) } else { (titles, rows) }
}

/// Peer access that the driver refuses, per pair.
pub(crate) fn refused(topology: &Topology) -> Vec<String> {
    let pairs = topology.pairs.iter().flat_map(|pair| {
        let is_nvlink = matches!(pair.connection, Connection::NvLink(_));
        // Without NVLink, access over it is refused everywhere.
        let refused = pair
            .peer_access
            .iter()
            .filter(move |access| access.is_refused() && (is_nvlink || access.kind != "nvlink"));
        refused.map(move |access| format!("{} ↔ {}: peer {} {}", pair.a, pair.b, access.kind, access.status))
    });
    pairs.collect()
}

/// Host settings that affect copies.
pub(crate) fn host(topology: &Topology) -> String {
    let mut parts = Vec::new();
    if let Some(nodes) = topology.numa_nodes {
        parts.push(if nodes == 1 { "1 NUMA node".to_owned() } else { format!("{nodes} NUMA nodes") });
    }
    parts.push(
        match topology.iommu {
            Iommu::Off => "IOMMU off",
            Iommu::PassThrough => "IOMMU in passthrough mode",
            Iommu::Translating => "IOMMU translates addresses",
            Iommu::Unknown => "IOMMU mode unknown",
        }
        .to_owned(),
    );
    if topology.is_virtual {
        let name = topology.virtual_machine.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        parts.push(format!("virtual machine{name}"));
    }
    parts.push(match topology.pinned_limit {
        Some(limit) => format!("locked memory limited to {} kB", limit / 1024),
        None => "no known limit on locked memory".to_owned(),
    });
    if let Some(limit) = topology.memory_limit {
        parts.push(format!("cgroup memory limit {:.1} GB", limit as f64 / 1e9));
    }
    parts.join(", ")
}
