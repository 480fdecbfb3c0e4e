//! What did host threads do? Annotations, operators and calls, nested.

use busbound_trace::{EventKind, IntervalSet, Label, Nanos, Place, Track};

use super::names::DrawnNames;
use super::rows::{Piece, Row};
use super::{GroupOf, Lane, LaneGroup, LaneKind};
use crate::analysis::facts::Facts;
use crate::quantity::plural;

/// Most threads drawn: those with the most recorded time.
const THREADS: usize = 6;
/// Most nesting levels drawn per thread.
const LEVELS: usize = 10;

/// The drawn threads, and the group of each.
pub(super) fn groups(
    facts: &Facts<'_>,
    names: &mut DrawnNames<'_>,
    notes: &mut Vec<String>,
) -> (Vec<Place>, Vec<LaneGroup>) {
    let mut threads: Vec<(Nanos, Track<'_>)> = facts
        .trace
        .threads()
        .filter(|track| !matches!(track.place(), Place::Thread { process: Label::Number(n), .. } if n < 0))
        .map(|track| {
            let drawn = track.events().filter(|event| is_drawn(event.kind()));
            (IntervalSet::from_unsorted(drawn.map(|event| event.interval())).length(), track)
        })
        .filter(|(recorded, _)| recorded.get() > 0)
        .collect();
    threads.sort_by_key(|(recorded, track)| (std::cmp::Reverse(*recorded), track.place()));
    if threads.len() > THREADS {
        let rest = threads.len() - THREADS;
        notes.push(format!(
            "Not drawn: {} with the least recorded time.",
            plural(rest as u64, "host thread", "host threads")
        ));
        threads.truncate(THREADS);
    }
    let mut too_deep = 0;
    let places = threads.iter().map(|(_, track)| track.place()).collect();
    let groups: Vec<LaneGroup> = threads
        .into_iter()
        .map(|(_, track)| LaneGroup {
            title: title(facts, &track),
            of: GroupOf::Thread,
            lanes: vec![Lane { sort: LaneKind::Host, rows: nested(&track, names, &mut too_deep) }],
        })
        .collect();
    if too_deep > 0 {
        notes.push(format!(
            "Not drawn: {} nested deeper than {LEVELS} levels.",
            plural(too_deep, "host event", "host events")
        ));
    }
    if facts.trace.events().any(|event| event.kind() == EventKind::PythonFrame) {
        notes.push("Not drawn: Python frames. `busbound export --to perfetto` shows them.".to_owned());
    }
    (places, groups)
}

fn is_drawn(kind: EventKind) -> bool {
    use EventKind::{Annotation, DriverCall, Operator, RuntimeCall};
    matches!(kind, Annotation | DriverCall | Operator | RuntimeCall)
}

fn title(facts: &Facts<'_>, track: &Track<'_>) -> String {
    let Place::Thread { process, thread } = track.place() else { return String::new() };
    let number = thread.display(facts.trace.names());
    match facts.trace.given_name(process, Some(thread)).map(crate::quantity::printable) {
        Some(name) if name.contains(&number) => format!("Host {name}"),
        Some(name) => format!("Host thread {number} ({name})"),
        None => format!("Host thread {number}"),
    }
}

fn nested(track: &Track<'_>, names: &mut DrawnNames<'_>, too_deep: &mut u64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut open: Vec<i64> = Vec::new();
    for event in track.events().filter(|event| is_drawn(event.kind())) {
        let (start, end) = (event.start().as_nanos(), event.end().as_nanos());
        while open.last().is_some_and(|until| *until <= start) {
            open.pop();
        }
        let level = open.len();
        open.push(end);
        if level >= LEVELS {
            *too_deep += 1;
            continue;
        }
        if rows.len() <= level {
            rows.resize_with(level + 1, Row::default);
        }
        let row = &mut rows[level].pieces;
        // Events without duration that start at the same time are drawn as one.
        if row.last().is_some_and(|last| last.start == start) {
            continue;
        }
        row.push(Piece::plain(start, end, names.event(event.name_id())));
    }
    rows
}
