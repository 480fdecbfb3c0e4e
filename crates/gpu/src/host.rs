//! What is the host, and where in it is a device?

use std::fs;
use std::path::Path;

/// The processor's name.
pub(crate) fn cpu_name() -> String {
    name_in(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn name_in(cpuinfo: &str) -> String {
    let named = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    named.map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// The name and version of the operating system.
pub(crate) fn kernel() -> String {
    #[cfg(unix)]
    {
        let system = rustix::system::uname();
        format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy())
    }
    #[cfg(not(unix))]
    std::env::consts::OS.to_owned()
}

/// Whether the CPU flags say that it runs under a hypervisor.
pub(crate) fn is_virtual() -> Option<bool> {
    has_hypervisor_flag(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// `None` if the CPU lists no flags.
fn has_hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Bytes of host memory that the process may use: the machine's, or what its container allows.
pub(crate) fn memory() -> Option<u64> {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    total_in(&fs::read_to_string("/proc/meminfo").ok()?, limit.and_then(|text| text.trim().parse().ok()))
}

fn total_in(meminfo: &str, container: Option<u64>) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = line.split_whitespace().next()?.parse::<u64>().ok()? << 10;
    Some(container.map_or(total, |most| total.min(most)))
}

/// Bytes that the host can allocate without swapping.
pub(crate) fn free_memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bytes = |name: &str| {
        fs::read_to_string(Path::new("/sys/fs/cgroup").join(name)).ok()?.trim().parse::<u64>().ok()
    };
    free_in(&meminfo, bytes("memory.max").zip(bytes("memory.current")))
}

/// Free memory to assume if the host does not report it: enough for the minimum.
const FREE_IF_UNKNOWN: u64 = 4 << 30;

/// A container, with its limit and current use, may have less than the machine.
fn free_in(meminfo: &str, container: Option<(u64, u64)>) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let free = kib.map_or(FREE_IF_UNKNOWN, |kib| kib << 10);
    container.map_or(free, |(most, now)| free.min(most.saturating_sub(now)))
}

/// What is the same for all processes of a machine, and different on another one: what NCCL takes for it, else a number that Linux
/// makes when it starts. Not the host's name, which is private and which containers of one machine do not share.
pub(crate) fn node() -> String {
    let given = std::env::var("NCCL_HOSTID").ok().filter(|given| !given.trim().is_empty());
    let at_boot = || fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    given.or_else(at_boot).map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Where a device is in the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) numa_node: Option<u32>,
    /// In sysfs format: `0-15,32-47`.
    pub(crate) cpus: Option<String>,
}

pub(crate) fn place_of(root: &Path, pci_address: &str) -> Place {
    let device = root.join("sys/bus/pci/devices").join(pci_address);
    let text = |name: &str| fs::read_to_string(device.join(name)).ok().map(|text| text.trim().to_owned());
    // −1 if the firmware does not say.
    let numa_node = text("numa_node").and_then(|node| node.parse().ok());
    Place { numa_node, cpus: text("local_cpulist").filter(|cpus| !cpus.is_empty()) }
}

/// The NUMA nodes that have CPUs, with these CPUs in sysfs format; empty if the system does not say.
pub(crate) fn nodes(root: &Path) -> Vec<(u32, String)> {
    let folder = root.join("sys/devices/system/node");
    let read = |path: std::path::PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let number = |name: &str| name.strip_prefix("node")?.parse::<u32>().ok();
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut nodes: Vec<(u32, String)> = entries
        .filter_map(|entry| {
            let node = number(entry.file_name().to_str()?)?;
            let cpus = read(entry.path().join("cpulist")).filter(|cpus| !cpus.is_empty())?;
            Some((node, cpus))
        })
        .collect();
    nodes.sort();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_a_name_and_memory() {
        assert!(kernel().starts_with("Linux "));
        assert!(free_memory() > 1 << 20);
        assert!(!cpu_name().is_empty());
    }

    #[test]
    fn the_processor_name_and_flags_are_parsed() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core: Processor\nflags\t\t: fpu vme hypervisor lm\n";
        assert_eq!(name_in(text), "AMD EPYC 9654 96-Core: Processor");
        assert_eq!(has_hypervisor_flag(text), Some(true));
        assert_eq!(has_hypervisor_flag("flags : fpu vmx"), Some(false));
        // Arm lists Features, and no model name.
        let arm = "processor\t: 0\nFeatures\t: fp asimd\n";
        assert_eq!((name_in(arm).as_str(), has_hypervisor_flag(arm)), ("unknown", None));
    }

    #[test]
    fn a_container_has_what_is_left_of_its_limit() {
        let text = "MemTotal:       65536 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(free_in(text, None), 8 << 20);
        assert_eq!(free_in(text, Some((6 << 20, 2 << 20))), 4 << 20);
        assert_eq!(free_in(text, Some((64 << 20, 2 << 20))), 8 << 20);
        assert_eq!(free_in(text, Some((1 << 20, 2 << 20))), 0);
        assert_eq!(free_in("", None), FREE_IF_UNKNOWN);
        assert_eq!(total_in(text, None), Some(64 << 20));
        assert_eq!(total_in(text, Some(6 << 20)), Some(6 << 20));
        assert_eq!(total_in("", Some(6 << 20)), None);
    }

    #[test]
    fn nodes_without_cpus_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/devices/system/node");
        for (name, cpus) in [("node1", "32-63\n"), ("node0", "0-31\n"), ("node2", "\n"), ("power", "")] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("cpulist"), cpus).unwrap();
        }
        assert_eq!(nodes(root.path()), [(0, "0-31".to_owned()), (1, "32-63".to_owned())]);
        assert!(nodes(&root.path().join("elsewhere")).is_empty());
    }

    #[test]
    fn a_device_without_a_node_has_none() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/bus/pci/devices/0000:01:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("numa_node"), "-1\n").unwrap();
        fs::write(device.join("local_cpulist"), "0-15\n").unwrap();
        let place = place_of(root.path(), "0000:01:00.0");
        assert_eq!(place, Place { numa_node: None, cpus: Some("0-15".to_owned()) });
        assert_eq!(place_of(root.path(), "0000:02:00.0"), Place::default());
    }
}
