//! What a program gained from staged copies, on the terminal.

use busbound_diagnosis::Trial;

use super::{hanging, headline, rows};
use crate::text::trial as text;

/// The comparison, `width` columns wide.
pub(crate) fn trial_as_terminal(trial: &Trial, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(trial), width);
    out.push('\n');
    rows(&mut out, &text::TITLES, &text::table(trial), width);
    out.push('\n');
    hanging(&mut out, "  time      ", &text::basis(trial), width);
    if trial.threads > 0 {
        hanging(&mut out, "  threads   ", &format!("{} per process copy", trial.threads), width);
    }
    for next in text::next(trial) {
        hanging(&mut out, "  next      ", &next, width);
    }
    out.push('\n');
    out
}
