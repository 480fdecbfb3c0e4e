//! A log of torch.compile as Markdown.

use busbound_machine::compile_log::CompileLog;

use super::{headline, inline, item, rows};
use crate::text::compile_log as text;

/// Characters of a reason.
const LONGEST: usize = 200;

/// Where graphs break and functions are compiled again, as a Markdown document.
pub(crate) fn compile_log_as_markdown(log: &CompileLog) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(log));
    let (breaks, recompiled) = (text::breaks(log, LONGEST), text::recompiled(log, LONGEST));
    if !breaks.is_empty() {
        rows(&mut out, &text::BREAK_TITLES, &breaks);
    }
    if !recompiled.is_empty() {
        rows(&mut out, &text::RECOMPILED_TITLES, &recompiled);
    }
    out.push('\n');
    for limit in text::limits(log) {
        out.push_str(&format!("- **Warning:** {}\n", inline(&limit)));
    }
    for note in text::notes(log) {
        item(&mut out, &note);
    }
    out
}
