//! The screen of `busbound top`, drawn from a log.

use crate::common::hostile_top::hostile;
use crate::common::replayed::replayed;
use busbound_machine::live::{GpuLost, GpuNow, History, Limits, RankWindow, Snapshot};
use busbound_report::{Dashboard, Help, draw_dashboard};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

fn screen(snapshots: &[Snapshot], width: u16, height: u16) -> String {
    drawn(snapshots, width, height, Help::Hidden).to_string()
}

fn drawn(snapshots: &[Snapshot], width: u16, height: u16, help: Help) -> TestBackend {
    let mut history = History::of(600);
    snapshots.iter().for_each(|snapshot| history.see(snapshot));
    let snapshot = snapshots.last().unwrap();
    let limits = Limits::default();
    let note = "every 1 s · live";
    let dashboard = Dashboard { snapshot, history: &history, note, limits: &limits, help };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw_dashboard(&dashboard, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().clone()
}

/// The colors of a text on the screen; `None` if it is not there.
fn color_of(screen: &TestBackend, text: &str) -> Option<Vec<Color>> {
    let buffer = screen.buffer();
    (0..buffer.area.height).find_map(|y| {
        let row: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        let at = row.find(text)?;
        let start = row[..at].chars().count();
        let columns = start..start + text.chars().count();
        let mut colors: Vec<Color> = columns.map(|x| buffer[(x as u16, y)].fg).collect();
        colors.dedup();
        Some(colors)
    })
}

#[test]
fn figures_near_their_limit_have_a_color() {
    let snapshots = replayed();
    let screen = drawn(&snapshots, 140, 40, Help::Hidden);
    // 85% of the link, 94% of the memory, clocks lowered by the power limit.
    assert_eq!(color_of(&screen, "to the device  47.1 GB/s   85%"), Some(vec![Color::Yellow]));
    assert_eq!(color_of(&screen, "141.8 of 150.8 GB used"), Some(vec![Color::Yellow]));
    assert_eq!(color_of(&screen, "SM 1965 of 1980 MHz (power limit)"), Some(vec![Color::Yellow]));
    // Nothing is wrong with an idle GPU.
    assert_eq!(color_of(&screen, "0.6 of 150.8 GB used"), Some(vec![Color::Reset]));
    assert_eq!(color_of(&screen, "SM 345 of 1980 MHz (idle)"), Some(vec![Color::Reset]));
    assert_eq!(color_of(&screen, "busy 36%, memory busy 18%"), Some(vec![Color::Reset]));
    let mut hot = snapshots;
    let gpu = &mut hot.last_mut().unwrap().gpus[0];
    gpu.throttled_by = Some(vec!["thermal limit (hardware)".to_owned()]);
    gpu.bus.to_device_share = Some(0.98);
    let screen = drawn(&hot, 140, 40, Help::Hidden);
    assert_eq!(color_of(&screen, "(thermal limit (hardware))"), Some(vec![Color::Red]));
    assert_eq!(color_of(&screen, "47.1 GB/s   98%"), Some(vec![Color::Red]));
    // One line per GPU has them too.
    let screen = drawn(&with_gpus(&hot, 8), 80, 12, Help::Hidden);
    assert_eq!(color_of(&screen, "47.1 GB/s to the device (98%)"), Some(vec![Color::Red]));
}

#[test]
fn help_is_drawn_over_the_figures() {
    let snapshots = replayed();
    let replay = drawn(&snapshots, 80, 24, Help::Replay);
    let shown = replay.to_string();
    for words in
        [" Help ", "space           pause, or go on", "one interval back or ahead", "first or last interval"]
    {
        assert!(shown.contains(words), "no {words:?}: {shown}");
    }
    // The figures around it stay.
    assert!(shown.contains("The bus is near its peak") && shown.contains("? help · q quits"), "{shown}");
    assert_eq!(color_of(&replay, "near the limit: link 70%, memory 90%"), Some(vec![Color::Yellow]));
    assert_eq!(color_of(&replay, "at the limit: link or memory 97%"), Some(vec![Color::Red]));
    let live = drawn(&snapshots, 80, 24, Help::Live).to_string();
    assert!(live.contains("show or hide this help") && !live.contains("pause"), "{live}");
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
fn a_lost_gpu_is_one_line_and_ranks_leave_room_for_warnings() {
    let mut snapshots = replayed();
    let last = snapshots.last_mut().unwrap();
    last.gpus[1] = GpuNow { index: 1, lost: Some(GpuLost::GpuIsLost), ..GpuNow::default() };
    let many: Vec<RankWindow> =
        (0..500).map(|rank| RankWindow { rank: Some(rank), ..last.windows[0].clone() }).collect();
    last.windows = many;
    let text = screen(&snapshots, 100, 40);
    assert!(text.contains("GPU 1 is lost. The bus is near its peak"), "{text}");
    assert!(text.contains("GPU 1  unknown name  lost: NVML reports that the GPU is lost"), "{text}");
    assert!(
        text.contains("rank 0: Transfer-bound 10 min ago, step 9.90 s (+219% in 60 min), transfer 66%"),
        "{text}"
    );
    assert!(
        text.contains("more ranks. Last windows: 500 ranks transfer-bound.") && text.contains("! GPU 0"),
        "{text}"
    );
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
            drawn(&snapshots, width, height, Help::Replay);
        }
    }
}
