//! Lines as NCCL 2.10 to 2.24 prints them, put together by hand.

use super::*;

/// Four GPUs with NVLink, of which two pairs talk through host memory.
const SHM: &str = include_str!("../../../../fixtures/nccl/shm.log");

#[test]
fn rings_trees_transports_and_settings_are_read() {
    let log = NcclLog::parse(SHM).unwrap();
    assert_eq!((log.version.as_deref(), log.ranks, log.nodes), (Some("2.21.5+cuda12.4"), 4, Some(1)));
    assert_eq!(
        (log.hosts.as_slice(), log.network.as_deref()),
        (["box".to_owned()].as_slice(), Some("Socket"))
    );
    let [one] = log.communicators.as_slice() else { panic!("{:?}", log.communicators) };
    assert_eq!(
        (one.id.as_str(), one.rings.as_slice()),
        ("0xd134", [vec![0, 1, 2, 3], vec![0, 3, 2, 1]].as_slice())
    );
    let places = [
        TreePlace { channel: 0, rank: 0, parent: None, children: vec![1] },
        TreePlace { channel: 1, rank: 0, parent: Some(3), children: vec![1, 2] },
    ];
    assert_eq!(one.trees, places);
    assert_eq!(
        one.channels.map(|channels| (channels.collective, channels.nvls, channels.point_to_point)),
        Some((2, 0, 4))
    );
    let pairs: Vec<_> = log
        .connections
        .iter()
        .map(|link| (link.from, link.to, link.transport, link.via.as_str(), link.channels))
        .collect();
    assert_eq!(
        pairs,
        [
            (0, 1, Transport::Shm, "direct/direct", 2),
            (1, 2, Transport::P2p, "CUMEM/read", 1),
            (2, 3, Transport::Shm, "direct/direct", 1),
        ]
    );
    assert_eq!(log.wiring, Wiring { nvlink_gbps: Some(360.0), nvswitch: Some(true), multicast: Some(true) });
    assert_eq!((log.setting("NCCL_P2P_DISABLE"), log.warnings.len()), (Some("1"), 1));
}

#[test]
fn host_memory_between_gpus_with_nvlink_is_a_warning_with_its_reason() {
    let log = NcclLog::parse(SHM).unwrap();
    let ids: Vec<NcclRemarkId> = log.remarks.iter().map(|remark| remark.id).collect();
    assert_eq!(ids, [NcclRemarkId::ShmWithNvlink, NcclRemarkId::NvlsUnused]);
    let shm = &log.remarks[0];
    assert!(
        shm.text.contains("0 → 1 and 1 more") && shm.text.contains("NCCL_P2P_DISABLE is 1"),
        "{}",
        shm.text
    );
    assert_eq!(shm.remedy, "Unset NCCL_P2P_DISABLE.");
    // Without a word about NVLink it stays open, unless the GPU's name says it.
    let unknown: String = SHM.lines().filter(|line| !line.contains("NVL")).collect::<Vec<_>>().join("\n");
    let log = NcclLog::parse(&unknown).unwrap();
    assert_eq!(log.remarks[0].id, NcclRemarkId::Shm);
    assert_eq!(log.clone().with_nvlink(Some(true)).remarks[0].id, NcclRemarkId::ShmWithNvlink);
    assert_eq!(log.with_nvlink(Some(false)).remarks[0].id, NcclRemarkId::Shm);
}

#[test]
fn networks_are_read_with_and_without_gpu_direct() {
    let log = NcclLog::parse(
        "a:1:2 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [receive] via NET/IBext_v8/0/GDRDMA\n\
         a:1:2 [0] NCCL INFO Channel 01/0 : 4[0] -> 3[3] [send] via NET/IB/1\n\
         b:1:2 [0] NCCL INFO Ring 00 : 34 -> 33 [send] via NET/Socket/0",
    )
    .unwrap();
    let direct: Vec<_> = log.connections.iter().map(|link| (link.via.as_str(), link.gpu_direct)).collect();
    assert_eq!(direct, [("IBext_v8/0/GDRDMA", Some(true)), ("IB/1", Some(false)), ("Socket/0", Some(false))]);
    let ids: Vec<NcclRemarkId> = log.remarks.iter().map(|remark| remark.id).collect();
    assert_eq!(ids, [NcclRemarkId::Sockets, NcclRemarkId::NoGpuDirect]);
    assert_eq!(log.ranks, 35);
}

#[test]
fn other_text_is_not_a_log_and_damage_is_skipped() {
    assert_eq!(NcclLog::parse("loss 3.2\n{\"traceEvents\": []}"), None);
    assert!(!NcclLog::is_one("NCCL is great") && NcclLog::is_one(SHM));
    // Any cut of any line is read without a panic.
    for at in 0..SHM.len() {
        let _ = NcclLog::parse(&SHM[at..]);
        let _ = NcclLog::parse(&SHM[..at]);
    }
}
