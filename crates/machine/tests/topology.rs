//! Does the reader report known topologies correctly, with all of their problems and no false ones?

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use busbound_machine::topology::{
    Connection, DeviceFacts, DeviceKind, DriverGpu, Iommu, Topology, from_nccl, from_smi, from_sysfs,
    saved_topology,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/topology").join(name)
}

/// Writes a tree as files, as the kernel does, and reads it.
fn machine(name: &str) -> (tempfile::TempDir, Topology) {
    let root = tempfile::tempdir().unwrap();
    common::tree::plant(&fs::read_to_string(fixture(&format!("{name}.tree"))).unwrap(), root.path());
    let topology = from_sysfs(root.path()).topology();
    (root, topology)
}

fn between(topology: &Topology, a: &str, b: &str) -> Connection {
    let is = |x: &str, y: &str| x == a && y == b || x == b && y == a;
    topology.pairs.iter().find(|pair| is(&pair.a, &pair.b)).unwrap().connection
}

fn warnings(topology: &Topology) -> Vec<&str> {
    topology.remarks.iter().filter(|remark| remark.is_warning).map(|remark| remark.id).collect()
}

fn notes(topology: &Topology) -> Vec<&str> {
    topology.remarks.iter().filter(|remark| !remark.is_warning).map(|remark| remark.id).collect()
}

#[test]
fn eight_gpus_with_nvswitch() {
    let (_root, topology) = machine("nvswitch8");
    assert_eq!(topology.gpus.len(), 8);
    assert_eq!(topology.devices.iter().filter(|d| d.kind == DeviceKind::NvSwitch).count(), 4);
    let gpu = &topology.gpus[0];
    assert_eq!(gpu.address, "0000:18:00.0");
    // From the GPU to the switch, and from the switch to the root port.
    assert_eq!(gpu.path.len(), 2);
    assert!((gpu.host_gbps.unwrap() - 63.0).abs() < 0.1);
    assert_eq!(gpu.numactl.as_deref(), Some("numactl --cpunodebind=0 --membind=0"));
    assert_eq!(topology.gpus[7].numactl.as_deref(), Some("numactl --cpunodebind=1 --membind=1"));
    // Its own NIC and the NVMe drive are on its switch; those of the other GPUs are not.
    assert_eq!(gpu.beside, ["NIC 0000:19:00.0", "NVMe 0000:1a:00.0"]);
    assert_eq!(between(&topology, "0000:18:00.0", "0000:19:00.0"), Connection::Pix);
    // Without the driver's library NVLinks are unknown; the tree alone shows nodes and sockets.
    assert_eq!(between(&topology, "0000:18:00.0", "0000:3a:00.0"), Connection::Node);
    assert_eq!(between(&topology, "0000:18:00.0", "0000:9a:00.0"), Connection::Sys);
    assert_eq!(warnings(&topology), ["nvlinks_not_read"]);
    assert_eq!(
        (topology.iommu, topology.is_virtual, topology.pinned_limit),
        (Iommu::PassThrough, false, None)
    );
}

