//! What does Linux report under /sys and /proc? The root is a parameter, so that tests can use synthetic trees.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{AMD, DeviceIndex, DeviceKind, Found, HopLink, Iommu, PciDevice, SYSFS, generation_of, kind_of};

/// Reads the tree below a root, usually `/`. Unreadable entries are treated as absent.
pub fn from_sysfs(root: &Path) -> Found {
    let mut found = Found { source: SYSFS.to_owned(), links_at_both_ends: true, ..Found::default() };
    let mut places: HashMap<PathBuf, DeviceIndex> = HashMap::new();
    // Sorted, so that a bridge comes before the devices below it.
    for path in device_paths(root) {
        let parent = path.parent().and_then(|above| places.get(above)).copied();
        if let Some(device) = device(&path, parent) {
            places.insert(path, found.devices.len());
            found.devices.push(device);
        }
    }
    found.driver = root.join("proc/driver/nvidia/version").exists();
    for device in found.devices.iter_mut().filter(|device| device.kind == DeviceKind::Gpu) {
        let information = root.join("proc/driver/nvidia/gpus").join(&device.address).join("information");
        device.name = read(&information)
            .and_then(|text| {
                let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
                Some(model.trim().to_owned())
            })
            .or(device.name.take());
    }
    let nodes = sorted_entries(&root.join("sys/devices/system/node"));
    let nodes =
        nodes.iter().filter(|name| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok()));
    found.numa_nodes = u32::try_from(nodes.count()).ok().filter(|n| *n > 0);
    found.iommu = Some(iommu(root, &found));
    (found.is_virtual, found.virtual_machine) = virtual_machine(root);
    found.processor = read(&root.join("proc/cpuinfo")).and_then(|text| processor(&text));
    found.pinned_limit = read(&root.join("proc/self/limits")).and_then(|text| locked_memory(&text));
    found.memory_limit =
        read(&root.join("sys/fs/cgroup/memory.max")).and_then(|text| text.trim().parse().ok());
    found
}

/// Device paths from the bus listing, which includes devices below other buses; without it, from a tree walk.
fn device_paths(root: &Path) -> Vec<PathBuf> {
    let bus = root.join("sys/bus/pci/devices");
    let listed = sorted_entries(&bus);
    let mut paths: Vec<PathBuf> =
        listed.iter().filter_map(|name| fs::canonicalize(bus.join(name)).ok()).collect();
    if paths.is_empty() {
        let devices = root.join("sys/devices");
        for bridge in sorted_entries(&devices).iter().filter(|name| name.starts_with("pci")) {
            walk(&devices.join(bridge), &mut paths);
        }
    }
    paths.sort();
    paths
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for name in sorted_entries(folder).iter().filter(|name| is_address(name)) {
        paths.push(folder.join(name));
        walk(&folder.join(name), paths);
    }
}

