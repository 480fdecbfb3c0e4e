//! A history as Markdown.

use busbound_fleet::History;

use super::{headline, item, rows};
use crate::text::history as text;

/// The jobs and their changes, as a Markdown document.
pub(crate) fn history_as_markdown(history: &History) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(history));
    rows(&mut out, &text::TITLES, &text::jobs(history));
    out.push('\n');
    for change in text::changes(history) {
        item(&mut out, &change);
    }
    for note in text::notes(history) {
        item(&mut out, &note);
    }
    item(&mut out, text::HOW);
    out
}
