//! What does a dump of PyTorch's flight recorder say about a trace? Which collectives never ended, and how large they are where the trace
//! does not say so.

use busbound_machine::flight_recorder::{Behind, FlightRecorder, RecordedCollective, State, Unfinished};

use crate::quantity::{bytes, count};

/// Ranks that are listed, and collectives.
const LISTED: usize = 8;
const SHOWN: usize = 3;

/// Who issued less than the others.
pub fn late_ranks(behind: &Behind) -> String {
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

/// A collective that had not finished.
pub fn unfinished_collective(open: &Unfinished) -> String {
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
}

/// What the dumps say beside the trace of this rank; `sizes` asks for the sizes of collectives.
pub fn beside_trace(dumps: &FlightRecorder, rank: Option<u32>, sizes: bool) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    all.extend(no_dump_of(dumps, rank));
    all.extend(never_ended(dumps, rank));
    all.extend(dumps.behind.iter().map(late_ranks));
    all.extend(sizes.then(|| sizes_of(dumps)).flatten());
    all
}

fn no_dump_of(dumps: &FlightRecorder, rank: Option<u32>) -> Option<String> {
    let rank = rank?;
    let is_known = dumps.ranks.iter().any(|dump| dump.rank == rank);
    (!is_known).then(|| {
        format!("The flight recorder's dumps are of other ranks than this trace, which is of rank {rank}.")
    })
}

/// Those of the trace's own rank come first.
fn never_ended(dumps: &FlightRecorder, rank: Option<u32>) -> Option<String> {
    let mut open: Vec<&Unfinished> = dumps.unfinished.iter().collect();
    open.sort_by_key(|one| Some(one.rank) != rank);
    let listed: Vec<String> = open.iter().take(SHOWN).map(|one| unfinished_collective(one)).collect();
    let more = open.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {} more", count(more as u64)) } else { String::new() };
    (!open.is_empty()).then(|| {
        format!(
            "When the flight recorder was dumped, {} had not ended ({}{more}): what the run did then is not in this trace, unless it was recorded until the end.",
            if open.len() == 1 { "a collective".to_owned() } else { format!("{} collectives", count(open.len() as u64)) },
            listed.join("; "),
        )
    })
}

fn sizes_of(dumps: &FlightRecorder) -> Option<String> {
    let mut largest: Vec<&RecordedCollective> = dumps.collectives.iter().collect();
    largest.sort_by_key(|one| std::cmp::Reverse((one.bytes, one.count)));
    let one = |one: &&RecordedCollective| {
        format!("{} of {}, {}, {}x", one.operation, one.group, bytes(one.bytes), count(one.count))
    };
    let listed: Vec<String> = largest.iter().take(SHOWN).map(one).collect();
    (!listed.is_empty()).then(|| {
        format!(
            "The trace has no sizes of collectives. The largest in the flight recorder's dumps, over all their ranks: {}.",
            listed.join("; ")
        )
    })
}
