//! One snapshot of the bus as Markdown.

use std::fmt::Write;

use busbound_machine::live::Snapshot;

use super::{grid, headline, inline, item};
use crate::text::{top as text, windows};

/// One interval as a Markdown document.
pub(crate) fn top_as_markdown(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(snapshot));
    item(&mut out, &format!("interval: {}", text::interval(snapshot)));
    for gpu in &snapshot.gpus {
        let mut about = vec![text::name(gpu), text::link(gpu)];
        about.extend(text::details(gpu));
        let about = about.join("; ");
        item(&mut out, &format!("GPU {}: {about}", gpu.index));
    }
    for (file, beat) in text::training(snapshot) {
        item(&mut out, &format!("training: {beat} ({file})"));
    }
    for window in &snapshot.windows {
        item(&mut out, &windows::line(window));
    }
    if !snapshot.gpus.is_empty() {
        grid(&mut out, &text::overview(snapshot));
    }
    let processes = text::processes(snapshot);
    if !processes.rows.is_empty() {
        grid(&mut out, &processes);
    }
    if !snapshot.signs.is_empty() {
        out.push('\n');
    }
    for sign in &snapshot.signs {
        let (said, next) = text::sign(sign);
        let _ = writeln!(out, "- **Warning:** {} {}", inline(&said), inline(&next));
    }
    out
}
