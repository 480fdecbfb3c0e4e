//! The help of `top`'s screen: keys, and what colors mean. Drawn over the figures.

use busbound_machine::live::Limits;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};

use crate::text::top::percent;

/// A figure near its limit, and one at it.
pub(super) const NEAR: Style = Style::new().fg(Color::Yellow);
pub(super) const FULL: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// From this share of a link's peak or of a GPU's memory on, there is nothing left.
pub(super) const AT_LIMIT: f64 = 0.97;

/// What the help is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    Hidden,
    Live,
    /// A log can be stopped and searched.
    Replay,
}

const ALWAYS: &[(&str, &str)] = &[("?", "show or hide this help"), ("q, Esc, Ctrl-C", "quit")];
const REPLAY: &[(&str, &str)] = &[
    ("space", "pause, or go on"),
    ("← →", "one interval back or ahead"),
    ("↓ ↑, Page", "ten intervals back or ahead"),
    ("Home End", "first or last interval"),
];

pub(super) fn draw(help: Help, limits: &Limits, area: Rect, buffer: &mut Buffer) {
    let keys: Vec<&(&str, &str)> = match help {
        Help::Hidden => return,
        Help::Live => ALWAYS.iter().collect(),
        Help::Replay => REPLAY.iter().chain(ALWAYS).collect(),
    };
    let mut lines: Vec<Line<'_>> =
        keys.iter().map(|(key, does)| Line::raw(format!(" {key:<15} {does} "))).collect();
    lines.push(Line::raw(""));
    lines.push(Line::styled(
        format!(
            " near the limit: link {}, memory {}, clock lowered ",
            percent(limits.bus_share),
            percent(limits.memory_above)
        ),
        NEAR,
    ));
    lines.push(Line::styled(
        format!(" at the limit: link or memory {}, clock lowered by heat or hardware ", percent(AT_LIMIT)),
        FULL,
    ));
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 2;
    let place = centered(area, width, lines.len() as u16 + 2);
    Clear.render(place, buffer);
    let block = Block::bordered().title(" Help ");
    let inside = block.inner(place);
    block.render(place, buffer);
    for (row, line) in (0..inside.height).zip(lines) {
        line.render(Rect { y: inside.y + row, height: 1, ..inside }, buffer);
    }
}

fn centered(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
