//! Do kernels read their operands at the rate of the link to the host? Then these may be in host memory (UVA, zero-copy), which only the
//! link's counters prove, and most traces have none.

use std::collections::BTreeMap;

use busbound_cause::Time;
use busbound_machine::{LinkSource, gpu_of_name};
use busbound_trace::{EventId, NameId};

use crate::analysis::facts::Facts;

/// Kernels that read as slowly as if their operands crossed the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlowOperands {
    pub(crate) operators: usize,
    /// Over all steps.
    pub(crate) ms: f64,
    pub(crate) gbps: f64,
    /// Most of the time is spent under operators of this name.
    pub(crate) mostly: NameId,
    /// The operands of one of them.
    pub(crate) bytes: u64,
}

/// Shorter kernels are bound by their launch.
const LEAST_NS: Time = 20_000;
/// Kernels that read over the link reach at least this share of its peak; slower ones are slow for another reason.
const LEAST_OF_PEAK: f64 = 0.4;
/// A kernel below this multiple of the link's peak may read a part of its operands from the GPU's caches.
const MOST_OF_PEAK: f64 = 1.2;
/// Device memory that is not this much faster than the link gives no sign.
const DEVICE_IS_FASTER: f64 = 6.0;
/// Share of the time. Less is not worth a word.
const WORTH_IT: f64 = 0.05;

impl SlowOperands {
    /// `None` where counters of the link say what kernels read, and where sizes of operands were not recorded.
    pub(crate) fn of(facts: &Facts<'_>) -> Option<Self> {
        let peak = facts.link.peak_gbps;
        let has_counters = !facts.trace.link_traffic().is_empty();
        if has_counters || !facts.trace.has_operand_bytes() || !is_much_slower_than_the_device(facts) {
            return None;
        }
        let rate = |read: &Read| read.bytes as f64 / read.ns as f64;
        let mut slow = operators(facts);
        slow.retain(|_, read| (LEAST_OF_PEAK * peak..MOST_OF_PEAK * peak).contains(&rate(read)));
        let ns: Time = slow.values().map(|read| read.ns).sum();
        let bytes: u64 = slow.values().map(|read| read.bytes).sum();
        if (ns as f64) / 1e6 < WORTH_IT * facts.time.analyzed_ms {
            return None;
        }
        let longest = slow.iter().max_by_key(|(operator, read)| (read.ns, **operator))?;
        Some(Self {
            operators: slow.len(),
            ms: ns as f64 / 1e6,
            gbps: bytes as f64 / ns as f64,
            mostly: facts.trace.event(*longest.0).name_id(),
            bytes: longest.1.bytes,
        })
    }
}

/// Whether the rate of a kernel tells the link from the GPU's own memory.
fn is_much_slower_than_the_device(facts: &Facts<'_>) -> bool {
    let named = || facts.trace.origin().gpus.iter().find_map(|gpu| gpu_of_name(&gpu.name));
    let device = facts.stated_gpu.or_else(named);
    facts.link.source != LinkSource::Assumed
        && device.is_none_or(|gpu| gpu.memory_gbps >= DEVICE_IS_FASTER * facts.link.peak_gbps)
}

/// What an operator reads, and how long its kernels run.
#[derive(Debug, Clone, Copy)]
struct Read {
    bytes: u64,
    ns: Time,
}

fn operators(facts: &Facts<'_>) -> BTreeMap<EventId, Read> {
    let mut read: BTreeMap<EventId, Read> = BTreeMap::new();
    for work in
        facts.graph.work.iter().filter(|work| work.kind.is_kernel() && work.end - work.start >= LEAST_NS)
    {
        let Some(call) = work.call().map(|call| facts.trace.event(facts.graph.calls[call].event)) else {
            continue;
        };
        let track = facts.trace.track(call.track_id());
        let Some(operator) = track.enclosing(call.start(), |event| event.operand_bytes().is_some()) else {
            continue;
        };
        let bytes = operator.operand_bytes().map_or(0, |bytes| bytes.get());
        read.entry(operator.id()).or_insert(Read { bytes, ns: 0 }).ns += work.end - work.start;
    }
    read
}
