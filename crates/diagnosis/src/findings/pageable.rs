//! Do copies start from, or end in, pageable memory? And were some meant to be asynchronous?

use busbound_trace::{Direction, EventKind, MemoryKind};
use serde_json::json;

use super::recipes::uses_loader;
use super::{Draft, Saving, times_of};
use crate::activity::copies::{Copy, expected_ns};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::{call_times, idle_beside_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds, plural};

/// Smaller copies are bound by their call and not by staging.
const SMALLEST: u64 = 64 << 10;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let pageable = |direction: Direction| {
        facts.issued_copies().filter(move |copy| {
            copy.transfer.direction == direction
                && copy.host_memory() == Some(MemoryKind::Pageable)
                && copy.bytes().is_some_and(|bytes| bytes >= SMALLEST)
        })
    };
    let (in_name_only, blocking): (Vec<_>, Vec<_>) =
        pageable(Direction::HostToDevice).partition(|copy| is_asynchronous_in_name_only(facts, copy));
    let back: Vec<_> = pageable(Direction::DeviceToHost).collect();
    let mut drafts = Vec::new();
    drafts.extend(draft(facts, &blocking, Sort::Blocking));
    drafts.extend(draft(facts, &in_name_only, Sort::InNameOnly));
    drafts.extend(draft(facts, &back, Sort::Back));
    drafts
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Blocking,
    InNameOnly,
    Back,
}

/// Asked for with `non_blocking=True`, or put on a stream of its own, and yet the call waited.
fn is_asynchronous_in_name_only(facts: &Facts<'_>, copy: &Copy<'_>) -> bool {
    if copy.blocked.get() == 0 {
        return false;
    }
    let Some(call) = copy.call else { return false };
    let operator = facts.trace.track(call.track_id()).enclosing(call.start(), |event| {
        event.kind() == EventKind::Operator && event.copy_operator().is_some()
    });
    match operator.and_then(|operator| operator.copy_operator()?.non_blocking) {
        Some(flag) => flag,
        None => !facts.kernels_on_stream.contains_key(&(copy.device, copy.stream)),
    }
}

fn draft(facts: &Facts<'_>, copies: &[&Copy<'_>], sort: Sort) -> Option<Draft> {
    let first = copies.first()?;
    let steps = facts.steps();
    let total: f64 = copies.iter().map(|copy| copy.event.duration().as_millis()).sum();
    if total < 0.01 * facts.time.span_ms {
        return None;
    }
    let moved: u64 = copies.iter().filter_map(|copy| copy.bytes()).sum();
    let pinned: f64 = copies.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6;
    let exposed = facts.exposed_ms(copies.iter().copied());
    let blocked: f64 = copies.iter().map(|copy| copy.blocked.as_millis()).sum();
    let calls = call_times(copies.iter().filter_map(|copy| copy.call));
    let staging = idle_beside_ms(&facts.gaps, GapCause::Copy, &calls);
    let faster = (total - pinned).max(0.0);
    // Hidden copies cost nothing, so no more than the exposed time can be won; what stays exposed
    // at the pinned rate stays.
    let (low, high) = match sort {
        // Its own stream and events are there already: pinned, it hides behind compute.
        Sort::InNameOnly if pinned < facts.time.compute_ms => (0.85 * exposed.min(faster), exposed + staging),
        _ => (0.85 * faster.min(exposed), (faster + staging).min(exposed + staging)),
    };
    if high < 0.01 * facts.time.span_ms {
        return None;
    }
    let reused = largest_share_of_one_size(copies);
    let per_copy = moved / copies.len() as u64;
    let gbps = moved as f64 / 1e6 / total;
    let origin = first.call.map(|call| facts.host.around(&call)).unwrap_or_default();
    let (place, under) = (origin.describe(), origin.clause());
    let unit = facts.unit();
    let from = if sort == Sort::Back { "to" } else { "from" };
    let held = if blocked > 0.0 {
        format!(", each holding the host for {}", milliseconds(blocked / copies.len() as f64))
    } else {
        String::new()
    };
    let seen = format!(
        "{} of {} a {unit} {from} pageable memory at {gbps:.1} GB/s{under}{held}; pinned memory reaches {:.1} GB/s on {}.",
        plural((copies.len() as f64 / steps).round().max(1.0) as u64, "copy", "copies"),
        bytes(per_copy),
        moved as f64 / 1e6 / pinned,
        facts.link.name,
    );
    let pin = if sort == Sort::Back {
        "Copy into a buffer made once with torch.empty(…, pin_memory=True), with non_blocking=True, and wait for an event before reading it."
    } else if uses_loader(facts) {
        "DataLoader(…, pin_memory=True), then batch.to(device, non_blocking=True)."
    } else {
        "Pin the buffers once, where they are made (buf = buf.pin_memory()), and keep them."
    };
    let (id, title, fix) = match sort {
        Sort::Blocking => ("pageable_copies", "Copies from pageable memory".to_owned(), pin.to_owned()),
        Sort::Back => ("pageable_d2h", "Copies back to pageable memory".to_owned(), pin.to_owned()),
        Sort::InNameOnly => (
            "non_blocking_pageable",
            "non_blocking copies from pageable memory are not asynchronous".to_owned(),
            format!("{pin} The copy stream and its events then work as they were meant to."),
        ),
    };
    Some(Draft {
        at: times_of(copies),
        id,
        title,
        seen,
        evidence: json!({
            "copies": copies.len(),
            "copies_per_step": copies.len() as f64 / steps,
            "bytes": moved,
            "gbps": gbps,
            "pinned_gbps": moved as f64 / 1e6 / pinned,
            "ms_per_step": total / steps,
            "exposed_ms_per_step": exposed / steps,
            "host_blocked_ms_per_step": blocked / steps,
            "host_staging_idle_ms_per_step": staging / steps,
            "share_of_the_commonest_size": reused,
            "place": place,
        }),
        precondition: "The same host buffer serves many steps: pinning a buffer for one copy costs more than it saves.",
        saves: Saving { low: (low / steps).min(high / steps), high: high / steps },
        basis: "bound: copy time at the link's pinned rate for these sizes, as far as the copies were exposed",
        fix,
    })
}

/// Copies of one size over all: near 1 where the same buffers are sent again and again.
fn largest_share_of_one_size(copies: &[&Copy<'_>]) -> f64 {
    let mut sizes: Vec<_> = copies.iter().filter_map(|copy| copy.bytes()).collect();
    sizes.sort_unstable();
    let longest = sizes.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
    longest as f64 / copies.len() as f64
}
