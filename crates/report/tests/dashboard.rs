//! The screen of `busbound top`, drawn from a log.

#![expect(clippy::unwrap_used, reason = "a test should panic at the first error")]

#[path = "common/hostile_top.rs"]
mod hostile_top;
#[path = "common/paths.rs"]
mod paths;
#[path = "common/replayed.rs"]
mod replays;

use busbound_machine::live::{GpuNow, History, Snapshot};
use busbound_report::{Dashboard, draw_dashboard};
use hostile_top::hostile;
use paths::fixture_path;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use replays::replayed;

fn screen(snapshots: &[Snapshot], width: u16, height: u16) -> String {
    let mut history = History::of(600);
    snapshots.iter().for_each(|snapshot| history.see(snapshot));
    let snapshot = snapshots.last().unwrap();
    let dashboard = Dashboard { snapshot, history: &history, note: "every 1 s · live" };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw_dashboard(&dashboard, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().to_string()
}

/// The snapshots with `count` copies of the first GPU.
fn with_gpus(snapshots: &[Snapshot], count: u32) -> Vec<Snapshot> {
    let mut snapshots = snapshots.to_vec();
    for snapshot in &mut snapshots {
        let first = snapshot.gpus[0].clone();
        snapshot.gpus = (0..count).map(|index| GpuNow { index, ..first.clone() }).collect();
    }
    snapshots
}

#[test]
fn the_screen_at_two_sizes() {
    let snapshots = replayed();
    insta::assert_snapshot!("top_80x24", screen(&snapshots, 80, 24));
    insta::assert_snapshot!("top_140x40", screen(&snapshots, 140, 40));
    // A single GPU without warnings leaves room for its processes.
    let mut one = snapshots[..12].to_vec();
    one.iter_mut().for_each(|snapshot| snapshot.gpus.truncate(1));
    insta::assert_snapshot!("top_one_gpu_80x24", screen(&one, 80, 24));
    insta::assert_snapshot!("top_eight_gpus_80x24", screen(&with_gpus(&snapshots, 8), 80, 24));
}

#[test]
fn a_log_cannot_move_the_cursor() {
    let text = screen(&[hostile()], 140, 60);
    assert!(!text.contains('\u{1b}') && text.contains("[2J"), "{text}");
}

/// No window is too small to draw in.
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
