//! `busbound top` from a log: the table, Markdown, metrics and the screen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use busbound_machine::live::{History, Limits, Log, Snapshot, Watch};
use busbound_machine::{Machine, MachineProfile};
use busbound_report::{
    Dashboard, draw_dashboard, top_as_json_line, top_as_lines, top_as_markdown, top_as_prometheus,
    top_as_terminal,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

mod common;

/// The log of the fixtures, judged against the measured H200, with its signs.
fn replayed() -> Vec<Snapshot> {
    let text = std::fs::read_to_string(common::fixture_path("top/made.jsonl")).unwrap();
    let profile = std::fs::read_to_string(common::fixture_path("machines/h200.json")).unwrap();
    let machine = Machine::measured(MachineProfile::parse(&profile).unwrap());
    let mut watch = Watch::with(Limits::default());
    let mut snapshots = Log::parse(&text).unwrap().snapshots;
    for snapshot in &mut snapshots {
        snapshot.judge_against(&machine);
        snapshot.signs = watch.see(snapshot);
    }
    snapshots
}

fn screen(snapshots: &[Snapshot], width: u16, height: u16) -> String {
    let mut history = History::of(600);
    snapshots.iter().for_each(|snapshot| history.see(snapshot));
    let snapshot = snapshots.last().unwrap();
    let dashboard = Dashboard { snapshot, history: &history, note: "every 1 s · live" };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw_dashboard(&dashboard, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().to_string()
}

/// As many GPUs as that, all like the first.
fn with_gpus(snapshots: &[Snapshot], count: u32) -> Vec<Snapshot> {
    let mut snapshots = snapshots.to_vec();
    for snapshot in &mut snapshots {
        let first = snapshot.gpus[0].clone();
        snapshot.gpus =
            (0..count).map(|index| busbound_machine::live::GpuNow { index, ..first.clone() }).collect();
    }
    snapshots
}

#[test]
fn the_last_interval_as_a_table_and_as_markdown() {
    let snapshots = replayed();
    let last = snapshots.last().unwrap();
    insta::assert_snapshot!("top_terminal", common::plain(&top_as_terminal(last, 80)));
    insta::assert_snapshot!("top_markdown", top_as_markdown(last));
    insta::assert_snapshot!("top_prometheus", top_as_prometheus(last));
    for width in [60, 80, 100, 140] {
        let text = common::plain(&top_as_terminal(last, width));
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
    }
}

#[test]
fn the_documented_schema_is_what_is_written() {
    common::check_schema("top", &schemars::schema_for!(Snapshot));
}

#[test]
fn what_is_not_known_is_said_and_is_no_zero() {
    let snapshots = replayed();
    let unknown = &snapshots[12];
    let text = common::plain(&top_as_terminal(unknown, 80));
    assert!(text.contains("100 % of the time not known"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("GPU 0")).unwrap();
    assert!(row.contains("–") && !row.contains("B/s"), "{row}");
    let metrics = top_as_prometheus(unknown);
    assert!(
        !metrics.contains("rx_bytes_per_second{gpu=\"0\"")
            && metrics.contains("rx_bytes_per_second{gpu=\"1\"")
    );
    let mut alone = unknown.clone();
    alone.gpus.truncate(1);
    assert!(top_as_markdown(&alone).starts_with("**What the bus carried is not known for this interval"));
}

#[test]
fn the_screen_at_two_sizes() {
    let snapshots = replayed();
    insta::assert_snapshot!("top_80x24", screen(&snapshots, 80, 24));
    insta::assert_snapshot!("top_140x40", screen(&snapshots, 140, 40));
    // One quiet GPU has room for its processes.
    let mut one = snapshots[..12].to_vec();
    one.iter_mut().for_each(|snapshot| snapshot.gpus.truncate(1));
    insta::assert_snapshot!("top_one_gpu_80x24", screen(&one, 80, 24));
    insta::assert_snapshot!("top_eight_gpus_80x24", screen(&with_gpus(&snapshots, 8), 80, 24));
}

#[test]
fn a_log_cannot_move_the_cursor() {
    let mut snapshot = replayed().pop().unwrap();
    let evil = || "\u{1b}[2J\n".to_owned();
    snapshot.at = evil();
    snapshot.driver = Some(evil());
    snapshot.training[0].file = evil();
    let gpu = &mut snapshot.gpus[0];
    (gpu.name, gpu.throttled_by) = (Some(evil()), Some(vec![evil()]));
    gpu.processes.as_mut().unwrap()[0].name = Some(evil());
    snapshot.signs[0].evidence = evil();
    snapshot.signs[0].statement = evil();
    for text in [
        common::plain(&top_as_terminal(&snapshot, 80)),
        top_as_markdown(&snapshot),
        top_as_lines(&snapshot, &[]),
        screen(&[snapshot.clone()], 140, 60),
    ] {
        assert!(!text.contains('\u{1b}') && text.contains("[2J"), "{text}");
    }
}

/// Nobody's window is too small to be asked for.
#[test]
fn any_size_and_number_of_gpus_can_be_drawn() {
    let snapshots = replayed();
    for count in [0, 1, 2, 8, 17] {
        let snapshots = with_gpus(&snapshots, count);
        for (width, height) in [(1, 1), (2, 3), (10, 5), (31, 8), (33, 12), (80, 24), (300, 100)] {
            screen(&snapshots, width, height);
        }
    }
}

#[test]
fn a_log_of_the_replay_is_the_log_again_and_signs_are_told_once() {
    let snapshots = replayed();
    let text: String = snapshots.iter().map(|one| top_as_json_line(one).unwrap()).collect();
    assert_eq!(Log::parse(&text).unwrap().snapshots, snapshots);
    let mut known = Vec::new();
    let mut lines = String::new();
    for snapshot in &snapshots {
        lines += &top_as_lines(snapshot, &known);
        known.clone_from(&snapshot.signs);
    }
    assert_eq!(lines.matches(" ! ").count(), 4, "{lines}");
}
