//! A log of torch.compile on the terminal.

use busbound_machine::compile_log::CompileLog;

use super::{hanging, headline, rows};
use crate::text::compile_log as text;

/// Characters of a reason.
const LONGEST: usize = 44;

/// Where graphs break and functions are compiled again, `width` columns wide.
pub(crate) fn compile_log_as_terminal(log: &CompileLog, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(log), width);
    let (breaks, recompiled) = (text::breaks(log, LONGEST), text::recompiled(log, LONGEST));
    if !breaks.is_empty() {
        rows(&mut out, &text::BREAK_TITLES, &breaks, width);
        out.push('\n');
    }
    if !recompiled.is_empty() {
        rows(&mut out, &text::RECOMPILED_TITLES, &recompiled, width);
        out.push('\n');
    }
    let (limits, notes) = (text::limits(log), text::notes(log));
    for limit in &limits {
        hanging(&mut out, "  ! ", limit, width);
    }
    for note in &notes {
        hanging(&mut out, "  · ", note, width);
    }
    if !limits.is_empty() || !notes.is_empty() {
        out.push('\n');
    }
    out
}
