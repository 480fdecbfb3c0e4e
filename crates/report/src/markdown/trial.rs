//! What a program gained from staged copies, as Markdown.

use busbound_diagnosis::Trial;

use super::{headline, item, rows};
use crate::text::trial as text;

/// The comparison as a Markdown document.
pub(crate) fn trial_as_markdown(trial: &Trial) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(trial));
    rows(&mut out, &text::TITLES, &text::table(trial));
    out.push('\n');
    item(&mut out, &format!("time: {}", text::basis(trial)));
    if trial.threads > 0 {
        item(&mut out, &format!("threads: {} per process copy", trial.threads));
    }
    for next in text::next(trial) {
        item(&mut out, &next);
    }
    out
}
