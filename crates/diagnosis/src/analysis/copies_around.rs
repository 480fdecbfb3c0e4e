//! Which copies surround the collectives? With FSDP and CPU offload, a shard is copied to the GPU before its all-gather, and its
//! gradients are copied back after the reduce-scatter.

use std::collections::BTreeMap;

use busbound_cause::CollectiveOp;
use busbound_machine::median;
use busbound_trace::{Direction, Nanos};
use serde::Serialize;

use crate::activity::collectives::CollectiveRun;
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;

/// Copies of 1 MiB or more before and after collectives of one operation and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopiesAround {
    pub op: CollectiveOp,
    /// Bytes of one message; `null` if not recorded.
    pub bytes: Option<u64>,
    pub count: u64,
    /// H2D copies that end at most 10 ms before such a collective and before no other.
    pub before: NearCopies,
    /// D2H copies that begin at most 10 ms after such a collective and after no other.
    pub after: NearCopies,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearCopies {
    pub copies: u64,
    pub bytes: u64,
    /// Median time between copy and collective; `null` without copies.
    pub gap_ms: Option<f64>,
}

/// A copy this far from a collective belongs to it.
pub(super) const BELONGS_WITHIN: Nanos = Nanos::new(10_000_000);

/// Copies on one side of the collectives.
#[derive(Default)]
struct Side {
    bytes: u64,
    gaps_ms: Vec<f64>,
}

impl Side {
    fn add(&mut self, copy: &Copy<'_>, gap: Nanos) {
        self.bytes = self.bytes.saturating_add(copy.bytes().unwrap_or(0));
        self.gaps_ms.push(gap.as_millis());
    }

    fn finish(self) -> NearCopies {
        let copies = self.gaps_ms.len() as u64;
        NearCopies { copies, bytes: self.bytes, gap_ms: median(self.gaps_ms) }
    }
}

#[derive(Default)]
struct Around {
    count: u64,
    before: Side,
    after: Side,
}

/// Only collectives of which at least half have copies on one side: others are next to a copy by chance.
pub(crate) fn copies_around(facts: &Facts<'_>) -> Vec<CopiesAround> {
    let key = |run: &CollectiveRun<'_>| (run.op, run.bytes);
    let mut all: BTreeMap<(CollectiveOp, Option<u64>), Around> = BTreeMap::new();
    let mut by_device: BTreeMap<i32, Vec<&CollectiveRun<'_>>> = BTreeMap::new();
    for run in &facts.collectives {
        all.entry(key(run)).or_default().count += 1;
        by_device.entry(run.device).or_default().push(run);
    }
    by_device.values_mut().for_each(|runs| runs.sort_by_key(|run| (run.event.start(), run.event.id())));
    for copy in facts.issued_copies().filter(|copy| copy.is_large()) {
        let Some(runs) = by_device.get(&copy.device) else { continue };
        let time = copy.interval();
        match copy.transfer.direction {
            Direction::HostToDevice => {
                let next = runs.get(runs.partition_point(|run| run.event.start() < time.end));
                let gap = next.map(|run| run.event.start() - time.end).filter(|gap| *gap <= BELONGS_WITHIN);
                if let Some((run, gap)) = next.zip(gap) {
                    all.entry(key(run)).or_default().before.add(copy, gap);
                }
            }
            Direction::DeviceToHost => {
                let before = runs[..runs.partition_point(|run| run.event.start() < time.start)].iter();
                let last = before.rev().find(|run| run.event.end() <= time.start);
                let gap = last.map(|run| time.start - run.event.end()).filter(|gap| *gap <= BELONGS_WITHIN);
                if let Some((run, gap)) = last.zip(gap) {
                    all.entry(key(run)).or_default().after.add(copy, gap);
                }
            }
            _ => {}
        }
    }
    let is_usual = |side: &Side, count: u64| 2 * side.gaps_ms.len() as u64 >= count;
    all.into_iter()
        .filter(|(_, around)| is_usual(&around.before, around.count) || is_usual(&around.after, around.count))
        .map(|((op, bytes), Around { count, before, after })| CopiesAround {
            op,
            bytes,
            count,
            before: before.finish(),
            after: after.finish(),
        })
        .collect()
}
