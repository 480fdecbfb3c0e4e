//! Summaries merge in any order and grouping with the same result, and read back from disk bit for bit.

use std::path::Path;
use std::sync::LazyLock;

use crate::common::MadeRank;
use busbound_diagnosis::{Bound, Options, RankOrigin, RankedAs, Source, diagnose};
use busbound_fleet::{Fleet, NotOneRun, RankSummary, StepSketch, Unread, one_run};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};
use proptest::prelude::*;

/// Diagnosed once: property tests use it thousands of times.
static BASE: LazyLock<RankSummary> = LazyLock::new(|| {
    let text = MadeRank::usual(0, 4).trace();
    let trace = read(text.as_bytes(), Path::new("rank-0.json"), &ReadOptions::default()).unwrap();
    let source = Source::named("rank-0.json");
    RankSummary::of(&diagnose(&trace, &source, &Machine::default(), &Options::default()))
});

fn base() -> RankSummary {
    BASE.clone()
}

fn ranked(rank: u32, path: &str) -> RankSummary {
    let ranked = RankedAs { rank, world_size: Some(4), backend: None, origin: RankOrigin::DistributedInfo };
    RankSummary { rank: Some(ranked), path: path.to_owned(), ..base() }
}

/// Ranks, hosts and paths from few values, so that they collide.
fn any_rank() -> impl Strategy<Value = RankSummary> {
    let times = (0.0..50.0f64, 0.0..50.0f64, 0.0..20.0f64, prop::collection::vec(1.0..500.0f64, 0..20));
    (prop::option::of(0u32..6), prop::option::of("node[12]"), "[ab]", 0usize..3, times).prop_map(
        |(rank, host, path, bound, (compute, comm, idle, steps))| {
            let mut summary = ranked(rank.unwrap_or(0), &path);
            if rank.is_none() {
                summary.rank = None;
            }
            summary.host = host;
            summary.verdict.bound = [Bound::Transfer, Bound::Compute, Bound::Unknown][bound];
            summary.time.compute_ms = compute;
            summary.time.exposed_comm_ms = comm;
            summary.time.idle_ms = idle;
            summary.time.span_ms = compute + comm + idle;
            summary.steps.as_mut().unwrap().lengths = StepSketch::of(&steps);
            summary
        },
    )
}

fn any_fleet() -> impl Strategy<Value = Fleet> {
    let unread = prop::collection::vec("[xy]", 0..2);
    (prop::collection::vec(any_rank(), 0..6), unread).prop_map(|(ranks, unread)| {
        Fleet::of(ranks).with_unread(unread.into_iter().map(|path| Unread::new(path, "is empty")))
    })
}

proptest! {
    #[test]
    fn grouping_and_order_do_not_matter(a in any_fleet(), b in any_fleet(), c in any_fleet()) {
        let left = a.clone().merge(b.clone()).merge(c.clone());
        let right = a.clone().merge(b.clone().merge(c.clone()));
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(&left, &c.merge(a.clone()).merge(b));
        prop_assert_eq!(&left, &left.clone().merge(a.clone()));
        prop_assert_eq!(&a.clone().merge(Fleet::default()), &a);
        prop_assert_eq!(left.answer(None), right.answer(None));
    }

    #[test]
    fn a_saved_fleet_reads_back(fleet in any_fleet()) {
        let text = serde_json::to_string(&fleet.answer(None)).unwrap();
        prop_assert_eq!(Fleet::parse(&text).unwrap(), fleet.clone());
        prop_assert_eq!(Fleet::parse(&fleet.clone().save().unwrap()).unwrap(), fleet.clone());
        for rank in fleet.ranks() {
            let text = serde_json::to_string(rank).unwrap();
            prop_assert_eq!(Fleet::parse(&text).unwrap(), Fleet::of([rank.clone()]));
        }
    }
}

#[test]
fn a_summary_is_small() {
    let text = serde_json::to_string(&base()).unwrap();
    assert!(text.len() < 4096, "{} bytes", text.len());
}

