//! What did the host call? Runtime and driver calls, and the time that Nsight itself took.

use super::Reading;
use super::identity::GlobalId;
use crate::hash::HashMap;
use crate::model::kind::EventKind;
use crate::model::names::NameId;

const TABLES: [&str; 2] = ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"];

/// Tables of device work, whose rows name their process in most versions.
pub(super) const WORK: [&str; 6] = [
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMCPY2",
    "CUPTI_ACTIVITY_KIND_MEMSET",
];

impl Reading<'_, '_> {
    /// Who made which call, if device work does not name its process.
    pub(super) fn read_callers(&mut self) {
        let database = self.database;
        let mut work = WORK.iter().flat_map(|name| database.versions_of(name));
        if work.all(|table| table.has("globalPid")) {
            return;
        }
        for table in TABLES {
            self.each(table, &["globalTid", "correlationId"], &mut |reading, row| {
                if let (Some(thread), Some(correlation)) = (row.integer(0), row.integer(1)) {
                    reading.callers.add(GlobalId::of(thread).process(), correlation);
                }
            });
        }
    }

    /// Some exports have a call twice, as the program called it and as the library exports it: `cudaMemcpy` around
    /// `cudaMemcpy_v3020`, with one correlation. Only the first of them counts.
    pub(super) fn read_calls(&mut self) {
        for table in TABLES {
            let mut last: HashMap<i64, (i64, i64)> = HashMap::default();
            self.each(
                table,
                &["start", "end", "globalTid", "correlationId", "nameId"],
                &mut |reading, row| {
                    reading.trace.stats_mut().objects += 1;
                    let Some(time) = reading.time(table, row.integer(0), row.integer(1)) else { return };
                    if let (Some(thread), Some(correlation)) = (row.integer(2), row.integer(3)) {
                        let this = (correlation, time.end.as_nanos());
                        let before = last.insert(thread, this);
                        if before.is_some_and(|(of, end)| of == correlation && time.start.as_nanos() < end) {
                            reading.trace.skip("calls inside the same call", 1);
                            return;
                        }
                    }
                    let thread = GlobalId::of(row.integer(2).unwrap_or(0));
                    let call = row.integer(4).and_then(|id| reading.strings.call(id, reading.trace.names()));
                    let (kind, name) = call.unwrap_or((EventKind::RuntimeCall, NameId::EMPTY));
                    let correlation = reading.processes.correlation(thread.process(), row.integer(3));
                    let track = reading.thread_track(thread);
                    reading.trace.event(kind, track, name, time).correlation(correlation);
                },
            );
        }
    }

    pub(super) fn read_overhead(&mut self) {
        const COLUMNS: [&str; 4] = ["start", "end", "globalTid", "nameId"];
        for table in ["PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"] {
            self.each(table, &COLUMNS, &mut |reading, row| {
                reading.trace.stats_mut().objects += 1;
                let Some(time) = reading.time(table, row.integer(0), row.integer(1)) else { return };
                let name = row.integer(3).and_then(|id| reading.strings.name(id, reading.trace.names()));
                let track = reading.thread_track(GlobalId::of(row.integer(2).unwrap_or(0)));
                let name = name.unwrap_or(NameId::EMPTY);
                reading.trace.event(EventKind::ProfilerOverhead, track, name, time);
            });
        }
    }
}
