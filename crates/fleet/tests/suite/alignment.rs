//! Are clocks aligned by collectives, and is the late rank found? Synthetic ranks with known clocks and delays.

use busbound_diagnosis::{Options, Source, diagnose};
use busbound_fleet::{Fleet, FleetAnswer, JobBasis, MeantimePart, Meeting, RankName, RankSummary};
use busbound_machine::Machine;
use busbound_trace::{Collective, MemoryKind, Trace, TraceBuilder, Transfer};

/// A rank of a made job: each step is a copy, then compute, then an all-reduce per group that it is in.
#[derive(Clone)]
struct Made {
    rank: u32,
    /// What its clock shows more at time 0, and how much faster it runs.
    skew_ns: i64,
    drift: f64,
    copy_us: i64,
    compute_us: i64,
    groups: Vec<&'static str>,
    numbered: bool,
}

impl Made {
    fn usual(rank: u32) -> Self {
        let groups = vec!["0"];
        Self { rank, skew_ns: 0, drift: 0.0, copy_us: 20_000, compute_us: 40_000, groups, numbered: true }
    }

    fn clock(&self, at: i64) -> i64 {
        at + self.skew_ns + (at as f64 * self.drift).round() as i64
    }

    fn own_ns(&self) -> i64 {
        1000 * (self.copy_us + self.compute_us)
    }
}

const TRANSFER: i64 = 10_000_000;

/// Up to 20 µs, the same in every run of the test.
fn jitter(seed: i64) -> i64 {
    (seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33)
        .rem_euclid(20_000)
}

/// When each step begins and ends on the true clock: all wait for the last rank, then transfer.
fn ends(job: &[Made], steps: i64) -> Vec<(i64, i64)> {
    let slowest = job.iter().map(Made::own_ns).max().unwrap();
    (0..steps).map(|step| (step * (slowest + TRANSFER), (step + 1) * (slowest + TRANSFER))).collect()
}

fn trace(made: &Made, steps: &[(i64, i64)]) -> Trace {
    let mut trace = TraceBuilder::default();
    let (host, compute, copies, comm) =
        (trace.thread(1, 1), trace.stream(0, 7), trace.stream(0, 20), trace.stream(0, 30));
    let (name, dtype) = (trace.name("allreduce"), trace.name("Float"));
    let mut correlation = 0;
    for (number, &(begin, end)) in steps.iter().enumerate() {
        let clock = |at: i64| made.clock(at);
        let step = if made.numbered { format!("ProfilerStep#{}", number + 7) } else { "step".to_owned() };
        trace.annotation(host, &step, clock(begin)..clock(end - 2000));
        let mut launch = |trace: &mut TraceBuilder, call: &str| {
            correlation += 1;
            let at = clock(begin) + 1500 * i64::from(correlation as i32 % 8) + 1000;
            trace.runtime_call(host, call, at..at + 1000).correlation(correlation);
            correlation
        };
        let copied = begin + 20_000 + 1000 * made.copy_us;
        let id = launch(&mut trace, "cudaMemcpyAsync");
        let transfer = Transfer::host_to_device(MemoryKind::Pinned, 1_000_000_000);
        trace.copy(copies, transfer, clock(begin + 20_000)..clock(copied)).correlation(id);
        let computed = begin + made.own_ns();
        let id = launch(&mut trace, "cudaLaunchKernel");
        trace.kernel(compute, "gemm", clock(copied)..clock(computed)).correlation(id);
        let each = (end - computed) / made.groups.len() as i64;
        for (i, group) in made.groups.iter().enumerate() {
            let id = launch(&mut trace, "cudaLaunchKernel");
            let message = Collective {
                name,
                dtype,
                group: trace.name(group),
                element_bytes: Some(4),
                group_size: Some(4),
                elements_in: Some(1_000_000),
                elements_out: Some(1_000_000),
                ..Collective::default()
            };
            let (start, end) = (computed + each * i as i64, computed + each * (i as i64 + 1));
            let late = jitter(number as i64 * 1000 + i64::from(made.rank) * 77 + i as i64);
            let time = clock(start)..clock(end - 20_000 + late);
            trace.kernel(comm, "ncclDevKernel_AllReduce", time).correlation(id).collective(message);
        }
    }
    trace.finish()
}

fn summary(made: &Made, steps: &[(i64, i64)]) -> RankSummary {
    let source = Source::named(format!("rank-{}.json", made.rank));
    RankSummary::of(&diagnose(&trace(made, steps), &source, &Machine::default(), &Options::default()))
}

fn answer(job: &[Made], steps: i64) -> FleetAnswer {
    let steps = ends(job, steps);
    Fleet::of(job.iter().map(|made| summary(made, &steps))).answer(None)
}

