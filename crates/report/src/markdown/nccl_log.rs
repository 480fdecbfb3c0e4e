//! A log of NCCL as Markdown.

use busbound_machine::nccl_log::NcclLog;

use super::{headline, inline, item, rows};
use crate::text::nccl_log as text;

/// What NCCL connected, as a Markdown document.
pub(crate) fn nccl_log_as_markdown(log: &NcclLog) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(log));
    for (name, value) in text::facts(log) {
        item(&mut out, &format!("{name}: {value}"));
    }
    let connections = text::connections(log);
    if !connections.is_empty() {
        rows(&mut out, &text::TITLES, &connections);
    }
    out.push('\n');
    for remark in &log.remarks {
        out.push_str(&format!("- **Warning:** {} {}\n", inline(&remark.text), inline(&remark.remedy)));
    }
    for note in text::rest(log).iter().chain(&log.warnings) {
        item(&mut out, note);
    }
    out
}
