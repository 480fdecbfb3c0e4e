use super::super::{PeerAccess, from_nccl, saved_topology};
use super::*;

/// Four GPUs below two switches of one socket, each switch with its own uplink; PCIe 4.
fn two_switches(extra: &str) -> Topology {
    let gpu = |bus: u32, dev: u32| {
        format!(
            r#"<pci busid="0000:{bus:02x}:00.0" class="0x030200" vendor="0x10de" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="{dev}" sm="80" rank="{dev}">{extra}</gpu></pci>"#
        )
    };
    let switch = |bus: u32, gpus: [String; 2]| {
        format!(
            r#"<pci busid="0000:{bus:02x}:00.0" class="0x060400" vendor="0x1000" link_speed="16.0 GT/s PCIe" link_width="16">{}</pci>"#,
            gpus.concat()
        )
    };
    let switches = [switch(0x10, [gpu(0x11, 0), gpu(0x12, 1)]), switch(0x20, [gpu(0x21, 2), gpu(0x22, 3)])];
    let text = format!(r#"<system version="1"><cpu numaid="0">{}</cpu></system>"#, switches.concat());
    from_nccl(&text).unwrap().topology()
}

fn route(plan: &TrafficPlan, from: u32, to: u32) -> &PeerRoute {
    plan.routes.iter().find(|route| (route.from, route.to) == (from, to)).unwrap()
}

fn near(value: f64, wanted: f64) {
    assert!((value / wanted - 1.0).abs() < 0.005, "{value} is not {wanted}");
}

/// PCIe 4 x16: 31.5 GB/s, 27.7 for copies, 24.0 planned by NCCL.
const COPIES: f64 = 31.508 * 0.88;
const PLANNED: f64 = 31.508 * 48.0 / 63.0;

#[test]
fn gpus_below_one_switch_share_its_uplink_for_host_copies() {
    let plan = TrafficPlan::of(&two_switches("")).unwrap();
    let gpu = &plan.gpus[0];
    assert_eq!((gpu.shares_uplink_with.as_slice(), gpu.nvlink_gbps), ([1].as_slice(), 0.0));
    near(gpu.alone_gbps, COPIES);
    near(gpu.h2d_all_gbps, COPIES / 2.0);
    near(gpu.d2h_all_gbps, COPIES / 2.0);
    // Both directions of the uplink together carry 1.78 times one.
    near(gpu.h2d_duplex_gbps, COPIES * (98.6 / 55.4) / 4.0);
}

/// Inbound peer traffic competes with H2D, outbound with D2H; below one switch the uplink is not used.
#[test]
fn each_route_shares_what_it_crosses() {
    let plan = TrafficPlan::of(&two_switches("")).unwrap();
    let below = route(&plan, 0, 1);
    assert_eq!((below.via, below.connection), (Via::PcieSwitch, Connection::Pix));
    near(below.alone_gbps, PLANNED);
    assert_eq!(below.shares_with_h2d, [SharedWire::LinkIn]);
    assert_eq!(below.shares_with_d2h, [SharedWire::LinkOut]);
    // Half of the uplink each leaves the other half of GPU1's own link.
    near(below.with_h2d_gbps, COPIES / 2.0);
    let across = route(&plan, 1, 2);
    assert_eq!((across.via, across.connection), (Via::HostBridge, Connection::Phb));
    assert_eq!(across.shares_with_h2d, [SharedWire::LinkIn, SharedWire::UplinkIn]);
    // Three flows share the uplink of GPU2 and GPU3.
    near(across.with_h2d_gbps, COPIES / 3.0);
}

#[test]
fn collectives_meet_host_copies_on_the_uplinks() {
    let plan = TrafficPlan::of(&two_switches("")).unwrap();
    assert_eq!(plan.ring, [0, 1, 2, 3]);
    near(plan.all_reduce_gbps.unwrap(), PLANNED);
    // Of each GPU's bytes two thirds go to the other switch: 4/3 of a GPU's bytes cross each uplink, in each direction.
    near(plan.all_to_all_gbps.unwrap(), COPIES * (98.6 / 55.4) * 3.0 / 8.0);
    let met =
        |first, second| plan.meetings.iter().find(|met| (met.first, met.second) == (first, second)).unwrap();
    let exchange = met(TrafficKind::H2d, TrafficKind::AllToAll);
    assert_eq!(exchange.shares, [SharedWire::LinkIn, SharedWire::UplinkIn]);
    near(exchange.first_alone_gbps, COPIES / 2.0);
    // Two copies and 4/3 of the exchange fill the uplink.
    near(exchange.first_together_gbps, COPIES * 3.0 / 10.0);
    assert!(exchange.second_slower_pct() > 100.0);
    let duplex = met(TrafficKind::H2d, TrafficKind::D2h);
    assert_eq!(duplex.shares, [SharedWire::Duplex]);
    assert!(duplex.first_slower_pct() > 10.0 && duplex.first_slower_pct() < 15.0);
    assert!(plan.worst_pct(TrafficKind::AllReduce, TrafficKind::H2d) > 50.0);
}

#[test]
fn nvlink_shares_nothing_with_host_copies() {
    let links = r#"<nvlink target="0000:07:00.0" count="12" tclass="0x068000"/>"#;
    let plan = TrafficPlan::of(&two_switches(links)).unwrap();
    assert!(plan.is_all_nvlink());
    near(route(&plan, 0, 3).alone_gbps, 240.0);
    near(plan.all_reduce_gbps.unwrap(), 240.0);
    near(plan.all_to_all_gbps.unwrap(), 240.0);
    let link = plan.interconnect().unwrap();
    assert_eq!((link.hop, link.fabric), (Hop::NvLink, Fabric::Switch));
    let (host, sharing) = plan.host_link();
    assert_eq!((host.name.as_str(), sharing), ("PCIe 4 x16", 2));
    near(host.peer_gbps().unwrap(), 240.0);
    for met in plan.meetings.iter().filter(|met| met.second != TrafficKind::D2h) {
        assert!(
            met.shares.is_empty() && met.first_slower_pct().max(met.second_slower_pct()) < 1e-6,
            "{met:?}"
        );
    }
    assert!(plan.worst_pct(TrafficKind::H2d, TrafficKind::D2h) > 10.0, "uplinks are still shared");
}

#[test]
fn refused_peer_access_goes_through_host_memory() {
    let mut topology = two_switches("");
    for pair in &mut topology.pairs {
        pair.peer_access =
            vec![PeerAccess { kind: "read".to_owned(), status: "chipset not supported".to_owned() }];
    }
    let plan = TrafficPlan::of(&topology).unwrap();
    let refused = route(&plan, 0, 1);
    assert_eq!(refused.via, Via::HostMemory);
    // Over the uplink twice: both directions of it.
    assert!(refused.shares_with_h2d.contains(&SharedWire::UplinkIn));
    assert!(!plan.assumptions.contains(&Assumption::PeerAccess));
    for pair in &mut topology.pairs {
        pair.peer_access = vec![PeerAccess { kind: "read".to_owned(), status: "unknown".to_owned() }];
    }
    assert_eq!(route(&TrafficPlan::of(&topology).unwrap(), 0, 1).via, Via::PcieSwitch);
}

#[test]
fn redirected_traffic_crosses_the_uplink() {
    let mut topology = two_switches("");
    topology.devices[0].acs = Some(true);
    let plan = TrafficPlan::of(&topology).unwrap();
    let redirected = route(&plan, 0, 1);
    assert_eq!(redirected.via, Via::Redirected);
    assert!(redirected.shares_with_h2d.contains(&SharedWire::UplinkIn), "{redirected:?}");
    assert_eq!(route(&plan, 2, 3).via, Via::PcieSwitch);
}

#[test]
fn what_the_tree_does_not_say_is_an_error_or_an_assumption() {
    let mut topology = two_switches("");
    topology.gpus[2].path.clear();
    assert_eq!(TrafficPlan::of(&topology), Err(NoTraffic::NoLinks(2)));
    topology.gpus.clear();
    assert_eq!(TrafficPlan::of(&topology), Err(NoTraffic::NoGpu));
    let mut topology = two_switches("");
    SYSFS.clone_into(&mut topology.source);
    let plan = TrafficPlan::of(&topology).unwrap();
    assert_eq!(plan.assumptions, [Assumption::NoNvlinks, Assumption::PeerAccess]);
    topology.devices[0].kind = DeviceKind::NvSwitch;
    assert_eq!(TrafficPlan::of(&topology), Err(NoTraffic::NvlinksNotRead));
    topology.gpus[0].name = Some("NVIDIA GH200 480GB".to_owned());
    assert_eq!(TrafficPlan::of(&topology), Err(NoTraffic::ChipToChip));
}

/// What is written is what is read: remarks, paths and pairs follow from it again.
#[test]
fn a_saved_topology_is_the_one_that_was_written() {
    let links = r#"<nvlink target="0000:07:00.0" count="12" tclass="0x068000"/>"#;
    for extra in ["", links] {
        let topology = two_switches(extra);
        assert_eq!(topology.gpus[0].facts.capability, Some((8, 0)));
        let written = serde_json::to_string(&topology).unwrap();
        assert_eq!(saved_topology(&written).unwrap(), topology);
    }
}
