//! Are files from `busbound record` diagnosed correctly?

use std::path::Path;

use busbound_diagnosis::{Bound, FindingId, LimitationId, Options, Source, diagnose};
use busbound_machine::{LinkSource, Machine};
use busbound_trace::{EventKind, MemoryKind, ReadOptions};

/// One program, recorded once by busbound and once by torch.profiler, on an H200: fixtures/recorded.
#[test]
fn a_recording_has_the_same_copies_as_torch_profiler() {
    let trace = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name);
        busbound_trace::open(&path, &ReadOptions::default()).unwrap()
    };
    let (ours, theirs) = (trace("offload.bbt"), trace("offload.json.gz"));
    let copies = |trace: &busbound_trace::Trace| {
        let mut all: std::collections::BTreeMap<_, Vec<(i64, u64)>> = std::collections::BTreeMap::new();
        for event in trace.events() {
            if let Some(transfer) = event.transfer().filter(|_| event.kind() == EventKind::Copy) {
                let one = (event.duration().get(), transfer.bytes.unwrap().get());
                all.entry((transfer.direction, transfer.src, transfer.dst)).or_default().push(one);
            }
        }
        all.values_mut().for_each(|list| list.sort_unstable());
        all
    };
    let (ours_by_kind, theirs_by_kind) = (copies(&ours), copies(&theirs));
    assert_eq!(ours_by_kind.len(), 4);
    for (kind, list) in &ours_by_kind {
        let their = &theirs_by_kind[kind];
        let bytes = |list: &[(i64, u64)]| list.iter().map(|(_, bytes)| bytes).sum::<u64>();
        assert_eq!((list.len(), bytes(list)), (their.len(), bytes(their)), "{kind:?}");
        // Staging of pageable memory and the first copies vary from run to run; the link rate does not.
        let median = |list: &[(i64, u64)]| list[list.len() / 2].0 as f64;
        let off = (median(list) / median(their) - 1.0).abs();
        assert!(![kind.1, kind.2].contains(&MemoryKind::Pinned) || off < 0.01, "{kind:?}: {off}");
    }
    let verdict =
        |trace| diagnose(trace, &Source::named("t"), &Machine::default(), &Options::default()).verdict.bound;
    assert_eq!((verdict(&ours), verdict(&theirs)), (Bound::Transfer, Bound::Transfer));
}

/// The real recording with modified link records: the driver reports this link, with a max of PCIe 5 x16.
fn recorded_on(generation: u32, lanes: u32) -> busbound_trace::Trace {
    use busbound_capture::format::{Chunk, ChunkReader, ChunkWriter, MAGIC, Record, Records};
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/offload.bbt");
    let file = std::fs::read(path).unwrap();
    let mut chunks = ChunkReader::new(file.strip_prefix(MAGIC).unwrap());
    let mut changed = MAGIC.to_vec();
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        let Chunk::Whole { payload, .. } = chunk else { panic!("the recording is whole") };
        let mut writer = ChunkWriter::default();
        for record in Records::of(&payload) {
            match record {
                Record::Link { gpu, max_generation, max_lanes, .. } => {
                    // An idle link is slower, which is not a finding.
                    writer.add(&Record::Link { gpu, generation: 1, lanes, max_generation, max_lanes });
                    writer.add(&Record::Link { gpu, generation, lanes, max_generation, max_lanes });
                }
                other => writer.add(&other),
            }
        }
        changed.extend(writer.take().unwrap());
    }
    busbound_trace::read(changed.as_slice(), Path::new("run.bbt"), &ReadOptions::default()).unwrap()
}

#[test]
fn a_recording_is_compared_with_the_recorded_link() {
    let of = |generation, lanes| {
        let trace = recorded_on(generation, lanes);
        diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default())
    };
    let whole = of(5, 16);
    let link = &whole.machine.gpus[0].link;
    assert_eq!((link.name.as_str(), link.source), ("PCIe 5 x16", LinkSource::Recorded));
    assert!(whole.findings.iter().all(|finding| finding.id != FindingId::NarrowLink));
    let state = whole.limitations.iter().find(|limitation| limitation.id == LimitationId::LinkState).unwrap();
    assert_eq!(state.text, "A recording does not show whether the process ran on the wrong NUMA node.");

    let half = of(5, 8);
    let link = &half.machine.gpus[0].link;
    assert_eq!((link.name.as_str(), link.source), ("PCIe 5 x8", LinkSource::Recorded));
    let finding = half.findings.iter().find(|finding| finding.id == FindingId::NarrowLink).unwrap();
    assert_eq!(finding.title, "Downgraded link: PCIe 5 x8 instead of PCIe 5 x16");
    let exposed = finding.evidence["exposed_ms_per_step"].as_f64().unwrap();
    assert!((finding.saves_ms_per_step.high - exposed / 2.0).abs() < 1e-9);

    let given = Machine::named("pcie5x16").unwrap();
    let stated = diagnose(&recorded_on(5, 8), &Source::named("t"), &given, &Options::default());
    assert_eq!(stated.machine.gpus[0].link.source, LinkSource::Given);
    assert!(stated.findings.iter().all(|finding| finding.id != FindingId::NarrowLink));
}

