//! Do pinned copies take turns with the kernels they feed, because they share a stream or the host waits?

use busbound_trace::{Direction, MemoryKind};
use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds, plural};

const SMALLEST: u64 = 1 << 20;

/// Pinned copies on a stream that also runs kernels.
pub(super) fn serialised<'f, 'a>(facts: &'f Facts<'a>) -> Vec<&'f Copy<'a>> {
    let is = |copy: &&Copy<'_>| {
        copy.host_memory() == Some(MemoryKind::Pinned)
            && copy.bytes().is_some_and(|bytes| bytes >= SMALLEST)
            && facts.kernels_on_stream.contains_key(&(copy.device, copy.stream))
    };
    facts.issued_copies().filter(is).collect()
}

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let copies = serialised(facts);
    let Some(first) = copies.first() else { return Vec::new() };
    let steps = facts.steps();
    let exposed = facts.exposed_ms(copies.iter().copied());
    let total: f64 = copies.iter().map(|copy| copy.event.duration().as_millis()).sum();
    if exposed < 0.03 * facts.time.span_ms || exposed < 0.5 * total {
        return Vec::new();
    }
    let waited: f64 = copies.iter().map(|copy| (copy.waited_after + copy.blocked).as_millis()).sum();
    let per_step = copies.len() as f64 / steps;
    // At best kernels and the two directions of the link all run at once, and the longest of the
    // three sets the time; the first copy of a step has nothing to hide behind.
    let one_way = |way: Direction| -> f64 {
        let these = copies.iter().filter(|copy| copy.transfer.direction == way);
        these.map(|copy| copy.event.duration().as_millis()).sum()
    };
    let compute = facts.time.compute_ms;
    let longest = compute.max(one_way(Direction::HostToDevice)).max(one_way(Direction::DeviceToHost));
    let first_of_step = if per_step > 1.0 { (per_step - 1.0) / per_step } else { 1.0 };
    let high = exposed.min(compute + exposed - longest).max(0.0) * first_of_step;
    if high < 0.01 * facts.time.span_ms {
        return Vec::new();
    }
    let moved: u64 = copies.iter().filter_map(|copy| copy.bytes()).sum();
    let origin = first.call.map(|call| facts.host.around(&call)).unwrap_or_default();
    let (place, under) = (origin.describe(), origin.clause());
    let unit = facts.unit();
    let wait = if waited > 0.5 * total {
        format!(
            " The host waits for each ({} a {unit}), so nothing can be queued behind it.",
            milliseconds(waited / steps)
        )
    } else {
        String::new()
    };
    vec![Draft {
        at: times_of(&copies),
        id: "serialised_copies",
        title: "Pinned copies and compute take turns on one stream".to_owned(),
        seen: format!(
            "{} of {} a {unit} at {:.1} GB/s{under}, on the stream of the kernels: {} of {} with no kernel beside them.{wait}",
            plural(per_step.round().max(1.0) as u64, "copy", "copies"),
            bytes(moved / copies.len() as u64),
            moved as f64 / 1e6 / total,
            milliseconds(exposed / steps),
            milliseconds(total / steps),
        ),
        evidence: json!({
            "copies": copies.len(),
            "copies_per_step": per_step,
            "bytes": moved,
            "stream": first.stream,
            "kernels_on_stream": facts.kernels_on_stream.get(&(first.device, first.stream)),
            "ms_per_step": total / steps,
            "exposed_ms_per_step": exposed / steps,
            "host_waits_ms_per_step": waited / steps,
            "place": place,
        }),
        precondition: "What is copied is known before it is needed: the next layer's weights, the next batch.",
        saves: Saving { low: 0.4 * high / steps, high: high / steps },
        basis: "bound: exposed copy time that fits behind compute and behind copies of the other direction; the low end allows for a card that clocks down when it never waits",
        fix: "Give copies a stream of their own, one group ahead (with torch.cuda.stream(copy_stream): nxt = buf.to(device, \
              non_blocking=True); event.record()), and let compute wait for the event, not the host."
            .to_owned(),
    }]
}
