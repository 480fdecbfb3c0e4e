//! Do bytes come down and go straight up again?

use std::collections::{BTreeMap, BTreeSet};

use busbound_cause::{Resource, WorkNode};
use busbound_trace::{Direction, EventId, Interval, IntervalSet, Nanos, Timestamp};
use serde_json::json;

use super::common::copies::{bytes_moved, times_of};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Data copied down and straight up again",
    doing: "keeping the data on the GPU",
    precondition: "What goes up is what came down. A trace shows sizes, not contents.",
    basis: "bound: exposed time of these copies",
    candidate: Candidate::None(
        "`resident=N%` keeps what is copied up on the GPU. Which of the copies down the host needs, the trace does not show.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "D2H copies are followed at once by H2D copies of the same sizes, with no kernel and no time between them in which \
                  the host could change that much data. This looks like arrays that a loop copies to the GPU and back in every \
                  iteration, such as `map(tofrom:)` of OpenMP or `copy` of OpenACC around a kernel, although they could stay there.",
        computed: "Evidence: copies of 64 KiB or more, of which at least 90% of the bytes in both directions are in groups: D2H \
                   copies, then H2D copies of the same sizes, without a kernel in between; the time between these copies is \
                   shorter than the host needs to read the bytes at 100 GB/s; at least three groups, one per step, and at least 5% of the time exposed. Tensors \
                   that autograd saves on the host do not count. Where blocks are \
                   exchanged for others of the same size, the trace may look the same. Saving: at most their exposed time. While this \
                   is open, no overlap of copies with kernels is promised: an upload that needs the download before it cannot \
                   start earlier.",
        fix: "Copy up once before the loop, and down once after it: `target data` in OpenMP, `data` in OpenACC, tensors that stay on \
              the GPU in PyTorch.",
        code: &[],
        assumes: "Nothing on the host reads or changes the data in between. A trace shows sizes, not contents.",
    },
};

const SMALLEST: u64 = 64 << 10;
/// Share of the bytes in both directions.
const MOST: f64 = 0.9;
const FEWEST: usize = 3;
const MOST_PER_STEP: f64 = 1.2;
const WORTH_IT: f64 = 0.05;
/// Bytes per nanosecond that no host reads and writes.
const HOST_READS: f64 = 100.0;

/// Copies down, and the copies up that follow them.
struct Group<'f, 'a> {
    down: Vec<&'f Copy<'a>>,
    up: Vec<&'f Copy<'a>>,
}

impl Group<'_, '_> {
    fn sizes(copies: &[&Copy<'_>]) -> BTreeMap<u64, usize> {
        let mut sizes = BTreeMap::new();
        for copy in copies {
            *sizes.entry(copy.bytes().unwrap_or(0)).or_default() += 1;
        }
        sizes
    }

    /// Whether the same bytes may go down and up, and the host has no time to change them.
    fn is_round_trip(&self, facts: &Facts<'_>) -> bool {
        let ends = self.down.iter().map(|copy| (copy.event.end(), copy.device)).max();
        let begins = self.up.iter().map(|copy| copy.event.start()).min();
        let (Some((end, device)), Some(begin)) = (ends, begins) else { return false };
        if end > begin || Self::sizes(&self.down) != Self::sizes(&self.up) {
            return false;
        }
        let between = Interval::new(end, begin);
        let computes = |line: &DeviceTimeline| line.device == device && line.compute.touches(between);
        let moved = bytes_moved(&self.down, Direction::DeviceToHost) as f64;
        (self.host_is_free(end).get() as f64) < moved / HOST_READS && !facts.timelines.iter().any(computes)
    }

    /// The time after the last copy down in which the host issues no copy up, and none runs.
    fn host_is_free(&self, from: Timestamp) -> Nanos {
        let spans = self.up.iter().flat_map(|copy| [Some(copy.event), copy.call]).flatten();
        let copying = IntervalSet::from_unsorted(spans.map(|event| event.interval()));
        let last = self.up.iter().map(|copy| copy.event.end()).max().unwrap_or(from);
        Interval::new(from, last).length() - copying.length_within(Interval::new(from, last))
    }
}

/// Copies of tensors that autograd saved on the host: they came down to make room.
fn brought_back(facts: &Facts<'_>) -> BTreeSet<EventId> {
    let graph = &facts.graph;
    let unpacks = |work: &&WorkNode| work.call().is_some_and(|call| graph.calls[call].is_unpacking());
    graph.work.iter().filter(unpacks).map(|work| work.event).collect()
}

/// The copies over the bus in order, in groups of copies down and the copies up after them.
fn groups<'f, 'a>(facts: &'f Facts<'a>) -> Vec<Group<'f, 'a>> {
    let brought_back = brought_back(facts);
    let is_large = |copy: &&Copy<'_>| {
        copy.is_on_bus()
            && copy.bytes().is_some_and(|bytes| bytes >= SMALLEST)
            && !brought_back.contains(&copy.event.id())
    };
    let mut copies: Vec<&Copy<'a>> = facts.issued_copies().filter(is_large).collect();
    copies.sort_by_key(|copy| (copy.device, copy.event.start(), copy.event.id()));
    let mut all: Vec<Group<'f, 'a>> = Vec::new();
    for copy in copies {
        let is_up = copy.transfer.direction == Direction::HostToDevice;
        match all.last_mut() {
            Some(group) if is_up => group.up.push(copy),
            Some(group) if group.up.is_empty() => group.down.push(copy),
            _ if is_up => all.push(Group { down: Vec::new(), up: vec![copy] }),
            _ => all.push(Group { down: vec![copy], up: Vec::new() }),
        }
    }
    all
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let groups = groups(facts);
    let moved = |groups: &mut dyn Iterator<Item = &Group<'_, '_>>| -> u64 {
        let both = groups.flat_map(|group| group.down.iter().chain(&group.up));
        both.filter_map(|copy| copy.bytes()).fold(0, u64::saturating_add)
    };
    let found: Vec<&Group<'_, '_>> = groups.iter().filter(|group| group.is_round_trip(facts)).collect();
    let (all, again) = (moved(&mut groups.iter()), moved(&mut found.iter().copied()));
    // More of them in a step look like blocks that are exchanged for others of the same size.
    let are_several = found.len() as f64 > MOST_PER_STEP * facts.gpu_steps();
    if found.len() < FEWEST || are_several || (again as f64) < MOST * all as f64 {
        return None;
    }
    let copies: Vec<&Copy<'_>> =
        found.iter().flat_map(|group| group.down.iter().chain(&group.up)).copied().collect();
    let exposed = facts.exposed_ms(copies.iter().copied());
    if exposed < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let (steps, per) = (facts.gpu_steps(), facts.unit().per());
    Some(Draft {
        title: None,
        seen: format!(
            "{} come down{per} and go up again at once, in the same sizes and with no time for the host to change them: {} exposed{per}.",
            bytes((again as f64 / 2.0 / steps) as u64),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "bytes_down_and_up_per_step": again as f64 / 2.0 / steps,
            "share_of_bytes": again as f64 / all as f64,
            "copies": copies.len(),
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving { low: 0.0, high: exposed / steps },
        fix: Fix::new(
            "If this is the same data, keep it on the GPU: copy it up once before the loop, and down once after it. Then no copy can be prefetched, because each upload needs the download before it.",
        ),
        at: times_of(&copies),
    })
}