/// The survey named settings of torch.profiler, which `busbound record` does not have.
#[test]
fn remedies_for_a_recording_apply_to_busbound_record() {
    let survey = busbound_diagnosis::survey(&recorded_on(5, 16), &Source::named("run.bbt"));
    let remedies: Vec<_> = survey.missing.iter().map(|missing| (missing.id, missing.remedy)).collect();
    assert_eq!(
        remedies.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [LimitationId::Operators, LimitationId::Stacks, LimitationId::Memory]
    );
    assert!(remedies[..2].iter().all(|(_, remedy)| remedy.contains("torch.cuda.nvtx.range")));
    assert!(remedies.iter().all(|(_, remedy)| !remedy.contains("ProfilerActivity")), "{remedies:?}");
}

/// The verdict attributed all waiting to the largest group of copies. Here, a sixth of it is for pinned copies.
#[test]
fn the_verdict_attributes_to_a_group_of_copies_only_its_own_time() {
    let trace = recorded_on(5, 16);
    let diagnosis = diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default());
    assert_eq!(
        diagnosis.verdict.statement,
        "Transfer-bound: 78% of each 21.6 ms step waits for copies over the bus, mostly H2D copies from pageable memory."
    );
}

/// A made recording of a machine with two NUMA nodes (fixtures/coverage/made.py): the GPU is at node 1, three of four copies come from
/// node 0.
fn two_nodes(machine: &Machine, change: impl Fn(&mut Vec<u8>)) -> busbound_diagnosis::Diagnosis {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/coverage");
    let mut file = std::fs::read(root.join("two_nodes.bbt")).unwrap();
    change(&mut file);
    let trace = busbound_trace::read(&file[..], Path::new("two_nodes.bbt"), &ReadOptions::default()).unwrap();
    assert!(trace.stats().is_complete());
    diagnose(&trace, &Source::named("two_nodes.bbt"), machine, &Options::default())
}

fn wrong_node(diagnosis: &busbound_diagnosis::Diagnosis) -> Option<&busbound_diagnosis::Finding> {
    diagnosis.findings.iter().find(|finding| finding.id == FindingId::WrongNumaNode)
}

#[test]
fn copies_from_the_wrong_numa_node_cost_what_the_profile_says_or_an_unknown_amount() {
    let unknown = two_nodes(&Machine::default(), |_| {});
    let finding = wrong_node(&unknown).unwrap();
    assert_eq!((finding.saving_known, finding.saves_ms_per_step.high), (false, 0.0));
    assert_eq!(
        (&finding.evidence["far_share"], &finding.evidence["known_share"]),
        (&0.75.into(), &1.0.into())
    );
    assert!(finding.seen.contains("What that costs is unknown"), "{}", finding.seen);
    assert!(finding.fix.contains("numactl --cpunodebind=1 --membind=1"), "{}", finding.fix);
    assert!(unknown.limitations.iter().all(|one| !one.text.contains("NUMA")));

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/coverage/two_nodes_machine.json");
    let profile = busbound_machine::MachineProfile::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let known = two_nodes(&Machine::measured(profile), |_| {});
    let finding = wrong_node(&known).unwrap();
    // Three copies of 168 MB: at 38 GB/s instead of 55.
    let slower = 3.0 * 168.0 * (1.0 / 38.0 - 1.0 / 55.0);
    assert!(finding.saving_known && (finding.saves_ms_per_step.high - slower).abs() < 0.02, "{finding:?}");
}

/// Replaces text of the same length in the chunk of facts, and its checksum.
fn replace(file: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = file.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
    file[at..at + to.len()].copy_from_slice(to.as_bytes());
    let head = busbound_capture::format::MAGIC.len();
    let length = u32::from_le_bytes(file[head + 4..head + 8].try_into().unwrap()) as usize;
    let sum = busbound_capture::format::crc32(&file[head + 12..head + 12 + length]);
    file[head + 8..head + 12].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn without_a_far_node_there_is_no_wrong_one() {
    let no_finding = |from: &str, to: &str| {
        let diagnosis = two_nodes(&Machine::default(), |file| replace(file, from, to));
        assert!(wrong_node(&diagnosis).is_none(), "{from} -> {to}");
        diagnosis.limitations.iter().map(|one| one.text.clone()).find(|text| text.contains("NUMA"))
    };
    // Two nodes of one socket.
    assert_eq!(no_finding("21 10", "12 10"), None);
    // The GPU's node is unknown, and the nodes of the machine are not recorded.
    assert!(no_finding("numa node of gpu 0", "numa node of gpu 7").unwrap().contains("is not recorded"));
    assert!(no_finding("numa nodes\u{3}", "numa other\u{3}").unwrap().contains("A recording does not show"));
    // One node.
    assert_eq!(no_finding("0,1", "0,,"), None);
}
