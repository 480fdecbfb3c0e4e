//! When did this rank arrive at collectives, and what did it do before each? With an identity that all ranks share, so that
//! the same collective is found in the trace of every rank.
//!
//! A few hundred are kept, chosen by the hash of their identity: every rank keeps the same ones.

use std::collections::BTreeMap;

use busbound_cause::idle::GapCause;
use busbound_trace::{Event, EventId, EventKind, Interval, IntervalSet, NameId, Nanos, Place, Timestamp};
use serde::{Deserialize, Serialize};

use crate::activity::collectives::{CollectiveRun, ON_HOST};
use crate::analysis::breakdown::{DeviceParts, Part};
use crate::analysis::facts::{Facts, gaps_of};

/// Collectives of one rank, in time order; all lists have the same length. Times are nanoseconds on its own clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectiveTimes {
    /// Collectives per step that all ranks have to arrive at.
    pub per_step: f64,
    /// What identifies the collective on all ranks: process group, number, operation and size, hashed.
    pub keys: Vec<u64>,
    /// Ranks in its process group.
    pub group_sizes: Vec<u32>,
    pub starts_ns: Vec<i64>,
    pub durations_ns: Vec<i64>,
    /// What the device did between the previous collective and this one: compute. Without a device, operators on the host.
    pub compute_ns: Vec<i64>,
    /// Exposed copies.
    pub copy_ns: Vec<i64>,
    /// Idle while the host waited for input.
    pub input_ns: Vec<i64>,
    /// Idle for any other reason. Without a device, everything outside of operators and input.
    pub idle_ns: Vec<i64>,
}

/// Collectives kept of each rank: 60 bytes each in JSON.
const KEPT: usize = 256;
/// JSON numbers are exact up to here.
const KEY_BITS: u64 = (1 << 53) - 1;

impl CollectiveTimes {
    pub fn len(&self) -> usize {
        let lists = [
            &self.starts_ns,
            &self.durations_ns,
            &self.compute_ns,
            &self.copy_ns,
            &self.input_ns,
            &self.idle_ns,
        ];
        let shortest = lists.iter().map(|list| list.len()).min().unwrap_or(0);
        shortest.min(self.keys.len()).min(self.group_sizes.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Every collective that has an identity, by time. Empty if the trace has several devices, or numbers neither its collectives
/// nor its steps.
pub(crate) fn keyed(facts: &Facts<'_>) -> Vec<(EventId, u64)> {
    if facts.timelines.len() != 1 {
        return Vec::new();
    }
    let mut runs: Vec<&CollectiveRun<'_>> =
        facts.collectives.iter().filter(|run| run.op.synchronizes() && run.message.is_some()).collect();
    runs.sort_by_key(|run| (run.event.start(), run.event.id()));
    numbered(runs.into_iter().filter_map(|run| Some((run.event.id(), identity(facts, run)?))))
}

/// The keys of collectives in time order: those that have the same identity are distinguished by their order.
fn numbered(identities: impl Iterator<Item = (EventId, u64)>) -> Vec<(EventId, u64)> {
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    let key = |(event, identity): (EventId, u64)| {
        let same = before.entry(identity).or_insert(0);
        let key = hash(identity, &same.to_le_bytes()) & KEY_BITS;
        *same += 1;
        (event, key)
    };
    identities.map(key).collect()
}

/// Collectives that a library carries out on the host, by step, name and order; no kernel belongs to them. Empty if the steps have no
/// numbers.
pub(crate) fn keyed_on_host(facts: &Facts<'_>) -> Vec<(EventId, u64)> {
    let is_collective = |event: &Event<'_>| {
        event.kind() == EventKind::Annotation
            && matches!(event.place(), Place::Thread { .. })
            && event.name().starts_with(ON_HOST)
    };
    let mut runs: Vec<Event<'_>> = facts.trace.events().filter(is_collective).collect();
    runs.sort_by_key(|run| (run.start(), run.id()));
    let identity = |run: Event<'_>| {
        let number = facts.window.number_of(facts.window.step_at(run.start())?, facts.trace)?;
        Some((run.id(), hash(hash(FIRST, run.name().as_bytes()), &number.to_le_bytes())))
    };
    numbered(runs.into_iter().filter_map(identity))
}

/// What collectives of one number have in common. Without a number, those of a step are distinguished by their order.
fn identity(facts: &Facts<'_>, run: &CollectiveRun<'_>) -> Option<u64> {
    let message = run.message?;
    let text = |name: NameId| facts.trace.names().get(name).as_bytes();
    let mut key = hash(FIRST, text(message.group));
    key = hash(key, text(message.group_ranks));
    key = hash(key, run.op.label().as_bytes());
    key = hash(key, &run.bytes.unwrap_or(0).to_le_bytes());
    let number = match message.sequence {
        Some(sequence) => sequence,
        None => facts.window.number_of(facts.window.step_of_work(&run.event)?, facts.trace)?,
    };
    Some(hash(key, &number.to_le_bytes()))
}

/// The first value of FNV-1a.
const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a with an end mark: the same on every machine, unlike the hashes of maps.
fn hash(start: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = bytes.iter().chain(&[0xff]).fold(start, step);
    // The low bits decide which are kept.
    hash ^ (hash >> 29)
}

/// Compute, exposed copies, waiting for input and other idle time within an interval.
type Before = [Nanos; 4];

/// What a rank does between its collectives.
enum Meantimes {
    Device(DeviceParts),
    /// Without a device: operators, and input. Copies are among the operators.
    Host {
        operators: IntervalSet,
        input: IntervalSet,
    },
}

impl Meantimes {
    fn of(facts: &Facts<'_>) -> Self {
        if let Some(timeline) = facts.timelines.first() {
            return Self::Device(DeviceParts::of(timeline, gaps_of(&facts.gaps, timeline.device)));
        }
        let on_host = |wanted: &dyn Fn(&Event<'_>) -> bool| {
            let events = facts.trace.events().filter(|event| matches!(event.place(), Place::Thread { .. }));
            IntervalSet::from_unsorted(events.filter(|event| wanted(event)).map(|event| event.interval()))
        };
        let input = on_host(&|event| facts.host.is_input(event.name_id()));
        // `c10d::allreduce_` lasts until the others have arrived.
        let operators =
            on_host(&|event| event.kind() == EventKind::Operator && !event.name().starts_with("c10d::"));
        Self::Host { operators: operators.difference(&input), input }
    }

