//! Who waited for what, and on which GPU? A wait names a stream and an event; the rest comes from other records.

use std::collections::{BTreeMap, BTreeSet};

use busbound_capture::format::UNKNOWN_STREAM;

use crate::interval::Interval;
use crate::model::builder::TraceBuilder;
use crate::model::kind::EventKind;
use crate::model::sync::{SyncKind, Synchronization};
use crate::model::time::Timestamp;
use crate::model::trace::Recorded;
use crate::model::track::{Place, TrackId};

/// One `cudaEventRecord`, in the order in which waits look it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EventRecord {
    event: u32,
    correlation: u32,
    stream: u32,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    time: Interval,
    correlation: u32,
    stream: i64,
    kind: SyncKind,
    event: u32,
}

/// Waits and event records, kept until the whole recording is read.
#[derive(Debug, Default)]
pub(super) struct Waits {
    event_records: Vec<EventRecord>,
    waits: Vec<Wait>,
}

impl Waits {
    /// `kind` uses CUPTI's numbering.
    pub(super) fn add(&mut self, time: Interval, correlation: u32, stream: i64, kind: u32, event: u32) {
        let kind = match kind {
            1 => SyncKind::EventSync,
            2 => SyncKind::StreamWaitEvent,
            3 => SyncKind::StreamSync,
            4 => SyncKind::ContextSync,
            _ => SyncKind::Unknown,
        };
        self.waits.push(Wait { time, correlation, stream, kind, event });
    }

    pub(super) fn add_event_record(&mut self, event: u32, correlation: u32, stream: u32) {
        self.event_records.push(EventRecord { event, correlation, stream });
    }

    /// Adds the waits to the trace, each with the last record of its event before the wait.
    pub(super) fn resolve(mut self, trace: &mut TraceBuilder) {
        self.event_records.sort_unstable();
        let devices = Devices::of(&trace.trace);
        for wait in &self.waits {
            let record = self.record_before(wait);
            let sync = Synchronization {
                kind: wait.kind,
                waits_on_stream: record
                    .filter(|record| record.stream != UNKNOWN_STREAM)
                    .map(|record| record.stream.into()),
                waits_on_record: record.map(|record| record.correlation.into()),
                waits_on_event: wait.kind.waits_for_event().then_some(wait.event.into()),
            };
            let track = trace.stream(devices.of_wait(wait), wait.stream);
            trace.synchronization(track, sync, wait.time).correlation(u64::from(wait.correlation));
        }
    }

    fn record_before(&self, wait: &Wait) -> Option<EventRecord> {
        let next = EventRecord { event: wait.event, correlation: wait.correlation, stream: 0 };
        let after = self.event_records.partition_point(|record| *record < next);
        let last = *self.event_records.get(after.checked_sub(1)?)?;
        (wait.kind.waits_for_event() && last.event == wait.event).then_some(last)
    }
}

/// The GPUs that waits may belong to. A wait does not name its GPU.
struct Devices {
    /// The only GPU with work, or the first one listed.
    usual: i32,
    /// The GPUs that have work on a stream with this number. Empty if one GPU did all the work.
    of_stream: BTreeMap<i64, BTreeSet<i32>>,
    /// What each thread launched, in time order: a waiting thread most likely waits for the GPU that it uses.
    launched: BTreeMap<TrackId, Vec<(Timestamp, i32)>>,
    /// The thread and time of each call that launched nothing, by correlation.
    others: BTreeMap<u64, (TrackId, Timestamp)>,
}

impl Devices {
    fn of(trace: &Recorded) -> Self {
        let mut of_stream: BTreeMap<i64, BTreeSet<i32>> = BTreeMap::new();
        let mut worked = BTreeMap::new();
        let events = &trace.events;
        let correlation = |row: usize| events.correlation.get(row);
        for row in (0..events.len()).filter(|row| events.kind[*row].is_gpu_work()) {
            if let Place::Stream { device, stream } = trace.tracks.get(events.track(row)) {
                of_stream.entry(stream).or_default().insert(device);
                worked.extend(correlation(row).map(|id| (id, device)));
            }
        }
        let used: BTreeSet<i32> = of_stream.values().flatten().copied().collect();
        let listed = trace.origin.gpus.first().map_or(0, |gpu| gpu.id);
        let usual = used.first().copied().filter(|_| used.len() == 1).unwrap_or(listed);
        let (mut launched, mut others) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        if used.len() > 1 {
            let is_call = |kind| matches!(kind, EventKind::RuntimeCall | EventKind::DriverCall);
            for row in (0..events.len()).filter(|row| is_call(events.kind[*row])) {
                let Some(id) = correlation(row) else { continue };
                let (thread, at) = (events.track(row), events.start[row]);
                match worked.get(&id) {
                    Some(&device) => {
                        launched.entry(thread).or_default().push((at, device));
                    }
                    None => {
                        others.insert(id, (thread, at));
                    }
                }
            }
            launched.values_mut().for_each(|list| list.sort_unstable());
        } else {
            of_stream.clear();
        }
        Self { usual, of_stream, launched, others }
    }

    fn of_wait(&self, wait: &Wait) -> i32 {
        let with_stream = self.of_stream.get(&wait.stream);
        match with_stream.map(|devices| (devices.len(), devices.first())) {
            Some((1, Some(&only))) => only,
            Some(_) => {
                self.of_caller(wait, |device| with_stream.is_some_and(|known| known.contains(&device)))
            }
            None => self.of_caller(wait, |_| true),
        }
    }

    /// The GPU that the waiting thread used last before the wait, or first after it.
    fn of_caller(&self, wait: &Wait, may_be: impl Fn(i32) -> bool) -> i32 {
        let used = self.others.get(&wait.correlation.into()).and_then(|(thread, at)| {
            let launched = self.launched.get(thread)?;
            let now = launched.partition_point(|(start, _)| start <= at);
            let (before, after) = launched.split_at(now);
            before.iter().rev().chain(after).map(|(_, device)| *device).find(|device| may_be(*device))
        });
        used.unwrap_or(self.usual)
    }
}