#[test]
fn the_driver_adds_nvlinks_and_names() {
    let (root, _) = machine("nvswitch8");
    let (a, b) = ("0000:18:00.0".to_owned(), "0000:3a:00.0".to_owned());
    let facts = DeviceFacts {
        capability: Some((9, 0)),
        memory_bytes: Some(85_520_809_984),
        multiprocessors: Some(132),
    };
    let gpu = DriverGpu { address: a.clone(), name: Some("NVIDIA H100 80GB HBM3".to_owned()), facts };
    let topology =
        from_sysfs(root.path()).with_driver(vec![(a.clone(), b.clone(), 18)], Vec::new(), &[gpu]).topology();
    assert_eq!(between(&topology, &a, &b), Connection::NvLink(18));
    assert_eq!(topology.gpus[0].name.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    assert_eq!((topology.gpus[0].nvlinks, topology.gpus[0].facts), (18, facts));
    assert_eq!(topology.gpus[1].facts, DeviceFacts::default());
}

/// Whatever is read can be saved and read again: the same devices, paths, pairs and remarks.
#[test]
fn every_topology_is_the_same_after_it_was_saved() {
    let trees =
        ["nvswitch8", "one_switch4", "one_switch4_acs", "pcie4_two_sockets", "virtual_machine", "x16_at_x8"];
    let mut all: Vec<Topology> = trees.iter().map(|name| machine(name).1).collect();
    let text = |name: &str| fs::read_to_string(fixture(name)).unwrap();
    all.push(from_nccl(&text("nccl-eight-gpus.xml")).unwrap().topology());
    for topology in all {
        let written = serde_json::to_string(&topology).unwrap();
        assert_eq!(saved_topology(&written).unwrap(), topology);
    }
}

/// The NVLinks are there, but the driver refuses peer access: in a virtual machine, and on bare metal.
#[test]
fn refused_nvlinks_are_a_warning() {
    let text = fs::read_to_string(fixture("nvlink-refused.json")).unwrap();
    let topology = saved_topology(&text).unwrap();
    assert_eq!(warnings(&topology), ["nvlink_refused"]);
    let remark = topology.remarks.iter().find(|remark| remark.id == "nvlink_refused").unwrap();
    assert!(remark.text.contains("topology not supported"), "{}", remark.text);
    assert!(remark.remedy.as_ref().unwrap().starts_with("Ask the provider"), "{:?}", remark.remedy);
    let metal = saved_topology(&text.replace("\"is_virtual\": true", "\"is_virtual\": false")).unwrap();
    let remark = metal.remarks.iter().find(|remark| remark.id == "nvlink_refused").unwrap();
    assert!(remark.remedy.as_ref().unwrap().contains("nvidia-fabricmanager"), "{:?}", remark.remedy);
    // Nobody knows is not a refusal; granted is none either.
    for status in ["ok", "unknown"] {
        let text = text.replace("topology not supported", status).replace("not supported", status);
        assert!(warnings(&saved_topology(&text).unwrap()).is_empty(), "{status}");
    }
}

/// Boards that are sold with NVSwitches, and not one active NVLink.
#[test]
fn inactive_nvlinks_are_a_warning() {
    let text = fs::read_to_string(fixture("nvlink-refused.json")).unwrap();
    let without = text.replace("\"NV\": 18", "\"NV\": 0");
    assert_ne!(text, without);
    let without = without.replace("{\n    \"NV\": 0\n   }", "\"PHB\"");
    let topology = saved_topology(&without).unwrap();
    assert_eq!(warnings(&topology), ["nvlink_inactive"]);
    // A board without NVLink cannot have inactive ones.
    let pcie = saved_topology(&without.replace("H100 80GB HBM3", "H100 PCIe")).unwrap();
    assert!(warnings(&pcie).is_empty(), "{:?}", warnings(&pcie));
}

#[test]
fn four_gpus_on_two_sockets() {
    let (_root, topology) = machine("pcie4_two_sockets");
    let gpus: Vec<&str> = topology.gpus.iter().map(|gpu| gpu.address.as_str()).collect();
    assert_eq!(gpus, ["0000:17:00.0", "0000:4b:00.0", "0000:99:00.0", "0000:ca:00.0"]);
    assert_eq!(between(&topology, gpus[0], gpus[1]), Connection::Node);
    assert_eq!(between(&topology, gpus[0], gpus[2]), Connection::Sys);
    // Idle links at generation 1 are normal and count at full speed.
    let idle = topology.remarks.iter().find(|remark| remark.id == "idle_link").unwrap();
    assert!(!idle.is_warning && idle.text.contains("and 3 more"), "{}", idle.text);
    assert!((topology.gpus[0].host_gbps.unwrap() - 31.5).abs() < 0.1);
    assert_eq!(warnings(&topology), ["iommu"]);
    assert_eq!(topology.gpus[0].name.as_deref(), Some("NVIDIA A100 80GB PCIe"));
}

#[test]
fn four_gpus_below_one_switch() {
    let (_root, topology) = machine("one_switch4");
    for (i, a) in topology.gpus.iter().enumerate() {
        assert_eq!(a.sharing, 4);
        assert_eq!(a.beside, ["NIC 0000:47:00.0"]);
        for b in &topology.gpus[i + 1..] {
            assert_eq!(between(&topology, &a.address, &b.address), Connection::Pix);
        }
    }
    assert!(notes(&topology).contains(&"shared_uplink"));
    assert!(notes(&topology).contains(&"no_driver"));
    assert_eq!(warnings(&topology), [] as [&str; 0]);
}

#[test]
fn an_x16_card_that_trained_to_x8_gets_a_warning() {
    let (_root, topology) = machine("x16_at_x8");
    assert_eq!(warnings(&topology), ["narrow_link"]);
    let warning = &topology.remarks.iter().find(|remark| remark.id == "narrow_link").unwrap().text;
    assert!(warning.contains("0000:01:00.0 has 8 of 16 lanes: 15.8 GB/s"), "{warning}");
    assert!((topology.gpus[0].host_gbps.unwrap() - 15.75).abs() < 0.01);
    // The narrowest hop is the card's own link, not the wider root port.
    assert_eq!(topology.gpus[0].path[topology.gpus[0].narrowest.unwrap()].address, "0000:01:00.0");
}

#[test]
fn a_virtual_machine_gets_no_advice_about_the_host() {
    let (_root, topology) = machine("virtual_machine");
    assert!(topology.is_virtual);
    assert_eq!(topology.gpus.len(), 1);
    assert_eq!((topology.gpus[0].numa, topology.gpus[0].numactl.as_ref()), (None, None));
    assert_eq!(warnings(&topology), [] as [&str; 0]);
    let text = serde_json::to_string(&topology).unwrap();
    assert!(!text.contains("ACS)"), "{text}");
}

/// A container's usual limit of 64 KiB, beside none.
#[test]
fn a_small_limit_on_locked_memory_is_noted_with_its_size() {
    let (root, _) = machine("one_switch4");
    let note = |limit: &str| {
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let line = format!("Max locked memory         {limit}                {limit}                bytes\n");
        fs::write(root.path().join("proc/self/limits"), line).unwrap();
        let topology = from_sysfs(root.path()).topology();
        topology.remarks.iter().find(|remark| remark.id == "locked_memory").map(|remark| remark.text.clone())
    };
    assert!(note("65536").unwrap().starts_with("ulimit -l is 64 kB."));
    assert_eq!(note("unlimited"), None);
}

#[test]
fn access_control_is_a_warning_only_on_bare_metal() {
    let mut config = vec![0u8; 4096];
    config[0x100..0x104].copy_from_slice(&[0x0d, 0x00, 0x01, 0x00]);
    config[0x106] = 0b0001_1101;
    let enable_acs = |root: &Path| {
        fs::write(root.join("sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:00.0/config"), &config)
            .unwrap();
    };
    let (root, _) = machine("one_switch4");
    enable_acs(root.path());
    let topology = from_sysfs(root.path()).topology();
    assert_eq!(warnings(&topology), ["acs"]);
    fs::create_dir_all(root.path().join("proc")).unwrap();
    fs::write(root.path().join("proc/cpuinfo"), "flags\t\t: fpu hypervisor\n").unwrap();
    assert_eq!(warnings(&from_sysfs(root.path()).topology()), [] as [&str; 0]);
}

/// A whole machine with its PCI configuration: two of four GPUs are behind ports that redirect, and NCCL's P2P is doubtful.
#[test]
fn access_control_is_read_from_a_whole_machine() {
    let (root, topology) = machine("one_switch4_acs");
    assert_eq!(warnings(&topology), ["acs"]);
    let remark = topology.remarks.iter().find(|remark| remark.id == "acs").unwrap();
    assert!(remark.text.contains("on 2 bridges"), "{}", remark.text);
    assert!(remark.text.ends_with(": 0000:42:00.0, 0000:42:02.0."), "{}", remark.text);
    let nccl = topology.remarks.iter().find(|remark| remark.id == "nccl_paths").unwrap();
    assert!(nccl.remedy.as_ref().unwrap().contains("NCCL_P2P_DISABLE=1"), "{:?}", nccl.remedy);
    // Without being root, only the first 64 bytes are readable: unknown is not "off".
    for device in topology.devices.iter().filter(|device| device.acs.is_some()) {
        let path = root.path().join("sys/devices/pci0000:40/0000:40:01.1");
        let path = walkdir(&path).into_iter().find(|path| path.ends_with(&device.address));
        let path = path.unwrap_or_else(|| root.path().join("sys/devices/pci0000:40/0000:40:01.1"));
        fs::write(path.join("config"), [0; 64]).unwrap();
    }
    let topology = from_sysfs(root.path()).topology();
    assert_eq!(warnings(&topology), [] as [&str; 0]);
    assert!(notes(&topology).contains(&"acs_unread"), "{:?}", notes(&topology));
}

/// The folders below one, and itself.
fn walkdir(folder: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut all: Vec<PathBuf> = below.flat_map(|path| walkdir(&path)).collect();
    all.push(folder.to_owned());
    all
}

/// What NCCL does without NVLink, and the variable worth a test, follow from the tree.
#[test]
fn nccls_defaults_follow_from_the_tree() {
    let nccl = |topology: &Topology| {
        let remark = topology.remarks.iter().find(|remark| remark.id == "nccl_paths")?;
        Some((remark.text.clone(), remark.remedy.clone().unwrap()))
    };
    let (text, remedy) = nccl(&machine("one_switch4").1).unwrap();
    assert!(text.contains("peer-to-peer copies over PCIe (P2P) for all 6 pairs of GPUs."), "{text}");
    assert!(!remedy.contains("NCCL_P2P_LEVEL") && remedy.contains("Leave NCCL_P2P_DISABLE"), "{remedy}");
    let (_root, mut topology) = machine("pcie4_two_sockets");
    let (text, remedy) = nccl(&topology).unwrap();
    assert!(text.contains("host memory (SHM) for all 6 pairs of GPUs"), "{text}");
    assert!(remedy.contains("NCCL_P2P_LEVEL=PHB"), "{remedy}");
    // Two GPUs: the default depends on the maker of the processors.
    topology.gpus.truncate(2);
    topology.devices.retain(|device| {
        device.kind != DeviceKind::Gpu || topology.gpus.iter().any(|gpu| gpu.address == device.address)
    });
    assert!(topology.devices.iter().filter(|device| device.kind == DeviceKind::Gpu).count() == 2);
    let mut of = |processor: Option<&str>| {
        topology.processor = processor.map(str::to_owned);
        nccl(&saved_topology(&serde_json::to_string(&topology).unwrap()).unwrap()).unwrap()
    };
    assert!(of(Some("AuthenticAMD")).0.contains("(P2P) for the one pair of GPUs."));
    assert!(of(Some("GenuineIntel")).0.contains("(SHM) for the one pair of GPUs, which"));
    assert!(of(None).0.contains("with AMD processors it uses P2P"));
    // The driver refuses peer access: no setting helps.
    let text = serde_json::to_string(&topology).unwrap();
    let refused = text.replace(
        "\"peer_access\":[]",
        "\"peer_access\":[{\"kind\":\"read\",\"status\":\"chipset not supported\"}]",
    );
    assert_ne!(text, refused);
    let (text, remedy) = nccl(&saved_topology(&refused).unwrap()).unwrap();
    assert!(text.contains("whose peer access the driver refuses"), "{text}");
    assert!(!remedy.contains("NCCL_P2P_LEVEL"), "{remedy}");
    // With NVLinks, or with NVLinks that could not be read, there is nothing to say.
    assert_eq!(nccl(&machine("nvswitch8").1), None);
    let eight = fs::read_to_string(fixture("nccl-eight-gpus.xml")).unwrap();
    assert_eq!(nccl(&from_nccl(&eight).unwrap().topology()), None);
}

#[test]
fn nccls_file_and_nvidia_smi_agree_on_the_same_machine() {
    let nccl = from_nccl(&fs::read_to_string(fixture("nccl-eight-gpus.xml")).unwrap()).unwrap().topology();
    let smi =
        from_smi(&fs::read_to_string(fixture("nvidia-smi-eight-gpus.txt")).unwrap()).unwrap().topology();
    for topology in [&nccl, &smi] {
        assert_eq!(topology.gpus.len(), 8);
        let between_gpus = topology.pairs.iter().filter(|pair| {
            let is_gpu = |end: &str| topology.gpus.iter().any(|gpu| gpu.address == end);
            is_gpu(&pair.a) && is_gpu(&pair.b)
        });
        assert!(between_gpus.clone().all(|pair| pair.connection == Connection::NvLink(18)));
        assert_eq!(between_gpus.count(), 28);
        assert_eq!(topology.numa_nodes, Some(2));
        assert_eq!(topology.gpus[5].numactl.as_deref(), Some("numactl --cpunodebind=1 --membind=1"));
    }
    // 18 NVLinks of 25 GB/s, and four GPUs on each side. nvidia-smi's table does not say which GPUs they are.
    assert!(nccl.gpus.iter().all(|gpu| gpu.nvlink_gbps == Some(450.0)));
    assert_eq!((nccl.bisection_gbps, smi.bisection_gbps), (Some(1800.0), None));
    assert_eq!(between(&smi, "GPU3", "NIC3"), Connection::Pix);
    assert_eq!(between(&smi, "GPU3", "NIC4"), Connection::Sys);
    assert_eq!(smi.gpus[0].cpus.as_deref(), Some("0-55,112-167"));
    assert_eq!(nccl.gpus[2].beside, ["NIC 0000:39:00.0"]);
}

#[test]
fn real_files_of_one_gpu_are_read() {
    let smi = from_smi(&fs::read_to_string(fixture("nvidia-smi-one-gpu.txt")).unwrap()).unwrap().topology();
    assert_eq!((smi.gpus.len(), smi.gpus[0].cpus.as_deref()), (1, Some("0-15")));
    let nccl = from_nccl(&fs::read_to_string(fixture("nccl-one-gpu.xml")).unwrap()).unwrap().topology();
    assert_eq!((nccl.gpus.len(), nccl.gpus[0].address.as_str()), (1, "0000:00:06.0"));
    // It was dumped on a machine that does not report the link width.
    assert_eq!(nccl.gpus[0].host_gbps, None);
}

#[test]
fn unrelated_input_is_rejected() {
    assert!(from_nccl("<html></html>").is_err());
    assert!(from_nccl("not xml <").is_err());
    assert!(from_smi("command not found").is_none());
    let empty = tempfile::tempdir().unwrap();
    assert!(from_sysfs(empty.path()).topology().gpus.is_empty());
}

/// Azure attaches its GPUs below another bus: only the bus listing includes them.
#[cfg(unix)]
#[test]
fn devices_below_another_bus_are_found() {
    let root = tempfile::tempdir().unwrap();
    let real = root.path().join("sys/devices/LNXSYSTM:00/VMBUS:01/guid/pci0001:00/0001:00:00.0");
    fs::create_dir_all(&real).unwrap();
    for (file, content) in [("class", "0x030200"), ("vendor", "0x10de"), ("numa_node", "1")] {
        fs::write(real.join(file), content).unwrap();
    }
    let bus = root.path().join("sys/bus/pci/devices");
    fs::create_dir_all(&bus).unwrap();
    std::os::unix::fs::symlink(&real, bus.join("0001:00:00.0")).unwrap();
    let topology = from_sysfs(root.path()).topology();
    assert_eq!(topology.gpus.len(), 1);
    assert_eq!(topology.devices[0].host_bridge, "pci0001:00");
}

#[test]
fn a_bridge_without_a_class_does_not_hide_the_devices_below_it() {
    let (root, _) = machine("x16_at_x8");
    fs::remove_file(root.path().join("sys/devices/pci0000:00/0000:00:01.0/class")).unwrap();
    assert_eq!(from_sysfs(root.path()).topology().gpus.len(), 1);
}

#[test]
fn the_iommu_of_other_devices_does_not_matter() {
    let (root, _) = machine("pcie4_two_sockets");
    let groups = root.path().join("sys/kernel/iommu_groups");
    for (group, kind, member) in [("0", "DMA-FQ", "0000:00:17.0"), ("1", "identity", "0000:17:00.0")] {
        fs::create_dir_all(groups.join(group).join("devices").join(member)).unwrap();
        fs::write(groups.join(group).join("type"), kind).unwrap();
    }
    let topology = from_sysfs(root.path()).topology();
    assert_eq!((topology.iommu, warnings(&topology)), (Iommu::PassThrough, vec![]));
}

#[test]
fn a_virtual_machine_with_few_lanes_gets_a_warning_without_a_remedy() {
    let (root, _) = machine("x16_at_x8");
    fs::create_dir_all(root.path().join("proc")).unwrap();
    fs::write(root.path().join("proc/cpuinfo"), "flags\t\t: fpu hypervisor\n").unwrap();
    let topology = from_sysfs(root.path()).topology();
    let narrow = topology.remarks.iter().find(|remark| remark.id == "narrow_link").unwrap();
    assert_eq!(narrow.remedy, None);
}

#[test]
fn two_switches_between_gpus_are_distinguished_from_one() {
    let pci = |busid: &str, class: &str, inner: &str| {
        format!(
            "<pci busid=\"{busid}\" class=\"{class}\" vendor=\"0x10de\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">{inner}</pci>"
        )
    };
    let gpu = |busid: &str| {
        pci(busid, "0x030200", "<gpu dev=\"0\"><nvlink target=\"0000:09:00.0\" count=\"4\"/></gpu>")
    };
    let inner = |busid: &str, gpus: &str| pci(busid, "0x060400", gpus);
    let below = inner("0000:02:00.0", &(gpu("0000:03:00.0") + &gpu("0000:04:00.0")))
        + &inner("0000:05:00.0", &gpu("0000:06:00.0"));
    let text =
        format!("<system version=\"1\"><cpu numaid=\"0\">{}</cpu></system>", inner("0000:01:00.0", &below));
    let topology = from_nccl(&text).unwrap().topology();
    assert_eq!(between(&topology, "0000:03:00.0", "0000:04:00.0"), Connection::Pix);
    assert_eq!(between(&topology, "0000:03:00.0", "0000:06:00.0"), Connection::Pxb);
}

#[test]
fn pairs_that_nvidia_smi_did_not_print_stay_unknown() {
    let text = "\tGPU0\tGPU1\tibp1s0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t??\tPIX\t0-31\t0-1\nGPU1\t??\t X \tSYS\t0-31\t0\nibp1s0\tPIX\tSYS\t X \n";
    let topology = from_smi(text).unwrap().topology();
    let known: Vec<(&str, &str)> =
        topology.pairs.iter().map(|pair| (pair.a.as_str(), pair.b.as_str())).collect();
    assert_eq!(known, [("GPU0", "ibp1s0"), ("GPU1", "ibp1s0")]);
    // An affinity to two nodes leaves the node unknown.
    assert_eq!((topology.gpus[0].numa, topology.gpus[1].numa), (None, Some(0)));
}
