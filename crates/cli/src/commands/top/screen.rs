//! The full screen of `busbound top`: takes the terminal, and restores it whatever happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use busbound::machine::live::{History, Limits, Snapshot};
use busbound::report::{Dashboard, Help, draw_dashboard};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::widgets::Paragraph;

use super::NOTICE;
use super::controls::{Controls, Pressed};
use super::exports::Exports;
use super::feed::Feed;
use crate::args::top::TopArgs;
use crate::failure::Failure;

/// More intervals than a terminal has columns.
const REMEMBERED: usize = 600;
/// The first figures come before a whole interval has passed.
const FIRST: Duration = Duration::from_millis(250);

/// The terminal, restored on drop; on a panic by ratatui's hook.
struct Held(DefaultTerminal);

impl Drop for Held {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

pub(super) fn run(
    feed: &mut Feed,
    args: &TopArgs,
    exports: &Exports,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let interval = Duration::from_secs_f64(args.interval);
    let mut terminal = Held(ratatui::try_init().map_err(Failure::output_at("the terminal"))?);
    let mut history = History::of(REMEMBERED);
    let mut last: Option<Snapshot> = None;
    let mut deadline = Instant::now() + if feed.is_live() { FIRST.min(interval) } else { Duration::ZERO };
    let mut shown = 0;
    let mut controls = Controls::of(feed.is_live());
    while args.count.is_none_or(|count| shown < count) {
        let paused = if controls.is_paused { "paused · " } else { "" };
        let note = format!("{paused}every {} s · {}{}", args.interval, feed.describe(), exports.describe());
        let view = View { history: &history, note: &note, limits: feed.limits(), help: controls.help() };
        draw(&mut terminal.0, last.as_ref(), &view)?;
        match wait(deadline, stop, &mut controls) {
            Woken::Leave => return Ok(()),
            Woken::Seek(by) => {
                if let Some(so_far) = feed.seek(by) {
                    history = history_of(so_far);
                    last = so_far.last().cloned();
                }
                deadline = Instant::now() + interval;
                continue;
            }
            Woken::GoOn if controls.is_paused => {
                deadline = Instant::now() + interval;
                continue;
            }
            Woken::GoOn => {}
        }
        if Instant::now() < deadline {
            continue;
        }
        // A slow driver skips intervals, instead of shortening the next ones.
        deadline = (deadline + interval).max(Instant::now());
        // At the end of a log its last interval stays on the screen.
        if let Some(snapshot) = feed.next()? {
            history.see(&snapshot);
            exports.publish(&snapshot)?;
            last = Some(snapshot);
            shown += 1;
        }
    }
    Ok(())
}

/// The newest intervals of a log.
fn history_of(so_far: &[Snapshot]) -> History {
    let mut history = History::of(REMEMBERED);
    so_far.iter().skip(so_far.len().saturating_sub(REMEMBERED)).for_each(|snapshot| history.see(snapshot));
    history
}

/// What surrounds a snapshot.
struct View<'a> {
    history: &'a History,
    note: &'a str,
    limits: &'a Limits,
    help: Help,
}

fn draw(terminal: &mut DefaultTerminal, snapshot: Option<&Snapshot>, view: &View<'_>) -> Result<(), Failure> {
    let drawn = terminal.draw(|frame| match snapshot {
        Some(snapshot) => {
            let View { history, note, limits, help } = *view;
            let dashboard = Dashboard { snapshot, history, note, limits, help };
            draw_dashboard(&dashboard, frame.area(), frame.buffer_mut());
        }
        None => frame.render_widget(Paragraph::new("waiting for the first interval"), frame.area()),
    });
    drawn.map(|_| ()).map_err(Failure::output_at("the terminal"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Leave,
    /// That many intervals of a log ahead, or back.
    Seek(i64),
    /// The interval has passed, or the screen has to be drawn again.
    GoOn,
}

fn wait(deadline: Instant, stop: &AtomicBool, controls: &mut Controls) -> Woken {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Woken::Leave;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // Check for keys even if there is no time left to wait for them.
        match event::poll(left.min(NOTICE)) {
            Ok(false) if left.is_zero() => return Woken::GoOn,
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    match controls.press(key.code, key.modifiers) {
                        Pressed::Nothing => {}
                        Pressed::Leave => return Woken::Leave,
                        Pressed::Seek(by) => return Woken::Seek(by),
                        Pressed::Redraw => return Woken::GoOn,
                    }
                }
                Ok(Event::Resize(..)) => return Woken::GoOn,
                _ => {}
            },
            // Without a keyboard, signals still work.
            Err(_) if left.is_zero() => return Woken::GoOn,
            Err(_) => std::thread::sleep(left.min(NOTICE)),
        }
    }
}
