//! Flight recorder dumps as Markdown.

use busbound_diagnosis::flight::late_ranks;
use busbound_machine::flight_recorder::FlightRecorder;

use super::{headline, item, rows};
use crate::text::flight_recorder as text;

/// The collectives of all ranks, as a Markdown document.
pub(crate) fn flight_recorder_as_markdown(read: &FlightRecorder) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(read));
    rows(&mut out, &text::TITLES, &text::collectives(read));
    out.push('\n');
    for behind in read.behind.iter().skip(1) {
        item(&mut out, &late_ranks(behind));
    }
    for open in text::unfinished(read) {
        item(&mut out, &open);
    }
    if let Some(note) = text::note(read) {
        item(&mut out, note);
    }
    out
}
