//! Which NUMA nodes does the machine have, how far apart are they, and which are the process and its GPUs near? From
//! sysfs, without asking the GPU. Where only one node has CPUs, only that is recorded: there is no wrong node then.

use std::path::Path;

use crate::format::{CPU_NODES, DISTANCES_OF_NODE, NODES};

/// More nodes than any machine with GPUs has; a bound on what is read.
const MOST_NODES: usize = 64;

/// `0-3,8` as first and last of each range; `None` if it is not such a list.
pub(super) fn ranges(list: &str) -> Option<Vec<(u32, u32)>> {
    let range = |text: &str| -> Option<(u32, u32)> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some((first, last))
    };
    list.trim().split(',').map(range).collect()
}

/// The members of such a list.
fn members(list: &str) -> Vec<u32> {
    let all = ranges(list).unwrap_or_default();
    all.into_iter().flat_map(|(first, last)| first..=last).take(MOST_NODES).collect()
}

fn read(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

/// The nodes that have CPUs.
fn nodes_with_cpus(root: &Path) -> Vec<u32> {
    members(&read(root, "sys/devices/system/node/has_cpu").unwrap_or_default())
}

/// Whether more than one node has CPUs.
pub(super) fn has_several(root: &Path) -> bool {
    nodes_with_cpus(root).len() > 1
}

/// Keys and values of the facts about nodes. `allowed` lists the CPUs that the process may run on.
pub(super) fn facts(root: &Path, allowed: Option<&str>) -> Vec<(Vec<u8>, Vec<u8>)> {
    match nodes_with_cpus(root)[..] {
        [] => return Vec::new(),
        [only] => return vec![(NODES.to_vec(), listed(&[only]))],
        _ => {}
    }
    let nodes = members(&read(root, "sys/devices/system/node/online").unwrap_or_default());
    let mut facts = vec![(NODES.to_vec(), listed(&nodes))];
    for node in &nodes {
        if let Some(distances) = read(root, &format!("sys/devices/system/node/node{node}/distance")) {
            let key = [DISTANCES_OF_NODE, node.to_string().as_bytes()].concat();
            facts.push((key, distances.trim().as_bytes().to_vec()));
        }
    }
    if let Some(allowed) = allowed.and_then(ranges) {
        let is_near = |node: &u32| {
            let cpus = read(root, &format!("sys/devices/system/node/node{node}/cpulist"));
            let cpus = cpus.and_then(|list| ranges(&list)).unwrap_or_default();
            cpus.iter().any(|(first, last)| allowed.iter().any(|(from, to)| from <= last && first <= to))
        };
        let near: Vec<u32> = nodes.iter().copied().filter(is_near).collect();
        facts.push((CPU_NODES.to_vec(), listed(&near)));
    }
    facts
}

fn listed(nodes: &[u32]) -> Vec<u8> {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",").into_bytes()
}

/// The node that a GPU is attached to, by its PCI address as NVML writes it; `None` if the firmware does not say.
pub(super) fn node_of_gpu(root: &Path, address: &str) -> Option<u32> {
    let address = address.to_ascii_lowercase();
    let (domain, rest) = address.split_once(':')?;
    // NVML writes eight digits of the domain, the kernel at least four.
    let domain = u32::from_str_radix(domain, 16).ok()?;
    let node = read(root, &format!("sys/bus/pci/devices/{domain:04x}:{rest}/numa_node"))?;
    node.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const TWO_NODES: [(&str, &str); 8] = [
        ("sys/devices/system/node/has_cpu", "0-1\n"),
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/node0/distance", "10 21\n"),
        ("sys/devices/system/node/node1/distance", "21 10\n"),
        ("sys/devices/system/node/node0/cpulist", "0-31,64-95\n"),
        ("sys/devices/system/node/node1/cpulist", "32-63,96-127\n"),
        ("sys/bus/pci/devices/0000:b7:00.0/numa_node", "1\n"),
        ("sys/bus/pci/devices/0000:00:06.0/numa_node", "-1\n"),
    ];

    #[test]
    fn two_nodes_are_recorded_with_their_distances_and_those_of_the_process() {
        let root = machine(&TWO_NODES);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let facts = |allowed| {
            let facts = facts(root.path(), allowed).into_iter();
            facts.map(|(key, value)| (text(key), text(value))).collect::<Vec<_>>()
        };
        let expected = |cpus: &str| {
            [
                ("numa nodes", "0,1"),
                ("numa distances of 0", "10 21"),
                ("numa distances of 1", "21 10"),
                ("numa nodes of cpus", cpus),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        assert_eq!(facts(Some("40-47")), expected("1"));
        assert_eq!(facts(Some("0-127")), expected("0,1"));
        assert_eq!(facts(Some("64")), expected("0"));
        assert_eq!(facts(None), expected("")[..3]);
    }

    /// Memory without CPUs (of a GPU, or behind CXL) is a node too, but no process can run near it.
    #[test]
    fn one_node_with_cpus_is_no_choice() {
        let one = machine(&[
            ("sys/devices/system/node/has_cpu", "0\n"),
            ("sys/devices/system/node/online", "0-8\n"),
        ]);
        assert!(!has_several(one.path()));
        assert_eq!(facts(one.path(), Some("0-71")), [(b"numa nodes".to_vec(), b"0".to_vec())]);
        let unknown = machine(&[]);
        assert!(!has_several(unknown.path()) && facts(unknown.path(), None).is_empty());
        assert!(has_several(machine(&TWO_NODES).path()));
    }

    #[test]
    fn the_node_of_a_gpu_is_found_by_its_address() {
        let root = machine(&TWO_NODES);
        assert_eq!(node_of_gpu(root.path(), "00000000:B7:00.0"), Some(1));
        assert_eq!(node_of_gpu(root.path(), "0000:b7:00.0"), Some(1));
        assert_eq!(node_of_gpu(root.path(), "00000000:00:06.0"), None, "the firmware does not say");
        assert_eq!(node_of_gpu(root.path(), "00000000:01:00.0"), None);
        assert_eq!(node_of_gpu(root.path(), "nonsense"), None);
    }

    #[test]
    fn lists_are_read_in_the_kernels_format() {
        assert_eq!(ranges("0-3,8\n"), Some(vec![(0, 3), (8, 8)]));
        assert_eq!(members("0-1,3"), [0, 1, 3]);
        assert_eq!((ranges("3-1"), ranges("")), (None, None));
        assert_eq!(members("0-4000000000").len(), MOST_NODES);
    }
}
