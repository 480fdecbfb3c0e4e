//! A history on the terminal.

use busbound_fleet::History;

use super::{hanging, headline, rows};
use crate::text::history as text;

/// The jobs and their changes, `width` columns wide.
pub(crate) fn history_as_terminal(history: &History, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(history), width);
    rows(&mut out, &text::TITLES, &text::jobs(history), width);
    out.push('\n');
    for change in text::changes(history) {
        hanging(&mut out, "  ! ", &change, width);
    }
    for note in text::notes(history) {
        hanging(&mut out, "  · ", &note, width);
    }
    hanging(&mut out, "  ", text::HOW, width);
    out.push('\n');
    out
}