/// Skews of ±50 ms and drifts of ±100 ppm are found to within 50 µs, from ends that scatter by 20 µs.
#[test]
fn clocks_with_skew_and_drift_are_aligned_to_within_50_microseconds() {
    let clocks = [(0, 0.0), (50_000_000, 1e-4), (-50_000_000, -1e-4), (17_000_000, 3e-5)];
    let job: Vec<Made> = (0..4)
        .zip(clocks)
        .map(|(rank, (skew_ns, drift))| Made { skew_ns, drift, ..Made::usual(rank) })
        .collect();
    let answer = answer(&job, 200);
    let alignment = answer.alignment.unwrap();
    assert_eq!((alignment.reference.clone(), alignment.not_aligned.len()), (RankName::Number(0), 0));
    assert!(alignment.error_us <= 50.0, "{alignment:?}");
    for (made, clock) in job.iter().zip(&alignment.ranks) {
        assert_eq!(clock.rank, RankName::Number(made.rank));
        // Over the 14 s that were recorded, the drift itself must not add more than the error.
        assert!((clock.drift_ppm - made.drift * 1e6).abs() * 14.0 < 50.0, "{clock:?}");
        // At the first common collective, in the first second.
        let low = made.skew_ns as f64 / 1e6 - 0.05 - 0.1 * made.drift.abs() * 1e3;
        let high = made.skew_ns as f64 / 1e6 + 0.05 + 1000.0 * made.drift.abs();
        assert!((low..high).contains(&clock.offset_ms), "{clock:?}");
    }
    assert!(answer.limitations.iter().all(|text| !text.contains("clocks")), "{:?}", answer.limitations);
}

/// Rank 2 copies for 50 ms instead of 20: the others wait 30 of 100 ms for it.
#[test]
fn the_late_rank_is_named_with_what_it_did_and_what_the_job_would_gain() {
    let mut job: Vec<Made> =
        (0..4).map(|rank| Made { skew_ns: 1_000_000_000 * i64::from(rank), ..Made::usual(rank) }).collect();
    job[2].copy_us = 50_000;
    let answer = answer(&job, 60);
    let arrivals = answer.arrivals.unwrap();
    assert_eq!(arrivals.collectives, arrivals.decided);
    let order: Vec<&RankName> = arrivals.longest[0].order.iter().map(|one| &one.rank).collect();
    assert_eq!((order.len(), order.last()), (4, Some(&&RankName::Number(2))));
    assert!(arrivals.longest.iter().all(|of| of.order.is_sorted_by_key(|one| one.after_ms)));
    let late = &arrivals.late[0];
    assert_eq!(
        (arrivals.late.len(), &late.rank, late.last_in),
        (1, &RankName::Number(2), arrivals.collectives)
    );
    assert!((late.delay_ms - 30.0).abs() < 0.1, "{late:?}");
    assert_eq!(late.meantime[0].part, MeantimePart::Copies);
    assert!((late.meantime[0].ms - late.meantime[0].median_ms - 30.0).abs() < 0.1, "{late:?}");
    let whole = &answer.job[0];
    assert_eq!((&whole.rank, &whole.cause, whole.basis), (&RankName::Number(2), &None, JobBasis::Arrivals));
    assert!((whole.now_ms - 100.0).abs() < 0.5 && (whole.step_ms - 70.0).abs() < 0.5, "{whole:?}");
    let copies = &answer.job[1];
    assert_eq!(copies.cause.as_deref(), Some("exposed copies"));
    assert!((copies.step_ms - 70.0).abs() < 0.5, "{copies:?}");
}

/// Of two ranks, the median was between them: the cause of a delay was half of the delay.
#[test]
fn the_cause_of_a_delay_between_two_ranks_is_all_of_it() {
    let mut job: Vec<Made> = (0..2).map(Made::usual).collect();
    job[1].copy_us = 50_000;
    let answer = answer(&job, 60);
    let steps: Vec<(Option<&str>, f64)> =
        answer.job.iter().map(|one| (one.cause.as_deref(), one.step_ms)).collect();
    let [(None, whole), (Some("exposed copies"), copies)] = steps[..] else { panic!("{steps:?}") };
    assert!((whole - 70.0).abs() < 0.5 && (copies - 70.0).abs() < 0.5, "{steps:?}");
}

/// With a second rank that is 20 ms late, being on time gains rank 2's job only the 10 ms until then.
#[test]
fn the_gain_ends_where_the_second_latest_rank_begins() {
    let mut job: Vec<Made> = (0..4).map(Made::usual).collect();
    (job[1].compute_us, job[2].compute_us) = (60_000, 70_000);
    let answer = answer(&job, 60);
    let whole = &answer.job[0];
    assert_eq!((&whole.rank, &whole.cause), (&RankName::Number(2), &None));
    assert!((whole.now_ms - whole.step_ms - 10.0).abs() < 0.1, "{whole:?}");
}

