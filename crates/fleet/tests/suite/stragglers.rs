//! Which rank do the others wait for? Synthetic ranks with known causes: exactly those must be found, and no others.

use std::path::Path;

use crate::common::MadeRank;
use busbound_diagnosis::{FindingId, Options, Source, diagnose};
use busbound_fleet::{Fleet, FleetAnswer, RankName, RankSummary, Unread};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};

fn summary(rank: &MadeRank) -> RankSummary {
    let (text, path) = (rank.trace(), format!("rank-{}.json", rank.rank));
    let trace = read(text.as_bytes(), Path::new(&path), &ReadOptions::default()).unwrap();
    RankSummary::of(&diagnose(&trace, &Source::named(path), &Machine::default(), &Options::default()))
}

/// Eight ranks; `change` modifies the sixth.
fn eight(change: impl Fn(&mut MadeRank)) -> FleetAnswer {
    let ranks = (0..8).map(|rank| {
        let mut made = MadeRank::usual(rank, 8);
        if rank == 5 {
            change(&mut made);
        }
        summary(&made)
    });
    Fleet::of(ranks).answer(None)
}

fn only(answer: &FleetAnswer) -> &busbound_fleet::Straggler {
    assert_eq!(answer.stragglers.len(), 1, "{:?}", answer.stragglers);
    &answer.stragglers[0]
}

fn reasons(answer: &FleetAnswer) -> Vec<String> {
    only(answer).differences[0].because.iter().map(ToString::to_string).collect()
}

#[test]
fn ranks_that_are_alike_have_no_straggler() {
    let answer = eight(|_| {});
    assert!(answer.stragglers.is_empty());
    assert_eq!(answer.statement, "8 ranks: communication-bound on all; 100 ms/step; no stragglers.");
    assert!(answer.figures.iter().all(|figure| figure.outliers.is_empty() && figure.min == figure.max));
}

/// All steps take 100 ms. The rank whose copies take 50 ms instead of 20 waits 20 ms instead of 50.
#[test]
fn a_rank_with_a_slow_link_delays_the_others() {
    let answer = eight(|rank| rank.copy_ms = 50);
    let straggler = only(&answer);
    assert_eq!((&straggler.rank, straggler.path.as_str()), (&RankName::Number(5), "rank-5.json"));
    assert_eq!((straggler.own_ms, straggler.median_own_ms, straggler.excess_ms), (80.0, 50.0, 30.0));
    assert_eq!(straggler.others_wait_ms, Some(30.0));
    assert_eq!(straggler.differences.len(), 1);
    let copy = &straggler.differences[0];
    assert_eq!((copy.part.as_str(), copy.ms, copy.median_ms), ("copying only", 50.0, 20.0));
    assert_eq!(
        straggler.statement,
        "The other ranks wait for rank 5, about 30.0 ms/step: it spends 80.0 ms/step outside communication, the median rank 50.0 ms; it spends 20.0 ms in communication, the median rank 50.0 ms. Each step takes 100 ms on both. Longer than on the median rank: copying only 50.0 ms vs. 20.0 ms (H2D pinned at 20.0 GB/s vs. 50.0 GB/s: a link at lower speed or with fewer lanes, host memory on another NUMA node, or a PCIe uplink shared with other GPUs). Findings that most ranks do not have: slow_link. For details, run `busbound diagnose rank-5.json`."
    );
    assert_eq!(
        answer.statement,
        "8 ranks: 7 communication-bound, 1 transfer-bound; 100 ms/step; the other ranks wait 30.0 ms/step for rank 5: copying only +30.0 ms, H2D pinned at 20.0 GB/s vs. 50.0 GB/s."
    );
    let rate = answer.figures.iter().find(|figure| figure.figure == "H2D rate").unwrap();
    assert_eq!((rate.min, rate.p50, rate.max, &rate.min_rank), (20.0, 50.0, 50.0, &RankName::Number(5)));
    assert_eq!(rate.outliers.iter().map(|one| &one.rank).collect::<Vec<_>>(), [&RankName::Number(5)]);
}