    fn within(&self, time: Interval) -> Before {
        match self {
            Self::Device(parts) => {
                let times = parts.times_within(time);
                let is_input = |part: Part| part == Part::Idle(GapCause::Input);
                [
                    times.sum_of(|part| part == Part::Compute),
                    times.sum_of(Part::is_copy),
                    times.sum_of(is_input),
                    times.sum_of(|part| part.is_idle() && !is_input(part)),
                ]
            }
            Self::Host { operators, input } => {
                let (compute, input) = (operators.length_within(time), input.length_within(time));
                [compute, Nanos::ZERO, input, time.length() - compute - input]
            }
        }
    }
}

/// Of a trace with one device, or without any.
pub(crate) fn collective_times(facts: &Facts<'_>) -> CollectiveTimes {
    let mut all = keyed(facts);
    if all.is_empty() && facts.timelines.len() <= 1 {
        all = keyed_on_host(facts);
    }
    if all.is_empty() {
        return CollectiveTimes::default();
    }
    let world = facts.trace.origin().distributed.as_ref().and_then(|job| job.world_size).unwrap_or(0);
    let mut kept: Vec<u64> = all.iter().map(|(_, key)| *key).collect();
    kept.sort_unstable();
    let largest = kept.get(KEPT - 1).copied().unwrap_or(u64::MAX);
    let sizes: BTreeMap<EventId, u32> =
        facts.collectives.iter().filter_map(|run| Some((run.event.id(), run.message?.group_size?))).collect();
    let meantimes = Meantimes::of(facts);
    let mut times =
        CollectiveTimes { per_step: all.len() as f64 / facts.steps(), ..CollectiveTimes::default() };
    let first_work = match facts.timelines.first() {
        Some(timeline) => timeline.hull().map(|hull| hull.start),
        None => facts.window.starts.first().copied(),
    };
    let mut ended: Option<Timestamp> = None;
    for (id, key) in all {
        let event = facts.trace.event(id);
        if key <= largest {
            let since = ended.or(first_work).unwrap_or(event.start());
            let [compute, copy, input, idle] =
                meantimes.within(Interval::new(since.min(event.start()), event.start()));
            times.keys.push(key);
            times.group_sizes.push(sizes.get(&id).copied().unwrap_or(world));
            times.starts_ns.push(event.start().as_nanos());
            times.durations_ns.push(event.duration().get());
            times.compute_ns.push(compute.get());
            times.copy_ns.push(copy.get());
            times.input_ns.push(input.get());
            times.idle_ns.push(idle.get());
        }
        ended = Some(ended.map_or(event.end(), |known| known.max(event.end())));
    }
    times
}