fn device(path: &Path, parent: Option<DeviceIndex>) -> Option<PciDevice> {
    let address = path.file_name()?.to_str().filter(|name| is_address(name))?;
    let host_bridge =
        path.ancestors().filter_map(|above| above.file_name()?.to_str()).find(|name| name.starts_with("pci"));
    let hexadecimal = |file: &str| {
        let text = read(&path.join(file))?;
        u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    let (class, vendor) = (hexadecimal("class").unwrap_or(0), hexadecimal("vendor").unwrap_or(0));
    let kind = kind_of(class, vendor);
    let text = |file: &str| read(&path.join(file)).map(|text| text.trim().to_owned());
    let number = |file: &str| text(file).and_then(|text| text.parse::<i64>().ok());
    let lanes = |file: &str| number(file).and_then(|n| u8::try_from(n).ok()).filter(|n| (1..=32).contains(n));
    let speed = |file: &str| text(file).as_deref().and_then(generation_of);
    let link = match (speed("current_link_speed"), lanes("current_link_width")) {
        (Some(generation), Some(now)) => Some(HopLink {
            generation,
            lanes: now,
            max_generation: speed("max_link_speed").unwrap_or(generation),
            max_lanes: lanes("max_link_width").unwrap_or(now),
        }),
        _ => None,
    };
    Some(PciDevice {
        address: address.to_owned(),
        kind,
        // NVIDIA's driver knows the model; of others, the maker is known.
        name: (kind == DeviceKind::Gpu && vendor == AMD).then(|| "AMD GPU".to_owned()),
        parent,
        host_bridge: host_bridge.unwrap_or("pci").to_owned(),
        numa: number("numa_node").and_then(|n| u32::try_from(n).ok()),
        cpus: text("local_cpulist").filter(|text| !text.is_empty()),
        link,
        acs: fs::read(path.join("config")).ok().and_then(|config| acs(&config)),
    })
}

/// Whether the access control (ACS) of a bridge redirects peer requests upstream. Only root can read the extended
/// capabilities.
fn acs(config: &[u8]) -> Option<bool> {
    const ACS: u16 = 0x000d;
    let word = |at: usize| Some(u16::from_le_bytes([*config.get(at)?, *config.get(at + 1)?]));
    let mut at = 0x100;
    // Each capability takes at least four bytes.
    for _ in 0..960 {
        let id = word(at)?;
        if id == 0 || id == 0xffff {
            return Some(false);
        }
        if id == ACS {
            // Source validation, request redirect, completion redirect, upstream forwarding.
            let redirects = word(at + 6)? & 0b0000_1100;
            return Some(redirects != 0);
        }
        at = usize::from(word(at + 2)? >> 4);
        if at < 0x100 {
            return Some(false);
        }
    }
    None
}

/// The IOMMU mode of the GPUs' groups; if those are unknown, of all groups.
fn iommu(root: &Path, found: &Found) -> Iommu {
    let groups = root.join("sys/kernel/iommu_groups");
    if !groups.is_dir() {
        return Iommu::Unknown;
    }
    let all = sorted_entries(&groups);
    let holds_gpu = |group: &&String| {
        let members = sorted_entries(&groups.join(group).join("devices"));
        found.devices.iter().any(|device| device.kind == DeviceKind::Gpu && members.contains(&device.address))
    };
    let of_gpus: Vec<&String> = all.iter().filter(holds_gpu).collect();
    let asked: Vec<&String> = if of_gpus.is_empty() { all.iter().collect() } else { of_gpus };
    let types: Vec<String> =
        asked.iter().filter_map(|group| read(&groups.join(group).join("type"))).collect();
    match () {
        () if asked.is_empty() => Iommu::Off,
        () if types.is_empty() => Iommu::Unknown,
        () if types.iter().any(|kind| kind.trim().starts_with("DMA")) => Iommu::Translating,
        () => Iommu::PassThrough,
    }
}

fn virtual_machine(root: &Path) -> (bool, Option<String>) {
    const NAMES: [(&str, &str); 9] = [
        ("QEMU", "QEMU/KVM"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("Xen", "Xen"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google", "Google Compute Engine"),
        ("Virtual Machine", "Hyper-V"),
        ("VirtualBox", "VirtualBox"),
        ("OpenStack", "OpenStack"),
    ];
    let vendor = read(&root.join("sys/class/dmi/id/sys_vendor")).unwrap_or_default();
    let product = read(&root.join("sys/class/dmi/id/product_name")).unwrap_or_default();
    let reported = format!("{} {}", vendor.trim(), product.trim());
    let named = NAMES.iter().find(|(word, _)| reported.contains(word)).map(|(_, name)| (*name).to_owned());
    // EC2 also offers bare-metal machines; their names contain ".metal".
    let bare_metal = product.contains(".metal");
    let flag = read(&root.join("proc/cpuinfo")).is_some_and(|text| {
        text.lines()
            .any(|line| line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor"))
    });
    ((named.is_some() || flag) && !bare_metal, named.filter(|_| !bare_metal))
}

/// `vendor_id : GenuineIntel`; Arm's lists have no such line.
fn processor(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("vendor_id"))?;
    line.split_once(':').map(|(_, maker)| maker.trim().to_owned())
}

/// Bytes of `Max locked memory`, or `None` for no limit.
fn locked_memory(limits: &str) -> Option<u64> {
    let line = limits.lines().find(|line| line.starts_with("Max locked memory"))?;
    line.trim_start_matches("Max locked memory").split_whitespace().next()?.parse().ok()
}

/// `0000:17:00.0`.
fn is_address(name: &str) -> bool {
    let parts: Vec<&str> = name.split([':', '.']).collect();
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(parts.as_slice(), [domain, bus, device, function]
        if domain.len() >= 4 && bus.len() == 2 && device.len() == 2 && function.len() == 1 && parts.iter().all(|part| hex(part)))
}

fn sorted_entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_control_is_read_from_configuration_space() {
        let mut config = vec![0u8; 4096];
        // An error reporting capability that points to access control at 0x148.
        config[0x100..0x104].copy_from_slice(&[0x01, 0x00, 0x01, 0x14]);
        config[0x102..0x104].copy_from_slice(&(0x1u16 | (0x148 << 4)).to_le_bytes());
        config[0x148..0x14c].copy_from_slice(&[0x0d, 0x00, 0x01, 0x00]);
        assert_eq!(acs(&config), Some(false));
        config[0x14e] = 0b0001_1101;
        assert_eq!(acs(&config), Some(true));
        assert_eq!(acs(&config[..64]), None, "an unprivileged user sees only the first 64 bytes");
    }

    #[test]
    fn limits_and_addresses_are_parsed() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              8388608              bytes\n";
        assert_eq!(locked_memory(limits), Some(8_388_608));
        assert_eq!(locked_memory(&limits.replace("8388608", "unlimited")), None);
        assert!(is_address("0000:17:00.0") && is_address("10000:e1:00.0"));
        assert!(!is_address("virtio1") && !is_address("pci0000:16") && !is_address("0000:17:00"));
    }
}