/// Collectives begin when the last rank arrives: the waits for two late ranks are not added.
#[test]
fn waits_for_two_late_ranks_are_not_added() {
    let ranks = (0..8).map(|rank| {
        let copy_ms = [20, 20, 20, 20, 40, 50, 20, 20][rank as usize];
        summary(&MadeRank { copy_ms, ..MadeRank::usual(rank, 8) })
    });
    let answer = Fleet::of(ranks).answer(None);
    assert_eq!(
        answer.statement,
        "8 ranks: 6 communication-bound, 1 transfer-bound, 1 mixed; 100 ms/step; ranks 4, 5 delay the other ranks, rank 5 the most (30.0 ms/step more outside communication)."
    );
    let first = &answer.stragglers[0].statement;
    assert!(first.starts_with("The other ranks wait for rank 5, about 30.0 ms/step: "), "{first}");
    let second = &answer.stragglers[1].statement;
    assert!(
        second.starts_with(
            "Without the slower ranks listed first, the other ranks would still wait for rank 4, about 20.0 ms/step: "
        ),
        "{second}"
    );
    let communication =
        answer.findings.iter().find(|finding| finding.id == FindingId::ExposedCommunication).unwrap();
    assert_eq!(communication.note.as_deref(), Some("30.0 ms of it is waiting for rank 5"));
}

#[test]
fn pageable_memory_is_named() {
    let answer = eight(|rank| {
        rank.copy_ms = 50;
        rank.memory = "Pageable";
    });
    assert_eq!(reasons(&answer), ["H2D pageable 1.00 GB vs. none"]);
}

#[test]
fn longer_kernels_and_more_kernels_are_distinguished() {
    let longer = eight(|rank| rank.kernel_ms = 5);
    assert_eq!(
        reasons(&longer),
        ["no more kernels, but longer: median 5000.0 µs vs. 3000.0 µs: a lower clock, or larger shapes"]
    );
    let more = eight(|rank| rank.kernels = 18);
    assert_eq!(reasons(&more), ["19 kernels vs. 11: more work"]);
}

/// Without collectives, a slow rank is slow, but nothing shows that others wait.
#[test]
fn without_communication_no_waits_are_reported() {
    let ranks = (0..8).map(|rank| {
        let mut made = MadeRank::usual(rank, 8);
        made.communicates = false;
        made.copy_ms = if rank == 5 { 50 } else { 20 };
        summary(&made)
    });
    let answer = Fleet::of(ranks).answer(None);
    let straggler = only(&answer);
    assert_eq!((straggler.excess_ms, straggler.others_wait_ms), (30.0, None));
    assert!(straggler.statement.starts_with("Rank 5 is slower: it spends 80.0 ms/step outside communication, the median rank 50.0 ms. No communication is recorded, so nothing shows that other ranks wait for it."), "{}", straggler.statement);
}

/// A rank that takes longer but spends as much time in collectives as the others delays no other rank.
#[test]
fn a_rank_that_does_not_wait_less_delays_no_other() {
    let mut ranks: Vec<RankSummary> = (0..8).map(|rank| summary(&MadeRank::usual(rank, 8))).collect();
    ranks[5].time.span_ms += 40.0;
    ranks[5].time.compute_ms += 40.0;
    let answer = Fleet::of(ranks).answer(None);
    assert_eq!(only(&answer).others_wait_ms, None);
}

#[test]
fn of_two_ranks_neither_is_an_outlier() {
    let mut slow = MadeRank::usual(1, 2);
    slow.copy_ms = 50;
    let answer = Fleet::of([summary(&MadeRank::usual(0, 2)), summary(&slow)]).answer(None);
    assert!(answer.stragglers.is_empty() && answer.figures.iter().all(|figure| figure.outliers.is_empty()));
    assert_eq!(
        answer.statement,
        "2 ranks: 1 transfer-bound, 1 communication-bound; 100 ms/step; rank 1 spends more time outside communication: 80.0 ms/step vs. 50.0 ms."
    );
}

