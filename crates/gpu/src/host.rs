//! What is the host, and where does the measuring thread run?

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processor's name.
pub(crate) fn cpu_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    named.map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// The operating system's name and version.
pub(crate) fn kernel() -> String {
    let system = rustix::system::uname();
    format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy())
}

/// Whether the processor says that a hypervisor runs it.
pub(crate) fn is_virtual() -> Option<bool> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = text.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Bytes that the host can give without swapping.
pub(crate) fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    // Unknown: enough for what is always asked for.
    let free = kib.map_or(4 << 30, |kib| kib << 10);
    let bytes = |name: &str| {
        fs::read_to_string(Path::new("/sys/fs/cgroup").join(name)).ok()?.trim().parse::<u64>().ok()
    };
    // A container may have less than the machine.
    match (bytes("memory.max"), bytes("memory.current")) {
        (Some(most), Some(now)) => free.min(most.saturating_sub(now)),
        _ => free,
    }
}

/// Where a device lies in the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) numa_node: Option<u32>,
    /// As sysfs lists them: `0-15,32-47`.
    pub(crate) cpus: Option<String>,
}

pub(crate) fn place_of(root: &Path, pci_address: &str) -> Place {
    let device = root.join("sys/bus/pci/devices").join(pci_address);
    let text = |name: &str| fs::read_to_string(device.join(name)).ok().map(|text| text.trim().to_owned());
    // −1 where the firmware does not tell.
    let numa_node = text("numa_node").and_then(|node| node.parse().ok());
    Place { numa_node, cpus: text("local_cpulist").filter(|cpus| !cpus.is_empty()) }
}

/// Keeps this thread on these CPUs; memory it touches first then lies near them too. Whether it could, and
/// whether it was free to: who has bound us elsewhere (numactl, taskset) wants it so.
pub(crate) fn pin_to(cpus: &str) -> bool {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").map(|text| listed(&text).len());
    let is_bound =
        sched_getaffinity(None).is_ok_and(|set| online.is_ok_and(|online| (set.count() as usize) < online));
    if is_bound {
        return false;
    }
    let mut set = CpuSet::new();
    for cpu in listed(cpus).into_iter().filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    set.count() > 0 && sched_setaffinity(None, &set).is_ok()
}

fn listed(cpus: &str) -> Vec<usize> {
    let ranges = cpus.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(listed("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(listed("7"), [7]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn this_machine_has_a_name_and_memory() {
        assert!(kernel().starts_with("Linux "));
        assert!(free_memory() > 1 << 20);
        assert!(!cpu_name().is_empty());
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
