//! A job of 1,000 ranks with 256 collectives each: all clocks are aligned, and the late rank is named. `cargo xtask bench
//! --merge` measures how long the same takes.

use std::path::Path;

use crate::common::MadeRank;
use busbound_diagnosis::{CollectiveTimes, Options, Source, diagnose};
use busbound_fleet::{Fleet, RankName, RankSummary};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};

const RANKS: u32 = 1_000;
const COLLECTIVES: i64 = 256;
const LATE: u32 = 137;
const DELAY: i64 = 3_000_000;

/// All leave a collective when the last rank has arrived; each sees it on its own clock, hours apart and drifting.
fn collective_times(rank: u32) -> CollectiveTimes {
    let clock = |at: i64| 3_600_000_000_000 * i64::from(rank) + at + at / 1_000_000 * i64::from(rank % 21);
    let early = if rank == LATE { 0 } else { DELAY + i64::from(rank * 31 % 1_000_000) };
    let last = |number: i64| (number + 1) * 100_000_000;
    let scatter = |number: i64| (i64::from(rank) * 7_919 + number * 104_729) % 5_000;
    let all = |of: &dyn Fn(i64) -> i64| (0..COLLECTIVES).map(of).collect::<Vec<i64>>();
    let start = |number: i64| clock(last(number) - early);
    let compute = if rank == LATE { 60_000_000 + DELAY } else { 60_000_000 };
    CollectiveTimes {
        per_step: 1.0,
        keys: (0..COLLECTIVES as u64).map(|number| 1_000_003 * (number + 1)).collect(),
        group_sizes: vec![RANKS; COLLECTIVES as usize],
        starts_ns: all(&start),
        durations_ns: all(&|number| clock(last(number) + 1_000_000 + scatter(number)) - start(number)),
        compute_ns: all(&|_| compute),
        copy_ns: all(&|_| 20_000_000),
        input_ns: all(&|_| 0),
        idle_ns: all(&|_| 0),
    }
}

#[test]
fn a_thousand_ranks_are_aligned_and_the_late_one_is_named() {
    let text = MadeRank::usual(0, RANKS).trace();
    let trace = read(text.as_bytes(), Path::new("rank-0.json"), &ReadOptions::default()).unwrap();
    let one = RankSummary::of(&diagnose(
        &trace,
        &Source::named("rank-0.json"),
        &Machine::default(),
        &Options::default(),
    ));
    let rank = |rank: u32| {
        let mut summary = one.clone();
        summary.rank.as_mut().unwrap().rank = rank;
        summary.path = format!("rank-{rank}.json");
        summary.collective_times = collective_times(rank);
        summary
    };
    let answer = Fleet::of((0..RANKS).map(rank)).answer(None);
    let alignment = answer.alignment.as_ref().unwrap();
    assert_eq!((alignment.ranks.len(), alignment.not_aligned.len()), (1_000, 0));
    assert!(alignment.error_us < 10.0, "{}", alignment.error_us);
    let late = &answer.arrivals.as_ref().unwrap().late[0];
    assert_eq!((&late.rank, late.last_in), (&RankName::Number(LATE), 256));
    assert!((late.delay_ms - 3.0).abs() < 0.02, "{}", late.delay_ms);
}
