//! Where does the time of a step go? One bar, what its parts are, and what the step would take without each resource.

use anstyle::{AnsiColor, Style};
use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Bound, Diagnosis, FigureId, GapCause};

use super::wrap::columns_of;
use super::{columns, hanging};
use crate::text::{bounds, diagnosis as text, prize, step_time};

/// Columns of the bar, where there is room for them.
const BAR: usize = 60;
/// Columns of an entry below the bar that stays on one line of a terminal of 60 columns.
const LONGEST_ENTRY: usize = 50;

/// Where a step's time goes: one bar, and what its parts are.
pub(super) fn bar(out: &mut String, diagnosis: &Diagnosis, width: u16, with_free: bool) {
    let parts = text::fine_parts(diagnosis);
    let total: f64 = step_time::recorded_ms(diagnosis);
    if diagnosis.devices.is_empty() || total <= 0.0 {
        let copies = crate::text::copies::of_host(diagnosis);
        if !copies.rows.is_empty() {
            columns(out, &copies, width);
            out.push('\n');
        }
        return;
    }
    let recorded = if diagnosis.window.unprofiled.is_some() { " recorded" } else { "" };
    let head = format!("  {} {}{recorded}  ", diagnosis.unit(), milliseconds(total));
    let room = usize::from(width).saturating_sub(columns_of(&head)).min(BAR);
    out.push_str(&head);
    let mut left = room;
    for (figure, ms) in &parts {
        let (glyph, style) = look(*figure);
        let length = ((ms / total * room as f64).round() as usize).min(left);
        left -= length;
        out.push_str(&format!("{style}{}{style:#}", glyph.repeat(length)));
    }
    out.push('\n');
    unbroken(out, "  ", &legend(&parts, total), width);
    if with_free {
        if_free(out, diagnosis, width);
    }
    out.push('\n');
}

/// Wraps between entries, not within them.
fn unbroken(out: &mut String, head: &str, entries: &str, width: u16) {
    let mut lines = String::new();
    hanging(&mut lines, head, entries, width);
    out.push_str(&lines.replace('\u{a0}', " "));
}

/// What a step takes without the profiler, and what it would take without each resource.
fn if_free(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    // The headline has it where there is a prize.
    if prize::gain(diagnosis).is_none()
        && diagnosis.verdict.bound != Bound::Unknown
        && let Some(unprofiled) = step_time::unprofiled(diagnosis)
    {
        hanging(out, "  without the profiler ", &unprofiled, width);
    }
    if let Some(sentence) = bounds::without_kernels(diagnosis) {
        return hanging(out, "  ", &sentence, width);
    }
    let entries: Vec<String> = bounds::if_free(diagnosis).into_iter().map(glued).collect();
    if !entries.is_empty() {
        let head = glued("if it took no time:".to_owned());
        unbroken(out, "  ", &format!("{head}  {}", entries.join("\u{a0}· ")), width);
    }
}

/// Spaces that no line breaks at hold an entry together, unless it is longer than a line.
fn glued(text: String) -> String {
    if columns_of(&text) > LONGEST_ENTRY { text } else { text.replace(' ', "\u{a0}") }
}

/// What the parts of the bar are; idle time is one entry with its causes, the longest first.
fn legend(parts: &[(FigureId, f64)], total: f64) -> String {
    let rest = total - parts.iter().map(|(_, ms)| ms).sum::<f64>();
    let rest = (rest >= OTHER * total).then(|| glued(format!("other {}", text::share_of(rest, total))));
    let (busy, idle): (Vec<(FigureId, f64)>, Vec<_>) =
        parts.iter().copied().partition(|(figure, _)| figure.idle_cause().is_none());
    let busy = busy.iter().map(|part| entry_of(part, total));
    let entries: Vec<String> = busy.chain(rest).chain(idle_entry(&idle, total)).collect();
    entries.join("   ")
}

/// From this share on, the sum of the parts that are too small for the bar is worth an entry.
const OTHER: f64 = 0.01;

fn entry_of(&(figure, ms): &(FigureId, f64), total: f64) -> String {
    glued(format!("{} {} {}", look(figure).0, figure.label(), text::share_of(ms, total)))
}

/// One entry for all idle time, with its causes if there are several.
fn idle_entry(parts: &[(FigureId, f64)], total: f64) -> Option<String> {
    if let [] | [_] = parts {
        return parts.first().map(|part| entry_of(part, total));
    }
    let mut causes: Vec<(GapCause, f64)> =
        parts.iter().filter_map(|(figure, ms)| Some((figure.idle_cause()?, *ms))).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = causes.iter().map(|(_, ms)| ms).sum();
    // Small causes are for those who want all of it.
    let (listed, small): (Vec<_>, Vec<_>) =
        causes.iter().partition(|(_, ms)| *ms >= LEAST_CAUSE * sum || *ms >= LARGE_CAUSE * total);
    let named = |(cause, ms): &(GapCause, f64)| glued(format!("{} {}", cause.describe(), milliseconds(*ms)));
    let mut list: Vec<String> = listed.iter().map(named).collect();
    if !small.is_empty() {
        let rest: f64 = small.iter().map(|(_, ms)| ms).sum();
        list.push(glued(format!("rest {}", milliseconds(rest))));
    }
    let head = glued(format!("{IDLE} idle {}:", text::share_of(sum, total)));
    Some(format!("{head} {}", list.join(", ")))
}

/// A smaller share of the idle time is not listed, unless it is this share of the step.
const LEAST_CAUSE: f64 = 0.15;
const LARGE_CAUSE: f64 = 0.05;

/// How idle time is drawn.
const IDLE: &str = "░";

/// How a part of a step is drawn; glyphs differ for those who see no colors.
fn look(part: FigureId) -> (&'static str, Style) {
    let color = |color: AnsiColor| color.on_default();
    match part {
        FigureId::ComputeMs => ("█", color(AnsiColor::Green)),
        FigureId::ExposedCommMs => ("▓", color(AnsiColor::Blue)),
        FigureId::KernelWaitMs => ("▞", color(AnsiColor::Yellow)),
        FigureId::ExposedBusCopyMs => ("▒", color(AnsiColor::Yellow)),
        FigureId::ExposedPeerCopyMs => ("▀", color(AnsiColor::Yellow)),
        FigureId::ExposedDeviceCopyMs => ("▚", color(AnsiColor::Cyan)),
        FigureId::ExposedUnplacedCopyMs => ("▄", color(AnsiColor::Yellow)),
        FigureId::ExposedMemsetMs => ("▌", color(AnsiColor::Cyan)),
        _ => (IDLE, color(AnsiColor::Red)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_busy_part_of_the_bar_has_its_own_fill() {
        let busy = FigureId::PARTS.iter().filter(|part| part.idle_cause().is_none());
        let parts: Vec<FigureId> = busy.copied().chain([FigureId::KernelWaitMs]).collect();
        let fills: BTreeSet<&str> = parts.iter().map(|part| look(*part).0).chain([IDLE]).collect();
        assert_eq!(fills.len(), parts.len() + 1, "{fills:?}");
    }
}
