//! Summaries lie together in any order and any grouping with the same result, and come back from disk to the bit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod common;

use std::path::Path;
use std::sync::LazyLock;

use busbound_diagnosis::{Bound, Options, RankOrigin, RankedAs, Source, diagnose};
use busbound_fleet::{Fleet, NotOneRun, RankSummary, StepSketch, Unread, one_run};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};
use common::MadeRank;
use proptest::prelude::*;

/// Diagnosed once: properties ask for it thousands of times.
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
    let told = RankedAs { rank, world_size: Some(4), backend: None, origin: RankOrigin::DistributedInfo };
    RankSummary { rank: Some(told), path: path.to_owned(), ..base() }
}

/// Ranks, hosts and paths from few values, so that they meet.
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
    fn what_is_saved_comes_back(fleet in any_fleet()) {
        let text = serde_json::to_string(&fleet.answer(None)).unwrap();
        prop_assert_eq!(Fleet::parse(&text).unwrap(), fleet.clone());
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

/// What merge is given by mistake is kept and said, but no rank is measured against it.
#[test]
fn a_summary_of_something_else_is_in_no_figure() {
    let mut other = RankSummary { rank: None, path: "other.json".to_owned(), ..base() };
    other.time.span_ms = 9_000.0;
    let ranks = [0, 1, 2].map(|rank| ranked(rank, "a"));
    let answer = Fleet::of(ranks.into_iter().chain([other])).answer(None);
    assert_eq!((answer.ranks.len(), answer.others.len(), answer.stragglers.len()), (3, 1, 0));
    assert!(answer.statement.starts_with("3 of 4 ranks: "), "{}", answer.statement);
    assert_eq!(answer.limitations[0], "Not taken for ranks of this run: other.json (no rank told).");
}

#[test]
fn what_is_no_summary_is_refused_with_a_sentence() {
    let why = |text: &str| Fleet::parse(text).unwrap_err().to_string();
    assert!(why("[1, 2").starts_with("is no summary of a rank: "));
    assert_eq!(
        why(r#"{"schema": "busbound.diagnosis/1"}"#),
        "is no summary of a rank: its schema is busbound.diagnosis/1; `busbound summarize` writes busbound.rank/1"
    );
    assert_eq!(
        why(r#"{"traceEvents": []}"#),
        "is no summary of a rank but something else; `busbound summarize` makes one of a trace"
    );
}

#[test]
fn ranks_of_one_run_are_told_by_evidence() {
    let apart = |list: &[RankSummary]| one_run(list).unwrap_err();
    let unranked = RankSummary { rank: None, path: "other.json".to_owned(), ..base() };
    let told = one_run(&[ranked(1, "b"), unranked.clone(), ranked(0, "a")]).unwrap();
    assert_eq!((told.members, told.others), (vec![0, 2], vec![1]));
    assert_eq!(told.left_out.as_deref(), Some("Not taken for ranks of this run: other.json (no rank told)."));
    assert_eq!(told.evidence, "by the ranks that their traces tell");
    let mut named = [ranked(0, "a"), ranked(1, "b")];
    for rank in &mut named {
        rank.rank.as_mut().unwrap().origin = RankOrigin::FileName;
        rank.rank.as_mut().unwrap().world_size = None;
    }
    assert_eq!(one_run(&named).unwrap().evidence, "by the ranks in their names");
    let not = |text: &str| NotOneRun(text.to_owned());
    assert_eq!(
        apart(&[unranked.clone(), unranked.clone()]),
        not("none tells its rank, neither in the trace nor by its name")
    );
    assert_eq!(apart(&[unranked, ranked(0, "a")]), not("only one of them tells its rank"));
    assert_eq!(apart(&[ranked(0, "a"), ranked(0, "b")]), not("rank 0 is told by a and b"));
    // One rank of many told twice is left out; the others are a run all the same.
    let several = [ranked(0, "a"), ranked(1, "b"), ranked(2, "c"), ranked(2, "d")];
    let told = one_run(&several).unwrap();
    assert_eq!((told.members, told.others), (vec![0, 1], vec![2, 3]));
    assert_eq!(
        told.left_out.as_deref(),
        Some("Not taken for ranks of this run: c, d (a rank that another file tells too).")
    );
    let mut larger = ranked(1, "b");
    larger.rank.as_mut().unwrap().world_size = Some(8);
    assert_eq!(apart(&[ranked(0, "a"), larger]), not("they are of jobs of different sizes, 4 and 8 ranks"));
}