#[test]
fn missing_ranks_are_reported() {
    let ranks = [0, 1, 2].map(|rank| summary(&MadeRank::usual(rank, 8)));
    let broken = Unread::new("traces/rank-3.json", "traces/rank-3.json is empty");
    assert_eq!(broken.rank, Some(3));
    let answer = Fleet::of(ranks).with_unread([broken]).answer(None);
    assert_eq!(
        answer.statement,
        "3 of 8 ranks: communication-bound on all 3; 100 ms/step; no stragglers; 1 file could not be read."
    );
    assert_eq!(answer.limitations[0], "4 of 8 ranks are missing: ranks 4–7.");
    assert_eq!(answer.evidence.as_deref(), Some("recognized by the rank in each trace"));
}

/// A damaged rank has lost most kernels, which looks like much time outside communication: no rank waits for that.
#[test]
fn a_partly_read_rank_is_not_compared() {
    let mut ranks: Vec<RankSummary> = (0..5).map(|rank| summary(&MadeRank::usual(rank, 5))).collect();
    ranks[3].complete = false;
    ranks[3].time.exposed_comm_ms = 10.0;
    ranks[3].time.comm_ms = 10.0;
    ranks[3].time.idle_ms = 40.0;
    ranks[3].findings.iter_mut().for_each(|finding| finding.saves_ms_per_step.high = 9_000.0);
    let answer = Fleet::of(ranks).answer(None);
    assert!(answer.stragglers.is_empty(), "{:?}", answer.stragglers);
    assert!(answer.figures.iter().all(|figure| figure.ranks == 4 && figure.min == figure.max));
    assert_eq!(
        answer.statement,
        "5 ranks: communication-bound on all; 100 ms/step; no stragglers; 1 rank only partly read."
    );
    assert_eq!(
        answer.limitations[0],
        "Only partly read (* in the table), so not compared with other ranks: rank 3."
    );
    assert!(answer.findings.iter().all(|finding| finding.ranks == 5));
    assert!(answer.findings.iter().all(|finding| finding.saves_ms_per_step.high < 100.0));
}

/// Rank 5 starts its all-reduce 0.1 ms after the others and overlaps it with 30 ms of compute: no rank waits for that.
#[test]
fn compute_that_overlaps_communication_is_not_lateness() {
    let mut ranks: Vec<RankSummary> = (0..8).map(|rank| summary(&MadeRank::usual(rank, 8))).collect();
    let time = &mut ranks[5].time;
    time.comm_ms -= 0.1;
    time.idle_ms += 0.1;
    time.compute_ms += 30.0;
    time.exposed_comm_ms -= 30.1;
    let answer = Fleet::of(ranks).answer(None);
    assert!(answer.stragglers.is_empty(), "{:?}", answer.stragglers);
    assert!(answer.statement.ends_with("; no stragglers."), "{}", answer.statement);
}

/// Part of the 50 ms of exposed communication is waiting; that part is never more than the finding saves.
#[test]
fn the_wait_does_not_exceed_the_saving() {
    let mut ranks: Vec<RankSummary> = (0..8).map(|rank| summary(&MadeRank::usual(rank, 8))).collect();
    ranks[5] = summary(&MadeRank { copy_ms: 50, ..MadeRank::usual(5, 8) });
    for finding in ranks.iter_mut().flat_map(|rank| &mut rank.findings) {
        finding.saves_ms_per_step.high = 12.0;
    }
    let answer = Fleet::of(ranks).answer(None);
    let communication =
        answer.findings.iter().find(|finding| finding.id == FindingId::ExposedCommunication).unwrap();
    assert_eq!(communication.note.as_deref(), Some("12.0 ms of it is waiting for rank 5"));
}

