//! Which ranks share a PCIe uplink? Four GPUs below one switch, and GPUs with separate uplinks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::MadeRank;
use busbound_diagnosis::{Options, Source, diagnose};
use busbound_fleet::{Fleet, FleetAnswer, RankName, RankSummary};
use busbound_machine::Machine;
use busbound_machine::topology::{GpuPlace, from_sysfs, gpu_places};
use busbound_trace::{Direction, ReadOptions, read};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/topology").join(name)
}

/// Four GPUs and a NIC below a switch with a PCIe 4 x16 uplink, as `busbound topo --format json` writes it.
pub(crate) fn one_switch() -> Vec<GpuPlace> {
    let root = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(fixture("one_switch4.tree")).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (path, content) = line.split_once(' ').unwrap();
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    let written = serde_json::to_string(&from_sysfs(root.path()).topology()).unwrap();
    gpu_places(&written).unwrap()
}

fn answer(ranks: impl IntoIterator<Item = MadeRank>, places: &[GpuPlace]) -> FleetAnswer {
    let summary = |rank: MadeRank| {
        let (text, path) = (rank.trace(), format!("rank-{}.json", rank.rank));
        let trace = read(text.as_bytes(), Path::new(&path), &ReadOptions::default()).unwrap();
        RankSummary::of(&diagnose(&trace, &Source::named(path), &Machine::default(), &Options::default()))
    };
    Fleet::of(ranks.into_iter().map(summary)).answer(Some(places))
}

/// Each rank copies 1 GB in 50 ms of a 100 ms step: 20 GB/s while copying, 10 GB/s on average.
fn copying(rank: u32) -> MadeRank {
    MadeRank { copy_ms: 50, ..MadeRank::usual(rank, 4) }
}

#[test]
fn gpus_below_a_switch_share_its_uplink() {
    let answer = answer((0..4).map(copying), &one_switch());
    assert_eq!(answer.uplinks.len(), 1, "{:?}", answer.uplinks);
    let uplink = &answer.uplinks[0];
    assert_eq!(uplink.ranks, [0, 1, 2, 3].map(RankName::Number));
    assert_eq!(uplink.address, "0000:41:00.0");
    assert!(uplink.is_tight());
    assert_eq!(uplink.demands.len(), 1);
    let demand = &uplink.demands[0];
    assert_eq!(
        (demand.direction, demand.at_once_gbps, demand.mean_gbps),
        (Direction::HostToDevice, 80.0, 40.0)
    );
    assert_eq!(
        uplink.statement,
        "Ranks 0, 1, 2 and 3 share a PCIe uplink (0000:41:00.0, 31.5 GB/s per direction). Their H2D copies total 80.0 GB/s: more than the uplink carries if all copy at the same time, which leaves 7.9 GB/s for each; the average demand is 40.00 GB/s."
    );
    assert!(
        answer
            .statement
            .contains("4 ranks share a PCIe uplink that is too slow if all copy at the same time"),
        "{}",
        answer.statement
    );
}

#[test]
fn an_uplink_that_is_fast_enough_is_not_reported_as_slow() {
    let slow = (0..2).map(|rank| MadeRank { copy_bytes: 100_000_000, gpus: 4, ..MadeRank::usual(rank, 2) });
    let answer = answer(slow, &one_switch());
    assert!(!answer.uplinks[0].is_tight());
    assert_eq!(
        answer.uplinks[0].statement,
        "Ranks 0 and 1 share a PCIe uplink (0000:41:00.0, 31.5 GB/s per direction). Their H2D copies total 10.0 GB/s: within the limit even if all copy at the same time; the average demand is 2.00 GB/s."
    );
    assert!(!answer.statement.contains("uplink"));
}

/// NCCL's file maps ranks to GPUs; in this one, each GPU has its own switch.
#[test]
fn ranks_in_nccls_file_take_precedence_over_device_numbers() {
    let places = gpu_places(&fs::read_to_string(fixture("nccl-eight-gpus.xml")).unwrap()).unwrap();
    assert_eq!(
        places.iter().map(|place| place.rank).collect::<Vec<_>>(),
        (0..8).map(Some).collect::<Vec<_>>()
    );
    // Every process sees only its own GPU, as device 0.
    let hidden = (0..8).map(|rank| MadeRank { device: 0, gpus: 1, ..MadeRank::usual(rank, 8) });
    let answer = answer(hidden, &places);
    assert!(
        answer.limitations.iter().all(|text| !text.contains("uplinks are unknown")),
        "{:?}",
        answer.limitations
    );
    for uplink in &answer.uplinks {
        assert!(uplink.ranks.len() > 1, "{uplink:?}");
    }
}

#[test]
fn unknown_gpus_are_reported() {
    let unknown = |ranks: Vec<MadeRank>| {
        let answer = answer(ranks, &one_switch());
        assert!(answer.uplinks.is_empty());
        answer.limitations.into_iter().find(|text| text.starts_with("Shared PCIe uplinks")).unwrap()
    };
    let hidden = (0..4).map(|rank| MadeRank { device: 0, gpus: 1, ..copying(rank) }).collect();
    assert_eq!(
        unknown(hidden),
        "Shared PCIe uplinks are unknown because the GPU of each rank is unknown: rank 0 saw 1 of the 4 GPUs in the topology, so its device 0 may be any of them. NCCL's topology file (NCCL_TOPO_DUMP_FILE) lists the ranks."
    );
    let two_hosts = (0..8).map(|rank| MadeRank { device: rank % 4, gpus: 4, ..copying(rank) }).collect();
    assert!(unknown(two_hosts).contains("two ranks use device 0; they may be on different machines"));
}

#[test]
fn a_saved_topology_is_recognized_by_its_content() {
    let why = |text: &str| gpu_places(text).unwrap_err().to_string();
    assert!(
        why(r#"{"schema": "busbound.rank/2", "gpus": []}"#).contains("its schema is not busbound.topology/1")
    );
    assert!(why("\tGPU0\tGPU1\n").contains("neither JSON nor XML"));
    assert!(why("<html></html>").contains("has no <system>"));
}
