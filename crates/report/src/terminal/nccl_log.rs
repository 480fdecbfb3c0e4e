//! A log of NCCL on the terminal.

use busbound_machine::nccl_log::NcclLog;

use super::{hanging, headline, rows};
use crate::text::nccl_log as text;

/// What NCCL connected, `width` columns wide.
pub(crate) fn nccl_log_as_terminal(log: &NcclLog, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(log), width);
    for (name, value) in text::facts(log) {
        hanging(&mut out, &format!("  {name:<13} "), &value, width);
    }
    let connections = text::connections(log);
    if !connections.is_empty() {
        out.push('\n');
        rows(&mut out, &text::TITLES, &connections, width);
    }
    out.push('\n');
    for remark in &log.remarks {
        hanging(&mut out, "  ! ", &remark.text, width);
        hanging(&mut out, "    → ", &remark.remedy, width);
    }
    for note in text::rest(log).iter().chain(&log.warnings) {
        hanging(&mut out, "  · ", note, width);
    }
    out.push('\n');
    out
}
