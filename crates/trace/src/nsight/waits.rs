//! Who waited for what? Synchronizations, joined to the event records they waited for.

use super::Reading;
use super::identity::Process;
use crate::hash::HashMap;
use crate::model::sync::{SyncKind, Synchronization};
use crate::model::track::Place;

/// Nsight's "none" for 32-bit numbers.
const NONE: i64 = 0xffff_ffff;

/// One `cudaEventRecord`, as waits refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    event: (Process, i64),
    correlation: i64,
    stream: i64,
}

#[derive(Debug, Default)]
pub(super) struct EventRecords {
    /// Ordered by event and call: an event is recorded many times.
    list: Vec<Record>,
    by_sync: HashMap<(Process, i64), Record>,
}

impl EventRecords {
    /// The record that a wait names explicitly, or else the last record of its event before the wait.
    fn find(&self, sync: Option<(Process, i64)>, event: Option<(Process, i64)>, at: i64) -> Option<Record> {
        if let Some(record) = sync.and_then(|sync| self.by_sync.get(&sync)) {
            return Some(*record);
        }
        let event = event?;
        let after = self.list.partition_point(|record| (record.event, record.correlation) < (event, at));
        let last = self.list.get(after.checked_sub(1)?)?;
        (last.event == event).then_some(*last)
    }
}

impl Reading<'_, '_> {
    pub(super) fn read_waits(&mut self) {
        self.read_event_records();
        const TABLE: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
        const COLUMNS: [&str; 10] = [
            "start",
            "end",
            "deviceId",
            "contextId",
            "streamId",
            "correlationId",
            "globalPid",
            "syncType",
            "eventId",
            "eventSyncId",
        ];
        self.each(TABLE, &COLUMNS, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            let Some(time) = reading.time(TABLE, row.integer(0), row.integer(1)) else { return };
            let id = row.integer(5);
            let process = reading.process_of(row.integer(6), id);
            let named = |number: Option<i64>| number.filter(|number| *number != NONE && *number >= 0);
            let (event, sync) = (named(row.integer(8)), named(row.integer(9)));
            let kind = match reading.enumerations.sync(row.integer(7).unwrap_or(0)) {
                // Nsight 2025.3 writes cudaStreamSynchronize this way, without an event.
                SyncKind::StreamWaitEvent if event.is_none() => SyncKind::StreamSync,
                kind => kind,
            };
            let names_event = kind.waits_for_event();
            let of_process = |number: Option<i64>| process.zip(number).filter(|_| names_event);
            let record =
                reading.event_records.find(of_process(sync), of_process(event), id.unwrap_or(i64::MAX));
            let place =
                reading.devices.waiting_stream(process, row.integer(2), row.integer(3), row.integer(4));
            let correlation = process.and_then(|process| reading.processes.correlation(process, id));
            let waits_on_record = record
                .and_then(|record| reading.processes.correlation(record.event.0, Some(record.correlation)));
            let sync = Synchronization {
                kind,
                waits_on_stream: record.map(|record| record.stream),
                waits_on_record,
                waits_on_event: event.filter(|_| names_event).and_then(|event| u64::try_from(event).ok()),
            };
            let track = reading.trace.track(place);
            reading.trace.synchronization(track, sync, time).correlation(correlation);
        });
    }

    fn read_event_records(&mut self) {
        const COLUMNS: [&str; 7] =
            ["deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId", "eventSyncId"];
        self.each("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &COLUMNS, &mut |reading, row| {
            let (Some(correlation), Some(event)) = (row.integer(3), row.integer(5)) else { return };
            let Some(process) = reading.process_of(row.integer(4), Some(correlation)) else { return };
            let place =
                reading.devices.waiting_stream(Some(process), row.integer(0), row.integer(1), row.integer(2));
            let Place::Stream { stream, .. } = place else { return };
            let record = Record { event: (process, event), correlation, stream };
            reading.event_records.list.push(record);
            if let Some(sync) = row.integer(6).filter(|sync| *sync != NONE) {
                reading.event_records.by_sync.insert((process, sync), record);
            }
        });
        self.event_records.list.sort_unstable();
    }
}
