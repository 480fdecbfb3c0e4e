//! One snapshot of the bus on the terminal.

use busbound_machine::live::{Sign, Snapshot};

use super::{columns, hanging, headline};
use crate::text::top as text;

/// One interval as a table, `width` columns wide.
pub(crate) fn top_as_terminal(snapshot: &Snapshot, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(snapshot), width);
    columns(&mut out, &text::overview(snapshot), width);
    out.push('\n');
    for gpu in &snapshot.gpus {
        let head = format!("  {:<9} ", format!("GPU {}", gpu.index));
        hanging(&mut out, &head, &format!("{}, {}", text::name(gpu), text::link(gpu)), width);
        for detail in text::details(gpu) {
            hanging(&mut out, "            ", &detail, width);
        }
    }
    hanging(&mut out, "  interval  ", &text::interval(snapshot), width);
    let processes = text::processes(snapshot);
    if !processes.rows.is_empty() {
        out.push('\n');
        columns(&mut out, &processes, width);
    }
    let training = text::training(snapshot);
    if !training.is_empty() {
        out.push('\n');
    }
    for (file, beat) in training {
        hanging(&mut out, "  training  ", &format!("{beat} ({file})"), width);
    }
    if !snapshot.signs.is_empty() {
        out.push('\n');
    }
    for sign in &snapshot.signs {
        let (said, next) = text::sign(sign);
        hanging(&mut out, "  ! ", &said, width);
        hanging(&mut out, "    → ", &next, width);
    }
    out.push('\n');
    out
}

/// One line per GPU, for a pipe that is read line by line, and one per warning that is not among the `known` ones.
pub fn top_as_lines(snapshot: &Snapshot, known: &[Sign]) -> String {
    let mut out = String::new();
    for line in text::lines(snapshot) {
        super::line(&mut out, &line);
    }
    let is_same = |a: &Sign, b: &Sign| (a.id, a.gpu, &a.file) == (b.id, b.gpu, &b.file);
    for sign in snapshot.signs.iter().filter(|sign| !known.iter().any(|before| is_same(before, sign))) {
        super::line(&mut out, &format!("{} ! {}", text::at(snapshot), text::sign(sign).0));
    }
    out
}
