//! Flight recorder dumps on the terminal.

use busbound_diagnosis::flight::late_ranks;
use busbound_machine::flight_recorder::FlightRecorder;

use super::{hanging, headline, rows};
use crate::text::flight_recorder as text;

/// The collectives of all ranks, `width` columns wide.
pub(crate) fn flight_recorder_as_terminal(read: &FlightRecorder, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(read), width);
    rows(&mut out, &text::TITLES, &text::collectives(read), width);
    out.push('\n');
    for behind in read.behind.iter().skip(1) {
        hanging(&mut out, "  ! ", &late_ranks(behind), width);
    }
    for open in text::unfinished(read) {
        hanging(&mut out, "  ! ", &open, width);
    }
    if let Some(note) = text::note(read) {
        hanging(&mut out, "  · ", note, width);
    }
    out.push('\n');
    out
}
