//! Which ranks share a way to the host? Four GPUs below one switch, and GPUs with ways of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use busbound_diagnosis::{Options, Source, diagnose};
use busbound_fleet::{Fleet, FleetAnswer, RankName, RankSummary};
use busbound_machine::Machine;
use busbound_machine::topology::{GpuPlace, from_sysfs, gpu_places};
use busbound_trace::{Direction, ReadOptions, read};
use common::MadeRank;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/topology").join(name)
}

/// Four GPUs and a NIC below a switch with an uplink of PCIe 4 x16, as `busbound topo --format json` writes it.
fn one_switch() -> Vec<GpuPlace> {
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

/// Each copies 1 GB in 50 ms of a 100 ms step: 20 GB/s while it does, 10 on average.
fn copying(rank: u32) -> MadeRank {
    MadeRank { copy_ms: 50, ..MadeRank::usual(rank, 4) }
}

#[test]
fn neighbors_below_a_switch_share_its_uplink() {
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
        "Ranks 0, 1, 2 and 3 share one way to the host (0000:41:00.0, 31.5 GB/s each way). Their copies to the GPUs run at 80.0 GB/s added up: more than it carries if they come at once, which gives each 7.9 GB/s; on average they ask 40.00 GB/s of it."
    );
    assert!(
        answer.statement.contains("4 ranks share a way to the host that is too narrow for all at once"),
        "{}",
        answer.statement
    );
}

#[test]
fn a_way_that_is_wide_enough_is_not_called_narrow() {
    let slow = (0..2).map(|rank| MadeRank { copy_bytes: 100_000_000, gpus: 4, ..MadeRank::usual(rank, 2) });
    let answer = answer(slow, &one_switch());
    assert!(!answer.uplinks[0].is_tight());
    assert_eq!(
        answer.uplinks[0].statement,
        "Ranks 0 and 1 share one way to the host (0000:41:00.0, 31.5 GB/s each way). Their copies to the GPUs run at 10.0 GB/s added up: which it carries also at once; on average they ask 2.00 GB/s of it."
    );
    assert!(!answer.statement.contains("narrow"));
}

/// NCCL's file says which rank has which GPU; there each has a switch of its own.
#[test]
fn ranks_in_nccls_file_count_before_device_numbers() {
    let places = gpu_places(&fs::read_to_string(fixture("nccl-eight-gpus.xml")).unwrap()).unwrap();
    assert_eq!(
        places.iter().map(|place| place.rank).collect::<Vec<_>>(),
        (0..8).map(Some).collect::<Vec<_>>()
    );
    // Every process sees its own GPU alone, as device 0.
    let hidden = (0..8).map(|rank| MadeRank { device: 0, gpus: 1, ..MadeRank::usual(rank, 8) });
    let answer = answer(hidden, &places);
    assert!(answer.limitations.iter().all(|text| !text.contains("Which GPU")), "{:?}", answer.limitations);
    for uplink in &answer.uplinks {
        assert!(uplink.ranks.len() > 1, "{uplink:?}");
    }
}

#[test]
fn where_the_gpu_is_not_told_that_is_said() {
    let unknown = |ranks: Vec<MadeRank>| {
        let answer = answer(ranks, &one_switch());
        assert!(answer.uplinks.is_empty());
        answer.limitations.into_iter().find(|text| text.starts_with("Which GPU")).unwrap()
    };
    let hidden = (0..4).map(|rank| MadeRank { device: 0, gpus: 1, ..copying(rank) }).collect();
    assert_eq!(
        unknown(hidden),
        "Which GPU each rank has is not known, so that shared ways cannot be told: rank 0 saw 1 of the topology's 4 GPUs, so that its device 0 may be any of them. NCCL's topology file (NCCL_TOPO_DUMP_FILE) names the ranks."
    );
    let two_hosts = (0..8).map(|rank| MadeRank { device: rank % 4, gpus: 4, ..copying(rank) }).collect();
    assert!(unknown(two_hosts).contains("two ranks have device 0; they may be of different machines"));
}

#[test]
fn a_saved_topology_is_told_by_its_content() {
    let why = |text: &str| gpu_places(text).unwrap_err().to_string();
    assert!(
        why(r#"{"schema": "busbound.rank/2", "gpus": []}"#).contains("its schema is not busbound.topology/1")
    );
    assert!(why("\tGPU0\tGPU1\n").contains("neither JSON nor XML"));
    assert!(why("<html></html>").contains("has no <system>"));
}
