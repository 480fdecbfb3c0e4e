//! The text of a log of torch.compile: where graphs break, and why functions are compiled again.

use busbound_diagnosis::quantity::count;
use busbound_machine::compile_log::{CompileLog, GraphBreak, LimitReached, Recompiled, file_of};

use super::path::short;
use super::plural;

/// Rows of each table.
const ROWS: usize = 20;
/// Hints below the tables.
const HINTS: usize = 5;

pub(crate) fn statement(log: &CompileLog) -> String {
    let breaks = match log.graph_breaks {
        Some(0) => "no graph breaks".to_owned(),
        Some(n) => format!("graphs break at {}", plural(n, "place", "places")),
        None => "graph breaks unknown".to_owned(),
    };
    let recompiled = match log.recompilations {
        Some(0) => "no recompilations".to_owned(),
        Some(n) => plural(n, "recompilation", "recompilations"),
        None => "recompilations unknown".to_owned(),
    };
    let limits = match log.limits.len() as u64 {
        0 => String::new(),
        1 => "; 1 function is no longer compiled".to_owned(),
        n => format!("; {} functions are no longer compiled", count(n)),
    };
    format!("torch.compile: {breaks}, {recompiled}{limits}.")
}

pub(crate) const BREAK_TITLES: [&str; 3] = ["count", "graph break", "place"];
pub(crate) const RECOMPILED_TITLES: [&str; 4] = ["count", "failed guard", "function", "place"];

/// One row per place and reason. Reasons are cut where lines are short; `--format json` has all of each.
pub(crate) fn breaks(log: &CompileLog, longest: usize) -> Vec<Vec<String>> {
    let row = |one: &GraphBreak| vec![count(one.count), short(&one.reason, longest), place_of(one)];
    log.breaks.iter().take(ROWS).map(row).collect()
}

pub(crate) fn recompiled(log: &CompileLog, longest: usize) -> Vec<Vec<String>> {
    let row = |one: &Recompiled| {
        vec![
            count(one.count),
            short(one.guard(), longest),
            short(&one.function, longest / 2),
            file_of(&one.place).to_owned(),
        ]
    };
    log.recompiled.iter().take(ROWS).map(row).collect()
}

/// Functions that run without torch.compile.
pub(crate) fn limits(log: &CompileLog) -> Vec<String> {
    let line = |one: &LimitReached| {
        let (function, place, limit) = (&one.function, file_of(&one.place), &one.limit);
        format!("{function} at {place} reached {limit} and runs without torch.compile from then on.")
    };
    log.limits.iter().map(line).collect()
}

/// What PyTorch recommends, what is unknown, and what is not shown.
pub(crate) fn notes(log: &CompileLog) -> Vec<String> {
    let hint = |one: &GraphBreak| one.hint.as_ref().map(|hint| format!("{}: {hint}", place_of(one)));
    let mut notes: Vec<String> = log.breaks.iter().filter_map(hint).take(HINTS).collect();
    notes.dedup();
    let unknown = [(log.graph_breaks, "graph breaks"), (log.recompilations, "recompilations")];
    for (_, what) in unknown.iter().filter(|(number, _)| number.is_none()) {
        notes.push(format!(
            "Unknown: no {what} are in the log, and nothing in it says that they are logged. Begin it with a line that does: \
             echo TORCH_LOGS=$TORCH_LOGS, with TORCH_LOGS=graph_breaks,recompiles."
        ));
    }
    let printers = log.printers.len() as u64;
    if printers > 1 {
        notes.push(format!(
            "{} ranks or processes printed this log: a count is the sum of all, and the number of recompilations is that of \
             the one with the most.",
            count(printers)
        ));
    }
    let more = log.breaks.len().saturating_sub(ROWS) + log.recompiled.len().saturating_sub(ROWS);
    if more > 0 {
        notes.push(format!("{} more rows; --format json lists all.", count(more as u64)));
    }
    notes
}

fn place_of(one: &GraphBreak) -> String {
    one.place.as_deref().map_or("–", file_of).to_owned()
}