/// Ranks 0 and 2 have no group in common, but both share one with rank 1.
#[test]
fn ranks_without_a_common_group_are_aligned_through_others() {
    let mut job: Vec<Made> =
        (0..3).map(|rank| Made { skew_ns: 7_000_000 * i64::from(rank), ..Made::usual(rank) }).collect();
    (job[0].groups, job[1].groups, job[2].groups) = (vec!["a", "x"], vec!["a", "b"], vec!["y", "b"]);
    let answer = answer(&job, 60);
    let alignment = answer.alignment.unwrap();
    let offsets: Vec<f64> = alignment.ranks.iter().map(|clock| clock.offset_ms).collect();
    assert_eq!(offsets.iter().map(|offset| offset.round()).collect::<Vec<_>>(), [0.0, 7.0, 14.0]);
    assert!(alignment.ranks[2].error_us > alignment.ranks[1].error_us, "{alignment:?}");
}

/// Without numbers, the first collective of one trace may be the second of another.
#[test]
fn steps_without_numbers_align_nothing() {
    let job: Vec<Made> = (0..4).map(|rank| Made { numbered: false, ..Made::usual(rank) }).collect();
    let answer = answer(&job, 60);
    assert_eq!((answer.alignment, answer.arrivals), (None, None));
    assert!(answer.limitations.iter().any(|text| text.contains("clocks of the ranks are not synchronized")));
}

/// Collectives that end at unrelated times are not the same ones, whatever their keys say.
#[test]
fn collectives_that_contradict_each_other_align_nothing() {
    let job: Vec<Made> = (0..2).map(Made::usual).collect();
    let steps = ends(&job, 60);
    let mut ranks: Vec<RankSummary> = job.iter().map(|made| summary(made, &steps)).collect();
    for (i, start) in ranks[1].collective_times.starts_ns.iter_mut().enumerate() {
        *start += jitter(i as i64) * 3000;
    }
    assert_eq!(Fleet::of(ranks).answer(None).alignment, None);
}

/// Four GPUs below one switch: each copies in the first 20 of 70 ms. Clocks differ by hours.
#[test]
fn ranks_below_one_switch_say_how_long_they_copy_at_the_same_time() {
    let job: Vec<Made> = (0..4)
        .map(|rank| Made { skew_ns: 3_600_000_000_000 * i64::from(rank), ..Made::usual(rank) })
        .collect();
    let steps = ends(&job, 20);
    let mut places = crate::uplinks::one_switch();
    for (rank, place) in (0..).zip(&mut places) {
        place.rank = Some(rank);
    }
    let fleet = Fleet::of(job.iter().map(|made| summary(made, &steps)));
    let answer = fleet.answer(Some(&places));
    let [uplink] = answer.uplinks.as_slice() else { panic!("{:?}", answer.uplinks) };
    let [copies] = uplink.at_once.as_slice() else { panic!("{uplink:?}") };
    assert!((copies.ms / copies.compared_ms - 20.0 / 70.0).abs() < 0.01, "{copies:?}");
    assert!(copies.decided && copies.high_ms - copies.low_ms < 2.0, "{copies:?}");
    assert!(
        uplink.statement.contains("H2D copies of two or more of them run at the same time for 29% of"),
        "{uplink:?}"
    );
    // Two ranks below the switch and two elsewhere: then collectives cross the uplink.
    for place in &mut places[2..] {
        place.path.iter_mut().for_each(|hop| hop.address = format!("other-{}", hop.address));
    }
    let answer = fleet.answer(Some(&places));
    let meetings =
        |uplink: &busbound_fleet::SharedUplink| uplink.at_once.iter().map(|one| one.what).collect::<Vec<_>>();
    assert_eq!(meetings(&answer.uplinks[0]), [Meeting::H2dCopies, Meeting::CopiesAndCollectives]);
}

/// Without numbered steps no clock is aligned, and nothing is said about what ranks do at the same time.
#[test]
fn ranks_with_unknown_clocks_are_not_said_to_copy_at_the_same_time() {
    let job: Vec<Made> = (0..4).map(|rank| Made { numbered: false, ..Made::usual(rank) }).collect();
    let steps = ends(&job, 20);
    let mut places = crate::uplinks::one_switch();
    for (rank, place) in (0..).zip(&mut places) {
        place.rank = Some(rank);
    }
    let answer = Fleet::of(job.iter().map(|made| summary(made, &steps))).answer(Some(&places));
    assert!(answer.uplinks[0].at_once.is_empty(), "{:?}", answer.uplinks[0]);
    assert!(!answer.uplinks[0].statement.contains("aligned clocks"), "{:?}", answer.uplinks[0]);
}