/// A summary merged by mistake is kept and reported, but not compared.
#[test]
fn a_summary_of_another_run_is_in_no_figure() {
    let mut other = RankSummary { rank: None, path: "other.json".to_owned(), ..base() };
    other.time.span_ms = 9_000.0;
    let ranks = [0, 1, 2].map(|rank| ranked(rank, "a"));
    let answer = Fleet::of(ranks.into_iter().chain([other])).answer(None);
    assert_eq!((answer.ranks.len(), answer.others.len(), answer.stragglers.len()), (3, 1, 0));
    assert!(answer.statement.starts_with("3 of 4 ranks: "), "{}", answer.statement);
    assert_eq!(answer.limitations[0], "Not part of this run: other.json (no rank).");
}

#[test]
fn other_files_are_rejected_with_a_clear_message() {
    let why = |text: &str| Fleet::parse(text).unwrap_err().to_string();
    assert!(why("[1, 2").starts_with("is damaged, or not a rank summary: write it again"));
    assert_eq!(
        why(r#"{"schema": "busbound.diagnosis/2"}"#),
        "is not a rank summary: its schema is busbound.diagnosis/2; `busbound summarize` writes busbound.rank/2"
    );
    assert_eq!(
        why(r#"{"traceEvents": []}"#),
        "is not a rank summary; `busbound summarize` creates one from a trace"
    );
}

#[test]
fn ranks_of_one_run_are_recognized() {
    let why_not = |list: &[RankSummary]| one_run(list).unwrap_err();
    let unranked = RankSummary { rank: None, path: "other.json".to_owned(), ..base() };
    let run = one_run(&[ranked(1, "b"), unranked.clone(), ranked(0, "a")]).unwrap();
    assert_eq!((run.members, run.others), (vec![0, 2], vec![1]));
    assert_eq!(run.left_out.as_deref(), Some("Not part of this run: other.json (no rank)."));
    assert_eq!(run.evidence, "recognized by the rank in each trace");
    let mut named = [ranked(0, "a"), ranked(1, "b")];
    for rank in &mut named {
        rank.rank.as_mut().unwrap().origin = RankOrigin::FileName;
        rank.rank.as_mut().unwrap().world_size = None;
    }
    assert_eq!(one_run(&named).unwrap().evidence, "recognized by the rank in each file name");
    assert_eq!(why_not(&[unranked.clone(), unranked.clone()]), NotOneRun::NoRank);
    assert_eq!(why_not(&[unranked, ranked(0, "a")]), NotOneRun::OneRank);
    let twice = why_not(&[ranked(0, "a"), ranked(0, "b")]);
    assert_eq!(twice.to_string(), "both a and b are rank 0");
    // A duplicate rank is left out; the others are still one run.
    let several = [ranked(0, "a"), ranked(1, "b"), ranked(2, "c"), ranked(2, "d")];
    let run = one_run(&several).unwrap();
    assert_eq!((run.members, run.others), (vec![0, 1], vec![2, 3]));
    assert_eq!(run.left_out.as_deref(), Some("Not part of this run: c, d (duplicate rank)."));
    let mut larger = ranked(1, "b");
    larger.rank.as_mut().unwrap().world_size = Some(8);
    assert_eq!(why_not(&[ranked(0, "a"), larger]), NotOneRun::Sizes { least: 4, most: 8 });
}

/// Two runs in one folder: the ranks of the slower run are not stragglers of the other.
#[test]
fn ranks_of_different_runs_are_not_compared() {
    let mut ranks: Vec<RankSummary> =
        [(0, "a0"), (1, "a1"), (2, "a2"), (0, "b0"), (1, "b1")].map(|(rank, path)| ranked(rank, path)).into();
    ranks[4].time.exposed_comm_ms -= 30.0;
    ranks[4].time.comm_ms -= 30.0;
    ranks[4].time.exposed_bus_copy_ms += 30.0;
    let answer = Fleet::of(ranks).answer(None);
    assert_eq!(
        answer.statement,
        "Not one run: both a0 and b0 are rank 0; 5 summaries: communication-bound on all."
    );
    assert!(answer.stragglers.is_empty() && answer.figures.is_empty() && answer.steps.is_none());
    assert_eq!((answer.world_size, answer.evidence, answer.ranks.len()), (None, None, 5));
    assert_eq!(
        answer.limitations[0],
        "These are not ranks of one run, so they are not compared with each other."
    );
}

/// Files without ranks that the user merges are one run; two files with the same name in two folders are two ranks.
#[test]
fn files_without_ranks_count_as_one_run() {
    let of = |path: &str, late: f64| {
        let mut rank = RankSummary { rank: None, path: path.to_owned(), ..base() };
        rank.time.exposed_comm_ms -= late;
        rank.time.comm_ms -= late;
        rank.time.exposed_bus_copy_ms += late;
        rank
    };
    let usual = ["c", "d", "e", "f"].map(|folder| of(&format!("{folder}/trace.json"), 0.0));
    let late = [of("a/trace.json", 30.0), of("b/trace.json", 20.0)];
    let answer = Fleet::of(usual.into_iter().chain(late)).answer(None);
    assert_eq!(answer.not_one_run, None);
    let expected = "; trace.json, trace.json delay the other ranks, trace.json the most (30.0 ms/step more outside communication).";
    assert!(answer.statement.ends_with(expected), "{}", answer.statement);
    let paths: Vec<&str> = answer.stragglers.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["a/trace.json", "b/trace.json"]);
}

/// An implausible world size costs neither time nor memory, and is ignored.
#[test]
fn an_implausible_world_size_is_ignored() {
    let mut ranks = [ranked(0, "a"), ranked(1, "b"), ranked(u32::MAX, "c")];
    for rank in &mut ranks {
        rank.rank.as_mut().unwrap().world_size = Some(u32::MAX);
    }
    let answer = Fleet::of(ranks).answer(None);
    assert_eq!(answer.world_size, None);
    assert!(answer.statement.starts_with("3 ranks: "), "{}", answer.statement);
    assert_eq!(
        answer.limitations[0],
        "World sizes above 1,000,000 are implausible and ignored: ranks 0, 1, 4294967295."
    );
}

/// A duplicate rank is not compared, but it is not missing.
#[test]
fn a_duplicate_rank_is_not_reported_as_missing() {
    let ranks = [(0, "a"), (1, "b"), (2, "c"), (2, "d")].map(|(rank, path)| ranked(rank, path));
    let answer = Fleet::of(ranks).with_unread([Unread::new("rank-3.json", "is empty")]).answer(None);
    assert!(!answer.limitations.iter().any(|text| text.contains("missing")), "{:?}", answer.limitations);
}

/// Windows of `record --every`: each period has one of each rank.
#[test]
fn the_last_windows_that_all_ranks_have_are_compared() {
    let window = |rank: u32, period: i64| {
        let path = format!("run.{rank}.window-{period}.bbt");
        // The clock of rank 1 is 40 ms behind.
        let recorded_ms = Some(1_793_491_200_000 + period * 600_000 - 40 * i64::from(rank));
        RankSummary { recorded_ms, every_ms: Some(600_000), ..ranked(rank, &path) }
    };
    let answer = |windows: &[(u32, i64)]| {
        Fleet::of(windows.iter().map(|&(rank, period)| window(rank, period))).answer(None)
    };
    let paths = |ranks: &[RankSummary]| ranks.iter().map(|rank| rank.path.clone()).collect::<Vec<_>>();
    let three = answer(&[(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]);
    assert_eq!((three.not_one_run.as_ref(), three.others.len()), (None, 4));
    assert_eq!(paths(&three.ranks), ["run.0.window-3.bbt", "run.1.window-3.bbt"]);
    assert_eq!(
        three.limitations[0],
        "Of the windows of `record --every`, the last one that all ranks have is compared; \
         4 other windows are not (`busbound history` compares windows over time)."
    );
    // Rank 1 has not written its third one yet.
    let two = answer(&[(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]);
    assert_eq!(paths(&two.ranks), ["run.0.window-2.bbt", "run.1.window-2.bbt"]);
    // Nothing in common: of each rank its last one, which the answer says.
    let apart = answer(&[(0, 1), (0, 2), (1, 7), (1, 8)]);
    assert_eq!(paths(&apart.ranks), ["run.0.window-2.bbt", "run.1.window-8.bbt"]);
    assert!(apart.limitations[0].contains("these are of different times"), "{:?}", apart.limitations);
}
