//! `busbound top` from a log: the table, Markdown, metrics and lines.

use crate::common;

use crate::common::hostile_top::hostile;
use crate::common::replayed::replayed;
use crate::common::shown;
use busbound_machine::live::{Log, Snapshot};
use busbound_report::{Format, Report, Style, top_as_lines};

#[test]
fn the_last_interval_as_a_table_and_as_markdown() {
    let snapshots = replayed();
    let last = snapshots.last().unwrap();
    insta::assert_snapshot!("top_terminal", shown(last, Format::Terminal));
    insta::assert_snapshot!("top_markdown", shown(last, Format::Markdown));
    insta::assert_snapshot!("top_prometheus", shown(last, Format::Prometheus));
    for width in [60, 80, 100, 140] {
        let text = last.render(Format::Terminal, &Style { width, color: false, verbose: true }).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
    }
}

#[test]
fn the_documented_schema_is_up_to_date() {
    common::check_schema("top", &schemars::schema_for!(Snapshot));
}

#[test]
fn unknown_values_are_shown_as_unknown_not_as_zero() {
    let snapshots = replayed();
    let unknown = &snapshots[12];
    let text = shown(unknown, Format::Terminal);
    assert!(text.contains("100% of the time unknown"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("GPU 0")).unwrap();
    assert!(row.contains("–") && !row.contains("B/s"), "{row}");
    let metrics = shown(unknown, Format::Prometheus);
    assert!(
        !metrics.contains("rx_bytes_per_second{gpu=\"0\"")
            && metrics.contains("rx_bytes_per_second{gpu=\"1\"")
    );
    let mut alone = unknown.clone();
    alone.gpus.truncate(1);
    let markdown = shown(&alone, Format::Markdown);
    assert!(markdown.starts_with("**Bus traffic is unknown for this interval"), "{markdown}");
}

#[test]
fn a_log_cannot_move_the_cursor() {
    let snapshot = hostile();
    for text in [
        shown(&snapshot, Format::Terminal),
        shown(&snapshot, Format::Markdown),
        top_as_lines(&snapshot, None),
    ] {
        assert!(!text.contains('\u{1b}') && text.contains("[2J"), "{text}");
    }
}

#[test]
fn a_log_of_the_replay_equals_the_log_and_warnings_are_shown_once() {
    let snapshots = replayed();
    let text: String = snapshots.iter().map(|one| shown(one, Format::Json)).collect();
    assert_eq!(Log::parse(&text).unwrap().snapshots, snapshots);
    let mut before = None;
    let mut lines = String::new();
    for snapshot in &snapshots {
        lines += &top_as_lines(snapshot, before);
        before = Some(snapshot);
    }
    assert_eq!(lines.matches(" ! ").count(), 4, "{lines}");
    assert_eq!(lines.matches(" rank 0: Transfer-bound, step 9.90 s").count(), 1, "{lines}");
}

/// Both directions near their peak used to be two lines with the same labels, which no scraper accepts.
#[test]
fn every_series_is_listed_once() {
    let mut snapshot = replayed().into_iter().find(|snapshot| !snapshot.signs.is_empty()).unwrap();
    let again = snapshot.signs.clone();
    snapshot.signs.extend(again);
    let metrics = shown(&snapshot, Format::Prometheus);
    let series: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
    let unique: std::collections::BTreeSet<&str> = series.iter().copied().collect();
    assert_eq!(series.len(), unique.len(), "{metrics}");
}
