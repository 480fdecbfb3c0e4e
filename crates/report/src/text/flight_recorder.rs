//! The text of flight recorder dumps: which collectives ran, and which did not finish.

use busbound_diagnosis::flight::{late_ranks, unfinished_collective};
use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_machine::flight_recorder::{FlightRecorder, RecordedCollective};

use super::plural;

/// Collectives in the table, and unfinished ones in the list.
const ROWS: usize = 24;
const LISTED: usize = 8;

pub(crate) fn statement(read: &FlightRecorder) -> String {
    let ranks = plural(read.ranks.len() as u64, "rank", "ranks");
    let all: u64 = read.ranks.iter().map(|rank| rank.entries).sum();
    let recorded = plural(all, "collective", "collectives");
    let open = match read.unfinished.len() {
        0 => "all finished".to_owned(),
        n => format!("{} not finished", count(n as u64)),
    };
    let behind = read.behind.first().map_or(String::new(), |behind| format!(" {}", late_ranks(behind)));
    format!("{recorded} of {ranks}, {open}.{behind}")
}

/// Collectives that had not finished, oldest first.
pub(crate) fn unfinished(read: &FlightRecorder) -> Vec<String> {
    let mut all: Vec<String> = read.unfinished.iter().take(LISTED).map(unfinished_collective).collect();
    if read.unfinished.len() > LISTED {
        all.push(format!("{} more; --format json lists all", count((read.unfinished.len() - LISTED) as u64)));
    }
    all
}

pub(crate) const TITLES: [&str; 6] = ["collective", "group", "bytes", "count", "finished", "median"];

pub(crate) fn collectives(read: &FlightRecorder) -> Vec<Vec<String>> {
    let row = |one: &RecordedCollective| {
        vec![
            one.operation.clone(),
            one.group.clone(),
            bytes(one.bytes),
            count(one.count),
            count(one.finished),
            one.ms.map_or("–".to_owned(), milliseconds),
        ]
    };
    read.collectives.iter().take(ROWS).map(row).collect()
}

/// What the dumps do not say.
pub(crate) fn note(read: &FlightRecorder) -> Option<&'static str> {
    let has_times = read.collectives.iter().any(|one| one.ms.is_some());
    (!has_times).then_some("The dumps have no durations: TORCH_NCCL_ENABLE_TIMING=1 records them.")
}
