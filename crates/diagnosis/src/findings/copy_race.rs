//! Do copies on different streams touch the same memory with nothing that orders them?

use std::collections::BTreeMap;

use busbound_cause::{Origin, Race, Side, races};
use busbound_trace::{Event, Place, Timestamp};
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, count, milliseconds, printable};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Copies race for the same memory",
    doing: "ordering the streams with an event",
    precondition: "Kernels of the program do not signal each other through memory, which no recording shows.",
    basis: "none: this is about correct results, not about speed",
    candidate: Candidate::None(
        "A change of the order is not predicted: the finding is about correct results, not about speed.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[],
    check,
    document: Document {
        meaning: "Two copies or memsets on different streams touch the same bytes, at least one of them writes, and nothing makes the \
                  second wait for the first. Which of them comes first depends on timing, so results may be wrong now and then.",
        computed: "Evidence: recordings of `busbound record` have the addresses of copies and memsets (not of rows, batches, graphs or \
                   copies between GPUs), how their streams were created, and every event, wait and host sync; other traces do not. Reported if \
                   the second was issued while the first was not done, and no chain of stream order, recorded events, waits, host \
                   syncs or rules of the legacy default stream leads from the first to the second. Every doubt counts as an order: \
                   allocations and graph launches between the two, waits for events from before the recording, streams created before it, \
                   streams that wait for values in memory, semaphores or host functions. Nothing is reported for recordings with lost or \
                   sampled records. The memory that kernels read and write is not recorded: a missing wait between a copy and a kernel is \
                   not seen. Saving: none.",
        fix: "Make the second stream wait for the first: `stream.wait_stream(other)` or an event, before the second copy. Or copy to a \
              buffer of its own. In PyTorch, a tensor that was allocated on another stream also needs `tensor.record_stream(stream)`, or its memory \
              is reused while the copy runs.",
        code: &[ORDER],
        assumes: "Kernels of the program do not signal each other through memory, which no recording shows.",
    },
};

const ORDER: &str = "with torch.cuda.stream(copy_stream):\n    buffer.copy_(host, non_blocking=True)\n    done = copy_stream.record_event()\n...\ntorch.cuda.current_stream().wait_event(done)  # before anything else touches buffer";

/// Places that are listed.
const MOST_PLACES: usize = 5;

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let all = races(facts.trace, &facts.host);
    let first = *all.first()?;
    let begin = facts.trace.events().map(|event| event.start()).min()?;
    let places = |race: &Race| [race.first, race.second].map(|side| Operation::of(facts, side, begin));
    // A loop has the same race in every step: one entry for each pair of places.
    let mut pairs: BTreeMap<[Key; 2], (u64, Race)> = BTreeMap::new();
    for race in &all {
        pairs.entry(places(race).map(|one| one.key)).or_insert((0, *race)).0 += 1;
    }
    let [one, other] = places(&first);
    let mut others: Vec<&(u64, Race)> = pairs.values().filter(|(_, race)| *race != first).collect();
    others.sort_by_key(|(_, race)| facts.trace.event(race.second.work).start());
    let others: Vec<String> = others
        .iter()
        .take(MOST_PLACES)
        .map(|(times, race)| format!("{} ({} times)", sentence(&places(race), race.bytes), count(*times)))
        .collect();
    let times = if all.len() == 1 {
        String::new()
    } else {
        let (all, kinds) = (count(all.len() as u64), pairs.len());
        let places = if kinds == 1 { "pair of places" } else { "pairs of places" };
        format!(" {all} times in all, at {kinds} {places}.")
    };
    Some(Draft {
        title: None,
        seen: format!(
            "{}, before that is done, and nothing orders the two.{times} What kernels touch is not recorded.",
            sentence(&[one.clone(), other.clone()], first.bytes)
        ),
        evidence: json!({
            "pairs": all.len(),
            "both_bytes": first.bytes,
            "first_place": one.place,
            "first_stream": one.key.stream,
            "first_at_ms": one.at_ms,
            "first_bytes": one.bytes,
            "first_offset_bytes": one.offset,
            "second_place": other.place,
            "second_stream": other.key.stream,
            "second_at_ms": other.at_ms,
            "second_bytes": other.bytes,
            "second_offset_bytes": other.offset,
            "other_places": others,
        }),
        saves: Saving::NONE,
        fix: Fix::new(format!(
            "Make stream {} wait for stream {} before the second copy (wait_stream, or an event), or use another buffer. In PyTorch, also record_stream() for tensors of another stream.",
            other.key.stream, one.key.stream
        ))
        .code(ORDER),
        at: all.iter().flat_map(|race| [race.first, race.second]).map(|side| facts.trace.event(side.work).interval()).collect(),
    })
}

/// What is the same each time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    call: String,
    stream: i64,
    origin: Origin,
    writes: bool,
}

/// One of the two.
#[derive(Debug, Clone)]
struct Operation {
    key: Key,
    /// ``cudaMemcpyAsync on stream 13 at 12.3 ms by aten::copy_ under `step` ``.
    place: String,
    at_ms: f64,
    bytes: u64,
    offset: u64,
}

impl Operation {
    fn of(facts: &Facts<'_>, side: Side, begin: Timestamp) -> Self {
        let work = facts.trace.event(side.work);
        let call = facts.host.call_behind(&work);
        let origin = call.as_ref().map(|call| facts.host.around(call)).unwrap_or_default();
        let name = printable(call.as_ref().map_or(work.name(), Event::name));
        let stream = match work.place() {
            Place::Stream { stream, .. } => stream,
            Place::Thread { .. } => -1,
        };
        let at_ms = (call.as_ref().map_or(work.start(), Event::start) - begin).as_millis();
        let place = format!("{name} on stream {stream} at {}{}", milliseconds(at_ms), origin.clause());
        let bytes = work.transfer().and_then(|transfer| transfer.bytes).map_or(0, |bytes| bytes.get());
        Self {
            key: Key { call: name, stream, origin, writes: side.writes },
            place,
            at_ms,
            bytes,
            offset: side.offset,
        }
    }

    fn verb(&self) -> &'static str {
        if self.key.writes { "writes" } else { "reads" }
    }
}

/// What the two do to the same bytes.
fn sentence([first, second]: &[Operation; 2], both: u64) -> String {
    let part = |one: &Operation| match (one.offset, one.bytes) {
        (0, size) if size == both => "all of it".to_owned(),
        (offset, _) => format!("{} of it from byte {} on", bytes(both), count(offset)),
    };
    format!(
        "{} {} {}; {} {} the same memory ({})",
        first.place,
        first.verb(),
        bytes(first.bytes),
        second.place,
        second.verb(),
        part(first),
    )
}
