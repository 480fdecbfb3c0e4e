//! One snapshot of the bus on the terminal.

use busbound_machine::live::{RankWindow, Sign, Snapshot};

use super::{columns, hanging, headline};
use crate::text::{top as text, windows};

/// Ranks whose last window is shown.
const MOST_RANKS: usize = 32;

/// One interval as a table, `width` columns wide.
pub(crate) fn top_as_terminal(snapshot: &Snapshot, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(snapshot), width);
    if !snapshot.gpus.is_empty() {
        columns(&mut out, &text::overview(snapshot), width);
        out.push('\n');
    }
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
    ranks(&mut out, snapshot, width);
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

/// The last windows: what is fresh first, and no more than a screen.
fn ranks(out: &mut String, snapshot: &Snapshot, width: u16) {
    let all = windows::fresh_first(snapshot);
    for window in all.iter().take(MOST_RANKS) {
        super::line(out, "");
        super::line(out, &format!("  {}", windows::who(window)));
        for detail in windows::details(window) {
            hanging(out, "            ", &detail, width);
        }
    }
    if all.len() > MOST_RANKS {
        let more = all.len() - MOST_RANKS;
        hanging(out, "  ", &format!("… and {more} more ranks: --format json has all of them"), width);
    }
}

/// One line per GPU, for a pipe that is read line by line; and one per window and warning that was not there `before`.
pub fn top_as_lines(snapshot: &Snapshot, before: Option<&Snapshot>) -> String {
    let mut out = String::new();
    for line in text::lines(snapshot) {
        super::line(&mut out, &line);
    }
    // Otherwise the lines of the GPUs say that the interval is over.
    for (file, beat) in text::training(snapshot).iter().filter(|_| snapshot.gpus.is_empty()) {
        super::line(&mut out, &format!("{} training {beat} ({file})", text::at(snapshot)));
    }
    let (windows_before, signs_before) =
        before.map_or((&[][..], &[][..]), |before| (&before.windows[..], &before.signs[..]));
    let is_shown = |window: &RankWindow| {
        let key =
            |of: &RankWindow| (of.run.clone(), of.rank, of.process.clone(), of.recorded_unix_ms, of.is_stale);
        windows_before.iter().any(|before| key(before) == key(window))
    };
    for window in snapshot.windows.iter().filter(|window| !is_shown(window)) {
        super::line(&mut out, &format!("{} {}", text::at(snapshot), windows::line(window)));
    }
    let is_same = |a: &Sign, b: &Sign| (a.id, a.gpu, &a.file) == (b.id, b.gpu, &b.file);
    for sign in snapshot.signs.iter().filter(|sign| !signs_before.iter().any(|known| is_same(known, sign))) {
        super::line(&mut out, &format!("{} ! {}", text::at(snapshot), text::sign(sign).0));
    }
    out
}
