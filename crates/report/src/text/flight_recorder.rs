//! The text of flight recorder dumps: which collectives ran, and which did not finish.

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_machine::flight_recorder::{Behind, FlightRecorder, RecordedCollective, State, Unfinished};

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
    let behind = read.behind.first().map_or(String::new(), |behind| format!(" {}", late(behind)));
    format!("{recorded} of {ranks}, {open}.{behind}")
}

/// Who issued less than the others.
pub(crate) fn late(behind: &Behind) -> String {
    let ranks: Vec<String> = behind.ranks.iter().take(LISTED).map(u32::to_string).collect();
    let more = if behind.ranks.len() > LISTED { " and others" } else { "" };
    let one = behind.ranks.len() == 1;
    format!(
        "{} {}{more} issued {} collectives of {}, others {}: look at what {} did instead.",
        if one { "Rank" } else { "Ranks" },
        ranks.join(", "),
        count(behind.issued),
        behind.group,
        count(behind.furthest),
        if one { "it" } else { "they" },
    )
}

/// Collectives that had not finished, oldest first.
pub(crate) fn unfinished(read: &FlightRecorder) -> Vec<String> {
    let one = |open: &Unfinished| {
        let state = if open.state == State::Started { "started" } else { "queued" };
        let place = open.place.as_ref().map_or(String::new(), |place| format!(", from {place}"));
        format!(
            "rank {}: {} number {} of {}, {}, {state}{place}",
            open.rank,
            open.operation,
            open.sequence,
            open.group,
            bytes(open.bytes)
        )
    };
    let mut all: Vec<String> = read.unfinished.iter().take(LISTED).map(one).collect();
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