/// The step is the sum of its parts, even if one of many steps is long.
#[test]
fn a_step_is_the_sum_of_its_parts() {
    let mut rank = summary(&MadeRank::usual(0, 2));
    rank.steps.as_mut().unwrap().p50_ms = 70.0;
    let time = &rank.time;
    let copies =
        time.exposed_bus_copy_ms + time.exposed_peer_copy_ms + time.device_copy_ms + time.unplaced_copy_ms;
    assert_eq!(copies, time.exposed_copy_ms);
    let parts = time.compute_ms + time.exposed_comm_ms + copies + time.exposed_memset_ms + time.idle_ms;
    assert_eq!((rank.step_ms(), parts), (100.0, 100.0));
}

/// Regression: the rest of a rank's time after all known parts was reported as copies within the device.
#[test]
fn a_copy_of_unknown_direction_is_a_separate_part() {
    let text = MadeRank::usual(0, 2).trace().replace("Memcpy HtoD (Pinned -> Device)", "Memcpy");
    let trace = read(text.as_bytes(), Path::new("rank-0.json"), &ReadOptions::default()).unwrap();
    let source = Source::named("rank-0.json");
    let rank = RankSummary::of(&diagnose(&trace, &source, &Machine::default(), &Options::default()));
    let time = &rank.time;
    assert_eq!((time.exposed_bus_copy_ms, time.device_copy_ms, time.unplaced_copy_ms), (0.0, 0.0, 20.0));
}

/// Regression: `exposed_copy_ms` covered all copies in a diagnosis, but only copies over the bus in a summary.
#[test]
fn exposed_copies_are_the_same_in_a_summary_and_in_its_diagnosis() {
    let text = MadeRank::usual(0, 2).trace().replace("HtoD (Pinned", "DtoD (Device");
    let trace = read(text.as_bytes(), Path::new("rank-0.json"), &ReadOptions::default()).unwrap();
    let diagnosis = diagnose(&trace, &Source::named("rank-0.json"), &Machine::default(), &Options::default());
    let time = RankSummary::of(&diagnosis).time;
    assert_eq!((time.exposed_copy_ms, time.exposed_copy_ms), (20.0, diagnosis.time.exposed_copy_ms / 4.0));
    assert_eq!((time.exposed_bus_copy_ms, time.device_copy_ms), (0.0, 20.0));
}

/// In summaries of the first release, `exposed_copy_ms` covers only copies over the bus; the earliest have no
/// `unplaced_copy_ms`.
#[test]
fn summaries_of_the_first_release_are_read() {
    let rank = summary(&MadeRank::usual(0, 2));
    let mut older = serde_json::to_value(&rank).unwrap();
    let time = older["time"].as_object_mut().unwrap();
    for newer in ["exposed_bus_copy_ms", "exposed_peer_copy_ms", "exposed_memset_ms"] {
        assert!(time.remove(newer).is_some());
    }
    time.insert("device_copy_ms".to_owned(), 3.0.into());
    time.insert("unplaced_copy_ms".to_owned(), 2.0.into());
    let read: RankSummary = serde_json::from_value(older.clone()).unwrap();
    assert_eq!((read.time.exposed_copy_ms, read.time.exposed_bus_copy_ms), (25.0, 20.0));
    older["time"].as_object_mut().unwrap().remove("unplaced_copy_ms");
    let earliest: RankSummary = serde_json::from_value(older).unwrap();
    assert_eq!((earliest.time.exposed_copy_ms, earliest.time.unplaced_copy_ms), (23.0, 0.0));
    // A current summary reads back unchanged.
    let again: RankSummary = serde_json::from_value(serde_json::to_value(&rank).unwrap()).unwrap();
    assert_eq!(again, rank);
}

#[test]
fn idle_time_outside_communication_is_reported() {
    let mut ranks = [0, 1].map(|rank| summary(&MadeRank::usual(rank, 2)));
    ranks[1].time.idle_ms += 20.0;
    ranks[1].time.exposed_comm_ms -= 20.0;
    let answer = Fleet::of(ranks).answer(None);
    let clause = "; rank 1 spends more time outside communication: 70.0 ms/step (20.0 ms idle) vs. 50.0 ms.";
    assert!(answer.statement.ends_with(clause), "{}", answer.statement);
}
