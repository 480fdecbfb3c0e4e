//! The last window of each rank, as summaries arrive.

use std::path::Path;

use crate::common::MadeRank;
use busbound_diagnosis::{Options, Source, diagnose};
use busbound_fleet::{LiveRanks, RankSummary};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};

const MINUTE: i64 = 60_000;
/// Some time after 1970.
const START: i64 = 30_000_000 * MINUTE;

fn summary() -> RankSummary {
    let text = MadeRank::usual(0, 4).trace();
    let trace = read(text.as_bytes(), Path::new("rank-0.json"), &ReadOptions::default()).unwrap();
    let source = Source::named("rank-0.json");
    RankSummary::of(&diagnose(&trace, &source, &Machine::default(), &Options::default()))
}

/// Summaries at these minutes, without the time between them.
fn ranks(minutes: &[i64]) -> LiveRanks {
    let (mut ranks, summary) = (LiveRanks::default(), summary());
    for minute in minutes {
        let one = RankSummary { recorded_ms: Some(START + minute * MINUTE), ..summary.clone() };
        ranks.see("", &one).unwrap();
    }
    ranks
}

#[test]
fn the_time_between_windows_is_the_usual_one_if_summaries_do_not_say_it() {
    // Two windows are missing.
    let mut with_gaps = ranks(&[0, 10, 20, 30, 50, 70]);
    let window = with_gaps.windows(START + 85 * MINUTE).remove(0);
    assert_eq!((window.every_s, window.is_stale, window.age_s), (Some(600.0), false, Some(900.0)));
    assert!(with_gaps.windows(START + 91 * MINUTE).remove(0).is_stale);
    // With one window nothing is known.
    let window = ranks(&[0]).windows(START + 20 * 60 * MINUTE).remove(0);
    assert_eq!((window.every_s, window.is_stale), (None, false));
    assert!(ranks(&[0]).windows(START + 25 * 60 * MINUTE).is_empty());
}

#[test]
fn summaries_may_arrive_in_any_order_and_twice() {
    let ordered = ranks(&[0, 10, 60, 70]).windows(START + 75 * MINUTE);
    assert_eq!(ranks(&[70, 0, 70, 60, 10, 0]).windows(START + 75 * MINUTE), ordered);
    assert_eq!(ordered[0].change.as_ref().unwrap().before_s, 3600.0);
}

#[test]
fn what_is_older_than_needed_is_forgotten_and_the_comparison_stays() {
    let minutes: Vec<i64> = (0..2000).map(|i| i * 10).collect();
    let mut ranks = ranks(&minutes);
    let now = START + 19_991 * MINUTE;
    assert_eq!(ranks.windows(now)[0].change.as_ref().unwrap().before_s, 3600.0);
    assert_eq!(ranks.windows(now), ranks.windows(now));
    // Seven in the last hour, among them the one that is compared with.
    assert_eq!(format!("{ranks:?}").matches("recorded_unix_ms").count(), 7);
}

#[test]
fn a_clock_that_was_an_hour_ahead_hides_neither_the_last_window_nor_its_change() {
    // Three windows are dated an hour ahead, then the clock is set back.
    let mut ranks = ranks(&[0, 10, 80, 90, 100, 50, 60]);
    let window = ranks.windows(START + 65 * MINUTE).remove(0);
    assert_eq!((window.age_s, window.ahead_s), (Some(300.0), None));
    assert_eq!(window.change.unwrap().before_s, 3600.0);
    // A few seconds are no wrong clock.
    let near = ranks.windows(START + 60 * MINUTE - 3_000).remove(0);
    assert_eq!((near.recorded_unix_ms, near.age_s), (START + 60 * MINUTE, Some(0.0)));
    let early = ranks.windows(START - 60 * MINUTE).remove(0);
    assert_eq!((early.age_s, early.ahead_s), (None, Some(3600.0)));
}

#[test]
fn a_summary_without_a_date_is_an_error() {
    let why = LiveRanks::default().see("", &summary()).unwrap_err().to_string();
    assert!(why.contains("does not say when it was recorded"), "{why}");
}
